// Arithmetic identities. Floating point ones hold for NaN, infinities and signed zeros too, or they are not here.
#include <cmath>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsIntegral(const Match& m) {
  return hlo::IsInteger(m.shape().element_type()) || m.shape().element_type() == hlo::ElementType::kPred;
}
bool IsInteger(const Match& m) { return hlo::IsInteger(m.shape().element_type()); }
bool IsReal(const Match& m) { return !hlo::IsComplex(m.shape().element_type()); }
bool IsArithmetic(const Match& m) { return IsReal(m) && m.shape().element_type() != hlo::ElementType::kPred; }

// Its value is never -0, so that adding +0 changes nothing.
bool NeverNegativeZero(const Instruction& x) {
  switch (x.opcode()) {
    case Opcode::kAbs:
    case Opcode::kExp: return hlo::IsFloating(x.shape().element_type());
    case Opcode::kConvert:
      return hlo::IsInteger(x.operand(0)->shape().element_type()) ||
             x.operand(0)->shape().element_type() == hlo::ElementType::kPred;
    case Opcode::kMultiply: return x.operand(0) == x.operand(1) && hlo::IsFloating(x.shape().element_type());
    default: return false;
  }
}

// x / c == x * (1/c) for every x: c is a power of two whose reciprocal is a normal number of all floating types.
bool HasExactReciprocal(const Match& m) {
  if (!hlo::IsFloating(m.shape().element_type()) || hlo::BitsOf(m.shape().element_type()) < 16) return false;
  int exponent = 0;
  const double fraction = std::frexp(m.Splat(C).GetDouble(0), &exponent);
  return std::abs(fraction) == 0.5 && std::abs(exponent) <= 12;
}

bool SameScalarBroadcasts(const Match& m) {
  return m[A]->dimensions() == m[B]->dimensions() &&
         m[A]->operand(0)->shape().SameDimensions(m[B]->operand(0)->shape());
}

// op(operands) over the smaller shape of `like`, broadcast afterwards as `like` was.
Instruction* BroadcastAfter(Match& m, const std::vector<Instruction*>& operands, const Instruction& like) {
  hlo::Shape small(m.shape().element_type(), like.operand(0)->shape().dimensions());
  Instruction* op = m.root->parent()->Add(m.root->CloneWithOperands(small, operands), m.root);
  op->sharding.reset();  // it tiles the dimensions of the root
  return m.build.Broadcast(op, m.dimensions(), like.dimensions());
}

