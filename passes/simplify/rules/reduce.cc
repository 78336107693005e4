// Reductions by one associative opcode.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// A reducer may be of another float type than what it reduces (until MatchReducerTypes has been there).
bool IsOfOneType(const Instruction& reduce) {
  return std::all_of(reduce.operands().begin(), reduce.operands().end(), [&](const Instruction* operand) {
    return operand->shape().element_type() == reduce.shape().element_type();
  });
}

// One operand, one init, all of one type; the reducer's opcode.
std::optional<Opcode> SimpleReducer(const Instruction& reduce) {
  if (reduce.operand_count() != 2 || !IsOfOneType(reduce)) return std::nullopt;
  return hlo::ReducerOpcode(*reduce.called());
}

bool IsIdempotent(std::optional<Opcode> opcode) {
  return opcode == Opcode::kMaximum || opcode == Opcode::kMinimum || opcode == Opcode::kAnd || opcode == Opcode::kOr;
}

// The dimensions that a reduce of rank `rank` keeps.
std::vector<int64_t> Kept(int64_t rank, const std::vector<int64_t>& reduced) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < rank; ++i) {
    if (!Contains(reduced, i)) kept.push_back(i);
  }
  return kept;
}

bool ReducesUnitsOnly(const Match& m) {
  const std::vector<int64_t>& reduced = m.root->dimensions();
  return SimpleReducer(*m.root).has_value() &&
         std::all_of(reduced.begin(), reduced.end(), [&](int64_t d) { return m[X]->shape().dimension(d) == 1; });
}

// init op reshape(x), the one step that the reduction takes.
Instruction* OneStep(Match& m) {
  Instruction* x = m.build.Reshape(m[X], m.dimensions());
  return m.build.Binary(*SimpleReducer(*m.root), m.build.Broadcast(m[Y], m.dimensions(), {}), x);
}

// The kept dimensions come in the same order without the transpose.
bool KeepsOrder(const Match& m) {
  std::vector<int64_t> sources;
  for (int64_t d : Kept(m[A]->shape().rank(), m.root->dimensions())) {
    sources.push_back(m[A]->dimensions()[static_cast<size_t>(d)]);
  }
  return SimpleReducer(*m.root).has_value() && std::is_sorted(sources.begin(), sources.end());
}

Instruction* ReduceUntransposed(Match& m) {
  std::vector<int64_t> reduced;
  for (int64_t d : m.root->dimensions()) reduced.push_back(m[A]->dimensions()[static_cast<size_t>(d)]);
  std::sort(reduced.begin(), reduced.end());
  return m.build.Reduce({m[X]}, {m[Y]}, reduced, m.root->called());
}

// The reshape only drops or adds unit dimensions, and all that it adds are reduced or all kept ones stay.
bool DropsReducedUnits(const Match& m) {
  if (!SimpleReducer(*m.root)) return false;
  Dims wide = m[X]->shape().dimensions(), after = m[A]->shape().dimensions();
  std::erase(wide, 1);
  if (wide != m[X]->shape().dimensions()) return false;
  std::vector<int64_t> kept = Kept(m[A]->shape().rank(), m.root->dimensions());
  const bool keeps_units =
      std::any_of(kept.begin(), kept.end(), [&](int64_t d) { return after[static_cast<size_t>(d)] == 1; });
  std::erase(after, 1);
  return after == wide && !keeps_units && wide.size() < static_cast<size_t>(m[A]->shape().rank());
}

Instruction* ReduceUnreshaped(Match& m) {
  std::vector<int64_t> reduced;
  int64_t wide = 0;
  for (int64_t i = 0; i < m[A]->shape().rank(); ++i) {
    if (m[A]->shape().dimension(i) == 1) continue;
    if (Contains(m.root->dimensions(), i)) reduced.push_back(wide);
    ++wide;
  }
  return m.build.Reduce({m[X]}, {m[Y]}, reduced, m.root->called());
}

// All reduced dimensions are copies that the broadcast made, and there is at least one element of each.
bool ReducesCopies(const Match& m) {
  const std::vector<int64_t>& reduced = m.root->dimensions();
  return IsIdempotent(SimpleReducer(*m.root)) && m[A]->shape().ElementCount() > 0 &&
         std::none_of(reduced.begin(), reduced.end(), [&](int64_t d) { return Contains(m[A]->dimensions(), d); });
}

Instruction* FoldCopies(Match& m) {
  const std::vector<int64_t> kept = Kept(m[A]->shape().rank(), m.root->dimensions());
  std::vector<int64_t> dimensions;
  for (int64_t d : m[A]->dimensions()) {
    dimensions.push_back(std::find(kept.begin(), kept.end(), d) - kept.begin());
  }
  Instruction* x = m.build.Broadcast(m[X], m.dimensions(), dimensions);
  return m.build.Binary(*SimpleReducer(*m.root), m.build.Broadcast(m[Y], m.dimensions(), {}), x);
}

