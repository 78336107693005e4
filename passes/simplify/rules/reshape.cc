// Reshape: composed, or pushed through the ops that make it vanish.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

Dims WithoutUnits(Dims dimensions) {
  std::erase(dimensions, 1);
  return dimensions;
}

// The reshape only adds or drops unit dimensions.
bool OnlyUnits(const Match& m) {
  return m.shape().ElementCount() > 0 && WithoutUnits(m[A]->shape().dimensions()) == WithoutUnits(m.dimensions());
}

// reshape(broadcast(x)) -> broadcast(x without unit dimensions)
Instruction* BroadcastOnly(Match& m) {
  const hlo::Shape& before = m[A]->shape();
  // Wide dimension number k of `before` is wide dimension number k of the result.
  std::vector<int64_t> after_of(static_cast<size_t>(before.rank()), -1);
  int64_t next = 0;
  for (int64_t i = 0; i < before.rank(); ++i) {
    if (before.dimension(i) == 1) continue;
    while (m.shape().dimension(next) == 1) ++next;
    after_of[static_cast<size_t>(i)] = next++;
  }
  std::vector<int64_t> dimensions;
  for (int64_t d : m[A]->dimensions()) {
    if (before.dimension(d) != 1) dimensions.push_back(after_of[static_cast<size_t>(d)]);
  }
  Instruction* x = m[X];
  const Dims wide = WithoutUnits(x->shape().dimensions());
  if (wide != x->shape().dimensions()) x = m.build.Reshape(x, wide);
  return m.build.Broadcast(x, m.dimensions(), dimensions);
}

// Reshape motion: an elementwise op of reshaped values works on the values as they were, and is reshaped afterwards.

// Where the dimensions of two shapes of as many elements begin a common group: [4,6,5] and [24,5] are {4,6 | 24} and
// {5 | 5}. Pairs of half-open ranges.
struct DimensionGroup {
  int64_t first_a, last_a, first_b, last_b;
};

std::vector<DimensionGroup> CommonGroups(const Dims& a, const Dims& b) {
  std::vector<DimensionGroup> groups;
  const auto size_a = static_cast<int64_t>(a.size()), size_b = static_cast<int64_t>(b.size());
  int64_t i = 0, j = 0;
  while (i < size_a || j < size_b) {
    DimensionGroup group{i, i, j, j};
    int64_t product_a = 1, product_b = 1;
    do {
      if (j >= size_b || (i < size_a && product_a <= product_b)) {
        product_a *= a[static_cast<size_t>(i++)];
      } else {
        product_b *= b[static_cast<size_t>(j++)];
      }
    } while (product_a != product_b && (i < size_a || j < size_b));
    group.last_a = i;
    group.last_b = j;
    groups.push_back(group);
  }
  return groups;
}

struct BroadcastPlan {
  Dims operand;                     // dimensions of the operand, regrouped
  std::vector<int64_t> dimensions;  // of the broadcast in the earlier shape
};

// A broadcast to shape `after` as a broadcast to shape `before`, where each common group is covered whole or not at
// all.
std::optional<BroadcastPlan> BroadcastBefore(const Instruction& broadcast, const Dims& before) {
  BroadcastPlan plan;
  const std::vector<int64_t>& covered = broadcast.dimensions();
  const Dims& after = broadcast.shape().dimensions();
  if (!std::is_sorted(covered.begin(), covered.end())) return std::nullopt;
  for (const DimensionGroup& group : CommonGroups(after, before)) {
    int64_t count = 0, wide = 0, wide_covered = 0;
    for (int64_t d = group.first_a; d < group.last_a; ++d) {
      const bool is_wide = after[static_cast<size_t>(d)] != 1;
      const bool is_covered = std::find(covered.begin(), covered.end(), d) != covered.end();
      count += is_covered ? 1 : 0;
      wide += is_wide ? 1 : 0;
      wide_covered += is_wide && is_covered ? 1 : 0;
    }
    if (wide_covered != 0 && wide_covered != wide) return std::nullopt;
    if (count == 0 || wide_covered == 0) continue;
    for (int64_t d = group.first_b; d < group.last_b; ++d) {
      plan.operand.push_back(before[static_cast<size_t>(d)]);
      plan.dimensions.push_back(d);
    }
  }
  return plan;
}

// A scalar may stand beside whole arrays, as a select's predicate: its reshape is none of theirs.
bool IsReshapeTo(const Instruction& operand, const Dims& dimensions) {
  return operand.Is(Opcode::kReshape) && operand.shape().dimensions() == dimensions;
}

Instruction* ReshapeSource(const Instruction& op) {
  for (Instruction* operand : op.operands()) {
    if (IsReshapeTo(*operand, op.shape().dimensions())) return operand->operand(0);
  }
  return nullptr;
}