std::vector<Rule> Identities() {
  return {
      {"add_zero_integer", Exactness::kExact, Op(Opcode::kAdd, X, Zero()), IsIntegral, [](Match& m) { return m[X]; },
       R"(x = s32[4] parameter(0)
          c = s32[] constant(0)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] add(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] add(x, b))"},
      {"add_negative_zero",
       Exactness::kExact,
       Op(Opcode::kAdd, X, NegativeZero()),
       {},
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] add(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] add(x, b))"},
      {"add_zero_to_never_negative_zero", Exactness::kExact, Op(Opcode::kAdd, X, Zero()),
       [](const Match& m) { return hlo::IsFloating(m.shape().element_type()) && NeverNegativeZero(*m[X]); },
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          e = f32[4] abs(x)
          c = f32[] constant(0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] add(e, b))",
       R"(x = f32[4] parameter(0)
          e = f32[4] negate(x)
          c = f32[] constant(0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] add(e, b))"},
      {"subtract_zero", Exactness::kExact, Op(Opcode::kSubtract, X, Zero()), IsArithmetic,
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] subtract(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] subtract(x, b))"},
      {"subtract_self", Exactness::kExact, Op(Opcode::kSubtract, X, X), IsInteger, [](Match& m) { return m.Fill(0.0); },
       R"(x = s32[4] parameter(0)
          ROOT r = s32[4] subtract(x, x))",
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] subtract(x, x))"},
      {"multiply_one", Exactness::kExact, Op(Opcode::kMultiply, X, One()), IsReal, [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(1)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] multiply(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(2)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] multiply(x, b))"},
      {"multiply_zero", Exactness::kExact, Op(Opcode::kMultiply, X, Zero()), IsIntegral,
       [](Match& m) { return m.Fill(0.0); },
       R"(x = s32[4] parameter(0)
          c = s32[] constant(0)
          b = s32[4] broadcast(c), dimensions={}
          ROOT r = s32[4] multiply(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(0)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] multiply(x, b))"},
      {"multiply_minus_one", Exactness::kExact, Op(Opcode::kMultiply, X, Value(-1.0)),
       [](const Match& m) { return IsArithmetic(m) && !hlo::IsUnsigned(m.shape().element_type()); },
       [](Match& m) { return m.build.Unary(Opcode::kNegate, m[X]); },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-1)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] multiply(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-2)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] multiply(x, b))"},
      {"divide_one", Exactness::kExact, Op(Opcode::kDivide, X, One()), IsArithmetic, [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(1)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] divide(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(1)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] divide(b, x))"},
      {"divide_by_power_of_two", Exactness::kExact, Op(Opcode::kDivide, X, Splat().As(C)), HasExactReciprocal,
       [](Match& m) { return m.build.Binary(Opcode::kMultiply, m[X], m.Fill(1.0 / m.Splat(C).GetDouble(0))); },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(8)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] divide(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(3)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] divide(x, b))"},
      {"power_one", Exactness::kExact, Op(Opcode::kPower, X, One()), IsArithmetic, [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(1)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(3)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))"},
      {"power_two", Exactness::kReassociating, Op(Opcode::kPower, X, Value(2.0)),
       [](const Match& m) { return hlo::IsFloating(m.shape().element_type()); },
       [](Match& m) { return m.build.Binary(Opcode::kMultiply, m[X], m[X]); },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(2)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(0.5)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))"},
      {"power_three", Exactness::kReassociating, Op(Opcode::kPower, X, Value(3.0)),
       [](const Match& m) { return hlo::IsFloating(m.shape().element_type()); },
       [](Match& m) { return m.build.Binary(Opcode::kMultiply, m.build.Binary(Opcode::kMultiply, m[X], m[X]), m[X]); },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(3)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(4)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))"},
      {"power_minus_one", Exactness::kReassociating, Op(Opcode::kPower, X, Value(-1.0)),
       [](const Match& m) { return hlo::IsFloating(m.shape().element_type()); },
       [](Match& m) { return m.build.Binary(Opcode::kDivide, m.Fill(1.0), m[X]); },
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-1)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(-2)
          b = f32[4] broadcast(c), dimensions={}
          ROOT r = f32[4] power(x, b))"},
      {"add_constants_integer", Exactness::kExact, Op(Opcode::kAdd, Op(Opcode::kAdd, X, Splat().As(C)), Splat().As(D)),
       [](const Match& m) { return IsInteger(m) && !SplatOf(*m[X]); },
       [](Match& m) { return m.build.Binary(Opcode::kAdd, m[X], m.build.Binary(Opcode::kAdd, m[C], m[D])); },
       R"(x = s32[4] parameter(0)
          c = s32[] constant(3)
          b = s32[4] broadcast(c), dimensions={}
          d = s32[] constant(5)
          e = s32[4] broadcast(d), dimensions={}
          s = s32[4] add(x, b)
          ROOT r = s32[4] add(s, e))",
       R"(x = f32[4] parameter(0)
          c = f32[] constant(3)
          b = f32[4] broadcast(c), dimensions={}
          d = f32[] constant(5)
          e = f32[4] broadcast(d), dimensions={}
          s = f32[4] add(x, b)
          ROOT r = f32[4] add(s, e))"},
  };
}

std::vector<Rule> Signs() {
  return {
      {"negate_negate",
       Exactness::kExact,
       Op(Opcode::kNegate, Op(Opcode::kNegate, X)),
       {},
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          n = f32[4] negate(x)
          ROOT r = f32[4] negate(n))",
       R"(x = f32[4] parameter(0)
          n = f32[4] abs(x)
          ROOT r = f32[4] negate(n))"},
      {"add_negated", Exactness::kExact, Op(Opcode::kAdd, X, Op(Opcode::kNegate, Y)), IsArithmetic,
       [](Match& m) { return m.build.Binary(Opcode::kSubtract, m[X], m[Y]); },
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          n = f32[4] negate(y)
          ROOT r = f32[4] add(x, n))",
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          n = f32[4] abs(y)
          ROOT r = f32[4] add(x, n))"},
      {"subtract_negated", Exactness::kExact, Op(Opcode::kSubtract, X, Op(Opcode::kNegate, Y)), IsArithmetic,
       [](Match& m) { return m.build.Binary(Opcode::kAdd, m[X], m[Y]); },
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          n = f32[4] negate(y)
          ROOT r = f32[4] subtract(x, n))",
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          n = f32[4] negate(y)
          ROOT r = f32[4] subtract(n, x))"},
      {"abs_of_negated", Exactness::kExact, Op(Opcode::kAbs, Op(Opcode::kNegate, X)), IsArithmetic,
       [](Match& m) { return m.build.Unary(Opcode::kAbs, m[X]); },
       R"(x = f32[4] parameter(0)
          n = f32[4] negate(x)
          ROOT r = f32[4] abs(n))",
       R"(x = f32[4] parameter(0)
          n = f32[4] floor(x)
          ROOT r = f32[4] abs(n))"},
      {"abs_abs",
       Exactness::kExact,
       Op(Opcode::kAbs, Op(Opcode::kAbs, X).As(A)),
       {},
       [](Match& m) { return m[A]; },
       R"(x = f32[4] parameter(0)
          n = f32[4] abs(x)
          ROOT r = f32[4] abs(n))",
       R"(x = f32[4] parameter(0)
          n = f32[4] negate(x)
          ROOT r = f32[4] abs(n))"},
      {"real_of_complex",
       Exactness::kExact,
       Op(Opcode::kReal, Op(Opcode::kComplex, X, Y)),
       {},
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          z = c64[4] complex(x, y)
          ROOT r = f32[4] real(z))",
       R"(z = c64[4] parameter(0)
          ROOT r = f32[4] real(z))"},
      {"imag_of_complex",
       Exactness::kExact,
       Op(Opcode::kImag, Op(Opcode::kComplex, X, Y)),
       {},
       [](Match& m) { return m[Y]; },
       R"(x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          z = c64[4] complex(x, y)
          ROOT r = f32[4] imag(z))",
       R"(z = c64[4] parameter(0)
          ROOT r = f32[4] imag(z))"},
  };
}

