// Logic, comparisons, selection, minimum and maximum.
#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsPred(const Match& m) { return m.shape().element_type() == hlo::ElementType::kPred; }
bool IsIntegral(const Instruction& x) {
  return hlo::IsInteger(x.shape().element_type()) || x.shape().element_type() == hlo::ElementType::kPred;
}

ComparisonDirection Inverse(ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kEq: return ComparisonDirection::kNe;
    case ComparisonDirection::kNe: return ComparisonDirection::kEq;
    case ComparisonDirection::kLt: return ComparisonDirection::kGe;
    case ComparisonDirection::kLe: return ComparisonDirection::kGt;
    case ComparisonDirection::kGt: return ComparisonDirection::kLe;
    case ComparisonDirection::kGe: return ComparisonDirection::kLt;
  }
  return direction;
}

// NaN makes every ordered comparison false, so only these have an inverse.
bool HasInverse(const Match& m) {
  const ComparisonDirection direction = m[A]->As<hlo::attr::Compare>().direction;
  return IsIntegral(*m[A]->operand(0)) || direction == ComparisonDirection::kEq ||
         direction == ComparisonDirection::kNe;
}

bool HoldsForEqual(ComparisonDirection direction) {
  return direction == ComparisonDirection::kEq || direction == ComparisonDirection::kLe ||
         direction == ComparisonDirection::kGe;
}

Rule Idempotent(std::string_view name, Opcode opcode, std::string_view positive, std::string_view negative) {
  return {name, Exactness::kExact, Op(opcode, X, X), {}, [](Match& m) { return m[X]; }, positive, negative};
}

std::vector<Rule> Idempotences() {
  return {
      Idempotent("and_self", Opcode::kAnd, R"(x = pred[4] parameter(0)
          ROOT r = pred[4] and(x, x))",
                 R"(x = pred[4] parameter(0)
          y = pred[4] parameter(1)
          ROOT r = pred[4] and(x, y))"),
      Idempotent("or_self", Opcode::kOr, R"(x = pred[4] parameter(0)
          ROOT r = pred[4] or(x, x))",
                 R"(x = pred[4] parameter(0)
          y = pred[4] parameter(1)
          ROOT r = pred[4] or(x, y))"),
      Idempotent("maximum_self", Opcode::kMaximum, R"(x = f32[4] parameter(0)
          ROOT r = f32[4] maximum(x, x))",
                 R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] maximum(x, y))"),
      Idempotent("minimum_self", Opcode::kMinimum, R"(x = f32[4] parameter(0)
          ROOT r = f32[4] minimum(x, x))",
                 R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] minimum(x, y))"),
  };
}

std::vector<Rule> Extremes() {
  return {
      {"maximum_lowest",
       Exactness::kExact,
       Op(Opcode::kMaximum, X, Lowest()),
       {},
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-inf)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] maximum(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(inf)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] maximum(x, b))"},
      {"minimum_highest",
       Exactness::kExact,
       Op(Opcode::kMinimum, X, Highest()),
       {},
       [](Match& m) { return m[X]; },
       R"(x = s32[4] parameter(0)
          c = s32[] constant(2147483647)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] minimum(x, b))",
       R"(x = s32[4] parameter(0)
          c = s32[] constant(2147483646)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] minimum(x, b))"},
      {"and_true", Exactness::kExact, Op(Opcode::kAnd, X, One()), IsPred, [](Match& m) { return m[X]; },
       R"(x = pred[4] parameter(0)
          c = pred[] constant(true)
          b = pred[4] broadcast(c), dimensions={}
          ROOT r = pred[4] and(x, b))",
       R"(x = s32[4] parameter(0)
          c = s32[] constant(1)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] and(x, b))"},
      {"and_zero",
       Exactness::kExact,
       Op(Opcode::kAnd, X, Zero().As(C)),
       {},
       [](Match& m) { return m[C]; },
       R"(x = pred[4] parameter(0)
          c = pred[] constant(false)
          b = pred[4] broadcast(c), dimensions={}
          ROOT r = pred[4] and(x, b))",
       R"(x = pred[4] parameter(0)
          c = pred[] constant(true)
          b = pred[4] broadcast(c), dimensions={}
          ROOT r = pred[4] and(x, b))"},
      {"or_zero",
       Exactness::kExact,
       Op(Opcode::kOr, X, Zero()),
       {},
       [](Match& m) { return m[X]; },
       R"(x = s32[4] parameter(0)
          c = s32[] constant(0)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] or(x, b))",
       R"(x = s32[4] parameter(0)
          c = s32[] constant(1)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] or(x, b))"},
      {"or_true", Exactness::kExact, Op(Opcode::kOr, X, One().As(C)), IsPred, [](Match& m) { return m[C]; },
       R"(x = pred[4] parameter(0)
          c = pred[] constant(true)
          b = pred[4] broadcast(c), dimensions={}
          ROOT r = pred[4] or(x, b))",
       R"(x = s32[4] parameter(0)
          c = s32[] constant(1)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] or(x, b))"},
      {"xor_self",
       Exactness::kExact,
       Op(Opcode::kXor, X, X),
       {},
       [](Match& m) { return m.Fill(0.0); },
       R"(x = s32[4] parameter(0)
          ROOT r = s32[4] xor(x, x))",
       R"(x = s32[4] parameter(0)
          y = s32[4] parameter(1)
          ROOT r = s32[4] xor(x, y))"},
      {"not_not",
       Exactness::kExact,
       Op(Opcode::kNot, Op(Opcode::kNot, X)),
       {},
       [](Match& m) { return m[X]; },
       R"(x = s32[4] parameter(0)
          n = s32[4] not(x)
          ROOT r = s32[4] not(n))",
       R"(x = s32[4] parameter(0)
          n = s32[4] negate(x)
          ROOT r = s32[4] not(n))"},
  };
}

