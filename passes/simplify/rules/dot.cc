// Matrix products that are none, and those of a batch that are one.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "passes/simplify/rule.h"
#include "passes/simplify/symmetry.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Instruction;
using hlo::Opcode;

namespace {

const hlo::attr::Dot& DotOf(const Match& m) { return m.root->As<hlo::attr::Dot>(); }

int64_t ContractedSize(const Match& m) {
  int64_t size = 1;
  for (int64_t d : DotOf(m).lhs_contracting) size *= m[X]->shape().dimension(d);
  return size;
}

bool IsIn(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The operand without its contracted unit dimensions, converted and broadcast to the result. Free dimensions of the
// operand start at result dimension `free_start`.
Instruction* Spread(Match& m, Instruction* operand, const std::vector<int64_t>& batch,
                    const std::vector<int64_t>& contracting, int64_t free_start) {
  hlo::Dims sizes;
  std::vector<int64_t> dimensions;
  int64_t free = free_start;
  for (int64_t d = 0; d < operand->shape().rank(); ++d) {
    if (IsIn(contracting, d)) continue;
    sizes.push_back(operand->shape().dimension(d));
    dimensions.push_back(IsIn(batch, d) ? std::find(batch.begin(), batch.end(), d) - batch.begin() : free++);
  }
  Instruction* x = operand->shape().dimensions() == sizes ? operand : m.build.Reshape(operand, sizes);
  if (x->shape().element_type() != m.shape().element_type()) x = m.build.Convert(x, m.shape().element_type());
  return m.build.Broadcast(x, m.dimensions(), dimensions);
}

Instruction* OuterProduct(Match& m) {
  const hlo::attr::Dot& dot = DotOf(m);
  const auto batch = static_cast<int64_t>(dot.lhs_batch.size());
  const int64_t lhs_free = m[X]->shape().rank() - batch - static_cast<int64_t>(dot.lhs_contracting.size());
  Instruction* lhs = Spread(m, m[X], dot.lhs_batch, dot.lhs_contracting, batch);
  Instruction* rhs = Spread(m, m[Y], dot.rhs_batch, dot.rhs_contracting, batch + lhs_free);
  return m.build.Binary(Opcode::kMultiply, lhs, rhs);
}

// The product is rounded to the result's type either way.
bool MultipliesInResultType(const Match& m) {
  const hlo::ElementType type = m.shape().element_type();
  return hlo::BitsOf(type) >= 16 && hlo::BitsOf(type) >= hlo::BitsOf(m[X]->shape().element_type()) &&
         hlo::BitsOf(type) >= hlo::BitsOf(m[Y]->shape().element_type());
}

// Position in the list of batch dimensions from which the rhs, A, holds copies: from there on all are dimensions that A
// broadcasts. The list's length: it does not.
size_t FirstCopied(const Match& m) {
  const hlo::attr::Dot& dot = DotOf(m);
  size_t first = dot.rhs_batch.size();
  while (first > 0 && !IsIn(m[A]->dimensions(), dot.rhs_batch[first - 1])) --first;
  return first;
}

// Whether those dimensions, as free ones of the lhs, stay where they are in the result.
bool CopiedBatchComesFirst(const Match& m) {
  const hlo::attr::Dot& dot = DotOf(m);
  int64_t last = -1;
  for (size_t i = FirstCopied(m); i < dot.lhs_batch.size(); ++i) {
    if (dot.lhs_batch[i] < last) return false;
    last = dot.lhs_batch[i];
  }
  for (int64_t d = 0; d < last; ++d) {
    if (!IsIn(dot.lhs_batch, d) && !IsIn(dot.lhs_contracting, d)) return false;
  }
  return last >= 0;
}

// One product with all rows instead of one for each copy of the rhs.
Instruction* MergeCopiedBatch(Match& m) {
  hlo::attr::Dot dot = DotOf(m);
  const std::vector<int64_t> copied(dot.rhs_batch.begin() + static_cast<ptrdiff_t>(FirstCopied(m)),
                                    dot.rhs_batch.end());
  dot.lhs_batch.resize(dot.lhs_batch.size() - copied.size());
  dot.rhs_batch.resize(dot.lhs_batch.size());
  std::vector<int64_t> moved;  // each dimension of A without the copied ones
  hlo::Dims sizes;
  for (int64_t d = 0; d < m[A]->shape().rank(); ++d) {
    moved.push_back(static_cast<int64_t>(sizes.size()));
    if (!IsIn(copied, d)) sizes.push_back(m[A]->shape().dimension(d));
  }
  const auto move = [&](std::vector<int64_t>& dimensions) {
    for (int64_t& d : dimensions) d = moved[static_cast<size_t>(d)];
  };
  std::vector<int64_t> dimensions = m[A]->dimensions();
  move(dimensions);
  move(dot.rhs_batch);
  move(dot.rhs_contracting);
  return m.build.Dot(m[X], m.build.Broadcast(m[Y], sizes, dimensions), std::move(dot), m.shape().element_type());
}

// An operand without the constant that it is multiplied by: near 1, and of a type whose exponents reach far, so that no
// product overflows or vanishes for want of it.
struct Scaled {
  Instruction* array;
  double factor = 1;
};

Scaled WithoutFactor(Instruction* x) {
  constexpr double kLargest = 64, kSmallest = 1 / kLargest;
  const hlo::ElementType type = x->shape().element_type();
  const bool reaches_far =
      type == hlo::ElementType::kF32 || type == hlo::ElementType::kF64 || type == hlo::ElementType::kBF16;
  if (!x->Is(Opcode::kMultiply) || !reaches_far) return {x};
  for (const auto& [array, factor] : {std::pair(0, 1), std::pair(1, 0)}) {
    const std::optional<hlo::Literal> splat = SplatOf(*x->operand(factor));
    if (!splat) continue;
    const double value = splat->GetDouble(0);
    if (std::abs(value) >= kSmallest && std::abs(value) <= kLargest) return {x->operand(array), value};
  }
  return {x};
}

// Whether the dot is a matrix by its own transpose, or a symmetric one by itself, either times a constant, and not
// written so that kernels see it, which multiply one half of it (backends/opencl/kernels/product_plan.h) if it is
// large.
bool IsByItsTranspose(const Match& m) {
  constexpr int64_t kFewestRows = 48;
  const hlo::attr::Dot& dot = DotOf(m);
  const Scaled lhs = WithoutFactor(m[X]), rhs = WithoutFactor(m[Y]);
  const hlo::Shape& shape = lhs.array->shape();
  const auto is_of_matrix = [&](const std::vector<int64_t>& contracting) {
    return contracting.size() == 1 && contracting[0] >= shape.rank() - 2;
  };
  if (lhs.array != rhs.array || !is_of_matrix(dot.lhs_contracting) || !is_of_matrix(dot.rhs_contracting) ||
      dot.lhs_batch != dot.rhs_batch || static_cast<int64_t>(dot.lhs_batch.size()) != shape.rank() - 2 ||
      m.dimensions().back() < kFewestRows) {
    return false;
  }
  if (m.shape().element_type() != shape.element_type()) return false;
  return dot.lhs_contracting == dot.rhs_contracting ? m[X] != m[Y] : IsSymmetric(*lhs.array);
}

Instruction* ByItsTranspose(Match& m) {
  hlo::attr::Dot dot = DotOf(m);
  dot.rhs_contracting = dot.lhs_contracting;
  const Scaled lhs = WithoutFactor(m[X]), rhs = WithoutFactor(m[Y]);
  Instruction* product = m.build.Dot(lhs.array, lhs.array, std::move(dot), m.shape().element_type());
  product->frontend_attributes = m.root->frontend_attributes;
  product->backend_config = m.root->backend_config;
  const double factor = lhs.factor * rhs.factor;
  return factor == 1 ? product : m.build.Binary(Opcode::kMultiply, product, m.Fill(factor));
}

}  // namespace

std::vector<Rule> DotRules() {
  return {
      {"dot_over_nothing", Exactness::kExact, Op(Opcode::kDot, X, Y),
       [](const Match& m) { return ContractedSize(m) == 0; }, [](Match& m) { return m.Fill(0.0); },
       R"(x = f32[2,0] parameter(0)
          y = f32[0,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
       R"(x = f32[2,1] parameter(0)
          y = f32[1,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot_over_one", Exactness::kReassociating, Op(Opcode::kDot, X, Y),
       [](const Match& m) { return ContractedSize(m) == 1 && MultipliesInResultType(m); }, OuterProduct,
       R"(x = f32[2,1] parameter(0)
          y = f32[1,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
       R"(x = f32[2,2] parameter(0)
          y = f32[2,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot_of_copied_rhs", Exactness::kReassociating, Op(Opcode::kDot, X, Op(Opcode::kBroadcast, Y).As(A)),
       CopiedBatchComesFirst, MergeCopiedBatch,
       R"(x = f32[2,3,4] parameter(0)
          y = f32[4,5] parameter(1)
          a = f32[2,4,5] broadcast(y), dimensions={1,2}
          ROOT r = f32[2,3,5] dot(x, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})",
       R"(x = f32[3,2,4] parameter(0)
          y = f32[4,5] parameter(1)
          a = f32[2,4,5] broadcast(y), dimensions={1,2}
          ROOT r = f32[2,3,5] dot(x, a), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})"},
      {"dot_by_transpose", Exactness::kReassociating, Op(Opcode::kDot, X, Y), IsByItsTranspose, ByItsTranspose,
       R"(x = f32[64,64] parameter(0)
          y = f32[64,64] transpose(x), dimensions={1,0}
          a = f32[64,64] add(x, y)
          two = f32[] constant(2)
          twice = f32[64,64] broadcast(two), dimensions={}
          b = f32[64,64] multiply(a, twice)
          ROOT r = f32[64,64] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
       R"(x = f32[64,64] parameter(0)
          y = f32[64,64] transpose(x), dimensions={1,0}
          a = f32[64,64] subtract(x, y)
          ROOT r = f32[64,64] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
  };
}

}  // namespace hlorun::passes