// Zero of add, one of multiply and so on, so that the inner init may be dropped.
bool IsIdentity(const Instruction& init, Opcode opcode) {
  Bindings bindings{};
  auto* value = const_cast<Instruction*>(&init);
  switch (opcode) {
    case Opcode::kAdd: return Zero().Matches(value, bindings) || NegativeZero().Matches(value, bindings);
    case Opcode::kMultiply: return One().Matches(value, bindings);
    case Opcode::kMaximum:
    case Opcode::kOr:
      return opcode == Opcode::kMaximum ? Lowest().Matches(value, bindings) : Zero().Matches(value, bindings);
    case Opcode::kMinimum: return Highest().Matches(value, bindings);
    default: return false;
  }
}

bool SameReducers(const Match& m) {
  const std::optional<Opcode> outer = SimpleReducer(*m.root);
  return outer && outer == SimpleReducer(*m[A]) && m[A]->users().size() == 1 && IsIdentity(*m[Z], *outer) &&
         m[A]->shape().element_type() == m.shape().element_type();
}

Instruction* MergeReductions(Match& m) {
  const std::vector<int64_t> kept = Kept(m[X]->shape().rank(), m[A]->dimensions());
  std::vector<int64_t> reduced = m[A]->dimensions();
  for (int64_t d : m.root->dimensions()) reduced.push_back(kept[static_cast<size_t>(d)]);
  std::sort(reduced.begin(), reduced.end());
  return m.build.Reduce({m[X]}, {m[Y]}, reduced, m.root->called());
}

#define ADDS "add_f32 { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
#define LARGEST "max_f32 { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y) }\n"

}  // namespace

std::vector<Rule> ReduceRules() {
  return {
      {"reduce_of_empty", Exactness::kExact, Op(Opcode::kReduce, X, Y),
       [](const Match& m) { return m[X]->shape().ElementCount() == 0 && IsOfOneType(*m.root); },
       [](Match& m) { return m.build.Broadcast(m[Y], m.dimensions(), {}); },
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,0] parameter(0)
          z = f32[] constant(3)
          ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add_f32 })",
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3] parameter(0)
          z = f32[] constant(3)
          ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add_f32 })"},
      {"reduce_of_units", Exactness::kExact, Op(Opcode::kReduce, X, Y), ReducesUnitsOnly, OneStep,
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,1] parameter(0)
          z = f32[] constant(0)
          ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add_f32 })",
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[1,2] parameter(0)
          z = f32[] constant(0)
          ROOT r = f32[1] reduce(x, z), dimensions={1}, to_apply=add_f32 })"},
      {"reduce_of_transpose", Exactness::kReassociating, Op(Opcode::kReduce, Op(Opcode::kTranspose, X).As(A), Y),
       KeepsOrder, ReduceUntransposed, "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3,4] parameter(0)
          t = f32[4,2,3] transpose(x), dimensions={2,0,1}
          z = f32[] constant(0)
          ROOT r = f32[2,3] reduce(t, z), dimensions={0}, to_apply=add_f32 })",
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3,4] parameter(0)
          t = f32[4,3,2] transpose(x), dimensions={2,1,0}
          z = f32[] constant(0)
          ROOT r = f32[3,2] reduce(t, z), dimensions={0}, to_apply=add_f32 })"},
      {"reduce_of_added_units", Exactness::kExact, Op(Opcode::kReduce, Op(Opcode::kReshape, X).As(A), Y),
       DropsReducedUnits, ReduceUnreshaped, "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3] parameter(0)
          t = f32[2,1,3] reshape(x)
          z = f32[] constant(0)
          ROOT r = f32[2] reduce(t, z), dimensions={1,2}, to_apply=add_f32 })",
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3] parameter(0)
          t = f32[3,1,2] reshape(x)
          z = f32[] constant(0)
          ROOT r = f32[3] reduce(t, z), dimensions={1,2}, to_apply=add_f32 })"},
      {"reduce_of_copies", Exactness::kExact, Op(Opcode::kReduce, Op(Opcode::kBroadcast, X).As(A), Y), ReducesCopies,
       FoldCopies, "HloModule m\n" LARGEST R"(ENTRY e { x = f32[2] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={0}
          z = f32[] constant(0)
          ROOT r = f32[2] reduce(b, z), dimensions={1}, to_apply=max_f32 })",
       "HloModule m\n" ADDS R"(ENTRY e { x = f32[2] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={0}
          z = f32[] constant(0)
          ROOT r = f32[2] reduce(b, z), dimensions={1}, to_apply=add_f32 })"},
      {"reduce_of_reduce", Exactness::kReassociating, Op(Opcode::kReduce, Op(Opcode::kReduce, X, Z).As(A), Y),
       SameReducers, MergeReductions, "HloModule m\n" ADDS R"(ENTRY e { x = f32[2,3,4] parameter(0)
          z = f32[] constant(0)
          a = f32[2,4] reduce(x, z), dimensions={1}, to_apply=add_f32
          ROOT r = f32[2] reduce(a, z), dimensions={1}, to_apply=add_f32 })",
       "HloModule m\n" ADDS LARGEST R"(ENTRY e { x = f32[2,3,4] parameter(0)
          z = f32[] constant(0)
          a = f32[2,4] reduce(x, z), dimensions={1}, to_apply=max_f32
          ROOT r = f32[2] reduce(a, z), dimensions={1}, to_apply=add_f32 })"},
  };
}

#undef ADDS
#undef LARGEST

}  // namespace hlorun::passes