std::vector<Rule> Selections() {
  return {
      {"select_same",
       Exactness::kExact,
       Op(Opcode::kSelect, Any(), X, X),
       {},
       [](Match& m) { return m[X]; },
       R"(p = pred[4] parameter(0)
          x = f32[4] parameter(1)
          ROOT r = f32[4] select(p, x, x))",
       R"(p = pred[4] parameter(0)
          x = f32[4] parameter(1)
          y = f32[4] parameter(2)
          ROOT r = f32[4] select(p, x, y))"},
      {"select_true",
       Exactness::kExact,
       Op(Opcode::kSelect, One(), X, Y),
       {},
       [](Match& m) { return m[X]; },
       R"(c = pred[] constant(true)
          p = pred[4] broadcast(c), dimensions={}
          x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] select(p, x, y))",
       R"(c = pred[] constant(false)
          p = pred[4] broadcast(c), dimensions={}
          x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] select(p, x, y))"},
      {"select_false",
       Exactness::kExact,
       Op(Opcode::kSelect, Zero(), X, Y),
       {},
       [](Match& m) { return m[Y]; },
       R"(c = pred[] constant(false)
          p = pred[4] broadcast(c), dimensions={}
          x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] select(p, x, y))",
       R"(c = pred[] constant(true)
          p = pred[4] broadcast(c), dimensions={}
          x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] select(p, x, y))"},
      {"select_not",
       Exactness::kExact,
       Op(Opcode::kSelect, Op(Opcode::kNot, Z), X, Y),
       {},
       [](Match& m) { return m.build.Select(m[Z], m[Y], m[X]); },
       R"(p = pred[4] parameter(0)
          n = pred[4] not(p)
          x = f32[4] parameter(1)
          y = f32[4] parameter(2)
          ROOT r = f32[4] select(n, x, y))",
       R"(p = pred[4] parameter(0)
          x = f32[4] parameter(1)
          y = f32[4] parameter(2)
          ROOT r = f32[4] select(p, x, y))"},
      {"not_compare", Exactness::kExact, Op(Opcode::kNot, Op(Opcode::kCompare, X, Y).As(A)), HasInverse,
       [](Match& m) {
         auto attributes = m[A]->As<hlo::attr::Compare>();
         attributes.direction = Inverse(attributes.direction);
         return m.build.Make(Opcode::kCompare, {m[X], m[Y]}, attributes);
       },
       R"(x = s32[4] parameter(0)
          y = s32[4] parameter(1)
          c = pred[4] compare(x, y), direction=LT
          ROOT r = pred[4] not(c))",
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          c = pred[4] compare(x, y), direction=LT
          ROOT r = pred[4] not(c))"},
      {"compare_self", Exactness::kExact, Op(Opcode::kCompare, X, X), [](const Match& m) { return IsIntegral(*m[X]); },
       [](Match& m) { return m.Fill(HoldsForEqual(m.root->As<hlo::attr::Compare>().direction) ? 1.0 : 0.0); },
       R"(x = s32[4] parameter(0)
          ROOT r = pred[4] compare(x, x), direction=LE)",
       R"(x = f32[4] parameter(0)
          ROOT r = pred[4] compare(x, x), direction=LE)"},
      {"compare_unsigned_below_zero", Exactness::kExact, Op(Opcode::kCompare, X, Zero()),
       [](const Match& m) {
         const ComparisonDirection direction = m.root->As<hlo::attr::Compare>().direction;
         return hlo::IsUnsigned(m[X]->shape().element_type()) &&
                (direction == ComparisonDirection::kLt || direction == ComparisonDirection::kGe);
       },
       [](Match& m) {
         return m.Fill(m.root->As<hlo::attr::Compare>().direction == ComparisonDirection::kGe ? 1.0 : 0.0);
       },
       R"(x = u32[4] parameter(0)
          c = u32[] constant(0)
          b = u32[4] broadcast(c), dimensions={}
          ROOT r = pred[4] compare(x, b), direction=LT)",
       R"(x = s32[4] parameter(0)
          c = s32[] constant(0)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = pred[4] compare(x, b), direction=LT)"},
  };
}

}  // namespace

std::vector<Rule> LogicRules() {
  std::vector<Rule> rules = Idempotences();
  for (Rule& rule : Extremes()) rules.push_back(std::move(rule));
  for (Rule& rule : Selections()) rules.push_back(std::move(rule));
  return rules;
}

}  // namespace hlorun::passes