std::vector<Rule> OfBroadcasts() {
  return {
      {"unary_of_broadcast",
       Exactness::kExact,
       Unary(Op(Opcode::kBroadcast).As(A)),
       {},
       [](Match& m) { return BroadcastAfter(m, {m[A]->operand(0)}, *m[A]); },
       R"(x = f32[3] parameter(0)
          b = f32[2,3] broadcast(x), dimensions={1}
          ROOT r = f32[2,3] exponential(b))",
       R"(x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] exponential(x))"},
      {"binary_of_broadcasts", Exactness::kExact, Binary(Op(Opcode::kBroadcast).As(A), Op(Opcode::kBroadcast).As(B)),
       SameScalarBroadcasts,
       [](Match& m) {
         return BroadcastAfter(m, {m[A]->operand(0), m[B]->operand(0)}, *m[A]);
       },
       R"(x = f32[3] parameter(0)
          y = f32[3] parameter(1)
          a = f32[2,3] broadcast(x), dimensions={1}
          b = f32[2,3] broadcast(y), dimensions={1}
          ROOT r = f32[2,3] subtract(a, b))",
       R"(x = f32[3] parameter(0)
          y = f32[2] parameter(1)
          a = f32[2,3] broadcast(x), dimensions={1}
          b = f32[2,3] broadcast(y), dimensions={0}
          ROOT r = f32[2,3] subtract(a, b))"},
      {"binary_of_broadcast_and_splat", Exactness::kExact, Binary(Op(Opcode::kBroadcast).As(A), Splat().As(C)),
       [](const Match& m) { return m[A]->operand(0)->shape().rank() > 0; },
       [](Match& m) {
         Instruction* splat =
             m.build.Broadcast(m.build.Constant(m.Splat(C)), m[A]->operand(0)->shape().dimensions(), {});
         return BroadcastAfter(m, {m[A]->operand(0), splat}, *m[A]);
       },
       R"(x = f32[3] parameter(0)
          c = f32[] constant(2)
          a = f32[2,3] broadcast(x), dimensions={1}
          b = f32[2,3] broadcast(c), dimensions={}
          ROOT r = f32[2,3] subtract(a, b))",
       R"(x = f32[2,3] parameter(0)
          c = f32[] constant(2)
          b = f32[2,3] broadcast(c), dimensions={}
          ROOT r = f32[2,3] subtract(x, b))"},
      {"binary_of_splat_and_broadcast", Exactness::kExact, Binary(Splat().As(C), Op(Opcode::kBroadcast).As(A)),
       [](const Match& m) { return m[A]->operand(0)->shape().rank() > 0; },
       [](Match& m) {
         Instruction* splat =
             m.build.Broadcast(m.build.Constant(m.Splat(C)), m[A]->operand(0)->shape().dimensions(), {});
         return BroadcastAfter(m, {splat, m[A]->operand(0)}, *m[A]);
       },
       R"(x = f32[3] parameter(0)
          c = f32[] constant(2)
          a = f32[2,3] broadcast(x), dimensions={1}
          b = f32[2,3] broadcast(c), dimensions={}
          ROOT r = f32[2,3] subtract(b, a))",
       R"(x = f32[2,3] parameter(0)
          c = f32[] constant(2)
          b = f32[2,3] broadcast(c), dimensions={}
          ROOT r = f32[2,3] subtract(b, x))"},
  };
}

}  // namespace

std::vector<Rule> ArithmeticRules() {
  std::vector<Rule> rules = Identities();
  for (Rule& rule : Signs()) rules.push_back(std::move(rule));
  for (Rule& rule : OfBroadcasts()) rules.push_back(std::move(rule));
  return rules;
}

}  // namespace hlorun::passes