bool MayComeBefore(const Instruction& operand, const Dims& before, const Dims& after) {
  if (IsReshapeTo(operand, after)) return operand.operand(0)->shape().dimensions() == before;
  return SplatOf(operand).has_value() ||
         (operand.Is(Opcode::kBroadcast) && BroadcastBefore(operand, before).has_value());
}

bool AllMayComeBefore(const Match& m) {
  const Instruction* source = ReshapeSource(*m.root);
  if (source == nullptr || m.shape().ElementCount() == 0 || m.root->Is(Opcode::kCopy)) return false;
  const Dims& before = source->shape().dimensions();
  const auto& operands = m.root->operands();
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Instruction* o) { return MayComeBefore(*o, before, m.dimensions()); });
}

Instruction* ReshapeAfterwards(Match& m) {
  const Dims before = ReshapeSource(*m.root)->shape().dimensions();
  std::vector<Instruction*> operands;
  for (Instruction* operand : m.root->operands()) {
    if (operand->Is(Opcode::kReshape)) {
      operands.push_back(operand->operand(0));
    } else if (const std::optional<hlo::Literal> value = SplatOf(*operand)) {
      operands.push_back(m.build.Broadcast(m.build.Constant(*value), before, {}));
    } else {
      const BroadcastPlan plan = *BroadcastBefore(*operand, before);
      Instruction* x = operand->operand(0);
      if (x->shape().dimensions() != plan.operand) x = m.build.Reshape(x, plan.operand);
      operands.push_back(m.build.Broadcast(x, before, plan.dimensions));
    }
  }
  const hlo::Shape shape(m.shape().element_type(), before);
  Instruction* op = m.root->parent()->Add(m.root->CloneWithOperands(shape, operands), m.root);
  op->sharding.reset();  // it tiles the dimensions of the root
  return m.build.Reshape(op, m.dimensions());
}

}  // namespace

std::vector<Rule> ReshapeRules() {
  return {
      {"elementwise_of_reshapes", Exactness::kExact,
       Pattern([](const Instruction& op) { return op.Has(hlo::kElementwise); }), AllMayComeBefore, ReshapeAfterwards,
       R"(x = f32[6,4] parameter(0)
          y = f32[6,4] parameter(1)
          b = f32[4] parameter(2)
          c = f32[2,3] parameter(3)
          a = f32[2,3,4] reshape(x)
          n = f32[2,3,4] broadcast(b), dimensions={2}
          t = f32[2,3,4] broadcast(c), dimensions={0,1}
          s = f32[2,3,4] add(a, n)
          ROOT r = f32[2,3,4] multiply(s, t))",
       R"(x = f32[6,4] parameter(0)
          b = f32[2] parameter(1)
          a = f32[2,3,4] reshape(x)
          n = f32[2,3,4] broadcast(b), dimensions={0}
          ROOT r = f32[2,3,4] add(a, n))"},
      {"reshape_to_same", Exactness::kExact, Op(Opcode::kReshape, X),
       [](const Match& m) { return m[X]->shape().SameAs(m.shape()); }, [](Match& m) { return m[X]; },
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] reshape(x))",
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[3,2] reshape(x))"},
      {"reshape_of_reshape",
       Exactness::kExact,
       Op(Opcode::kReshape, Op(Opcode::kReshape, X)),
       {},
       [](Match& m) { return m.build.Reshape(m[X], m.dimensions()); },
       R"(x = f32[2,3] parameter(0)
          y = f32[6] reshape(x)
          ROOT r = f32[3,2] reshape(y))",
       R"(x = f32[2,3] parameter(0)
          y = f32[3,2] transpose(x), dimensions={1,0}
          ROOT r = f32[6] reshape(y))"},
      {"reshape_of_splat", Exactness::kExact, Op(Opcode::kReshape, Op(Opcode::kBroadcast, X)),
       [](const Match& m) { return m[X]->shape().IsScalar(); },
       [](Match& m) { return m.build.Broadcast(m[X], m.dimensions(), {}); },
       R"(x = f32[] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={}
          ROOT r = f32[6] reshape(y))",
       R"(x = f32[3] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[6] reshape(y))"},
      {"reshape_of_broadcast", Exactness::kExact, Op(Opcode::kReshape, Op(Opcode::kBroadcast, X).As(A)), OnlyUnits,
       BroadcastOnly,
       R"(x = f32[3,1] parameter(0)
          y = f32[2,3,1] broadcast(x), dimensions={1,2}
          ROOT r = f32[1,2,3] reshape(y))",
       R"(x = f32[3] parameter(0)
          y = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[3,2] reshape(y))"},
  };
}

}  // namespace hlorun::passes
