#include "backends/opencl/codegen/complex_expr.h"

#include <cmath>
#include <map>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else
using hlo::Opcode;

Expr F(const char* function, const Expr& x) { return Call(x->type, function, {x}); }
Expr F(const char* function, const Expr& x, const Expr& y) { return Call(x->type, function, {x, y}); }
Expr Like(const Expr& x, double value) { return Real(value, x->type); }

Value Named(Body& body, const Expr& re, const Expr& im) { return {body.Name(re), body.Name(im)}; }

Value AddC(const Value& x, const Value& y, Body& body) { return Named(body, x.re + y.re, x.im + y.im); }
Value SubC(const Value& x, const Value& y, Body& body) { return Named(body, x.re - y.re, x.im - y.im); }
Value MulC(const Value& x, const Value& y, Body& body) {
  return Named(body, x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

Expr IsNan(const Expr& x) { return Compare(Op::kNe, x, x); }
Expr IsInfinite(const Expr& x) { return Compare(Op::kEq, F("fabs", x), Like(x, INFINITY)); }
Expr IsFinite(const Expr& x) { return Compare(Op::kLt, F("fabs", x), Like(x, INFINITY)); }

// An infinity becomes 1, everything else 0, of the same sign.
Expr Direction(const Expr& x) { return F("copysign", Select(IsInfinite(x), Like(x, 1), Like(x, 0)), x); }

// What C says of quotients with infinite or zero operands where the arithmetic says NaN (C17, G.5.1).
Value Recovered(const Value& x, const Value& y, const Value& quotient, Body& body) {
  const Expr lost = body.Name(And(IsNan(quotient.re), IsNan(quotient.im)));
  const Expr zero = Like(x.re, 0);
  const Expr by_zero = body.Name(And(Compare(Op::kEq, y.re, zero), Compare(Op::kEq, y.im, zero)));
  const Expr x_is_infinite = Or(IsInfinite(x.re), IsInfinite(x.im)), x_is_finite = And(IsFinite(x.re), IsFinite(x.im));
  const Expr y_is_infinite = Or(IsInfinite(y.re), IsInfinite(y.im)), y_is_finite = And(IsFinite(y.re), IsFinite(y.im));
  const Expr grows = body.Name(And(x_is_infinite, y_is_finite)), vanishes = body.Name(And(x_is_finite, y_is_infinite));
  const Expr endless = body.Name(F("copysign", Like(y.re, INFINITY), y.re));
  const Value a = {body.Name(Select(grows, Direction(x.re), x.re)), body.Name(Select(grows, Direction(x.im), x.im))};
  const Value b = {body.Name(Select(vanishes, Direction(y.re), y.re)),
                   body.Name(Select(vanishes, Direction(y.im), y.im))};
  const Expr factor = body.Name(Select(grows, Like(zero, INFINITY), zero));
  const Value limit = Named(body, factor * (a.re * b.re + a.im * b.im), factor * (a.im * b.re - a.re * b.im));
  const Value of_zero = {endless * x.re, endless * x.im};
  const Value chosen = SelectValue(by_zero, of_zero, SelectValue(body.Name(Or(grows, vanishes)), limit, quotient));
  return SelectValue(lost, {body.Name(chosen.re), body.Name(chosen.im)}, quotient);
}

// Smith's method: divides by the larger part first, so that squares do not overflow.
Value DivC(const Value& x, const Value& y, Body& body) {
  const Expr wide = body.Name(Compare(Op::kGe, F("fabs", y.re), F("fabs", y.im)));
  const Expr big = body.Name(Select(wide, y.re, y.im)), small = body.Name(Select(wide, y.im, y.re));
  const Expr ratio = body.Name(Select(Compare(Op::kEq, small, Like(small, 0)), Like(small, 0), Div(small, big)));
  const Expr scale = body.Name(big + small * ratio);
  const Expr re = Select(wide, x.re + x.im * ratio, x.re * ratio + x.im);
  const Expr im = Select(wide, x.im - x.re * ratio, x.im * ratio - x.re);
  return Recovered(x, y, Named(body, Div(body.Name(re), scale), Div(body.Name(im), scale)), body);
}

// Beyond these exp overflows, which its product with a cosine need not do.
double LargestExponent(const Expr& x) { return x->type.element == hlo::ElementType::kF64 ? 709 : 88; }

Value ExpC(const Value& x, Body& body) {
  const Expr far = body.Name(Compare(Op::kGt, x.re, Like(x.re, LargestExponent(x.re))));
  const Expr scale = body.Name(F("exp", body.Name(Select(far, x.re * Like(x.re, 0.5), x.re))));
  const Expr again = body.Name(Select(far, scale, Like(scale, 1)));
  const Expr real_only = body.Name(Compare(Op::kEq, x.im, Like(x.im, 0)));
  return Named(body, scale * F("cos", x.im) * again, Select(real_only, x.im, scale * F("sin", x.im) * again));
}

// A number made small enough that sums of its parts and of their squares do not overflow, and what undoes that: PoCL's
// hypot gives the larger part alone from 2^126 on, its atan2 of f64 overflows from 2^1000 on.
constexpr double kTooLarge = 0x1p100, kLess = 0x1p-100, kRootOfMore = 0x1p50, kLogOfMore = 69.314718055994530942;
struct Lessened {
  Value value;
  Expr is_less;
  Expr Undone(double by) const { return Select(is_less, Like(value.re, by), Like(value.re, 1)); }
};
Lessened Lessen(const Value& x, Body& body) {
  const Expr is_less = body.Name(Compare(Op::kGt, F("fmax", F("fabs", x.re), F("fabs", x.im)), Like(x.re, kTooLarge)));
  const Expr factor = body.Name(Select(is_less, Like(x.re, kLess), Like(x.re, 1)));
  return {Named(body, x.re * factor, x.im * factor), is_less};
}

Expr AbsC(const Value& x, Body& body) {
  const Lessened less = Lessen(x, body);
  return body.Name(F("hypot", less.value.re, less.value.im) * less.Undone(1 / kLess));
}

Value LogC(const Value& x, Body& body) {
  const Lessened less = Lessen(x, body);
  const Expr more = Select(less.is_less, Like(x.re, kLogOfMore), Like(x.re, 0));
  return Named(body, F("log", F("hypot", less.value.re, less.value.im)) + more,
               F("atan2", less.value.im, less.value.re));
}

Value SqrtC(const Value& x, Body& body) {
  const Lessened less = Lessen(x, body);
  const Value& y = less.value;
  const Expr zero = Like(x.re, 0);
  const Expr length = F("hypot", y.re, y.im);
  const Expr big = body.Name(F("sqrt", (length + F("fabs", y.re)) * Like(x.re, 0.5)));
  const Expr small = body.Name(Select(Compare(Op::kEq, big, zero), zero, Div(F("fabs", y.im), big + big)));
  const Expr right = body.Name(Compare(Op::kGe, x.re, zero)), more = body.Name(less.Undone(kRootOfMore));
  const Expr endless = body.Name(IsInfinite(x.im));
  const Value root =
      Named(body, Select(right, big, small) * more, F("copysign", Select(right, small, big) * more, x.im));
  return SelectValue(endless, {Like(x.re, INFINITY), x.im}, root);
}

Value ScaleC(const Value& x, double factor) { return {x.re * Like(x.re, factor), x.im * Like(x.im, factor)}; }
Value OneC(const Value& x) { return {Like(x.re, 1), Like(x.im, 0)}; }

Value SinC(const Value& x, Body& body) {
  return Named(body, F("sin", x.re) * F("cosh", x.im), F("cos", x.re) * F("sinh", x.im));
}
Value CosC(const Value& x, Body& body) {
  return Named(body, F("cos", x.re) * F("cosh", x.im), Unary(Op::kNeg, F("sin", x.re) * F("sinh", x.im)));
}
Value SinhC(const Value& x, Body& body) {
  return Named(body, F("sinh", x.re) * F("cos", x.im), F("cosh", x.re) * F("sin", x.im));
}
Value CoshC(const Value& x, Body& body) {
  return Named(body, F("cosh", x.re) * F("cos", x.im), F("sinh", x.re) * F("sin", x.im));
}

// tanh(a + bi) = (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b); beyond 20 the real part is 1 in both
// precisions.
Value TanhC(const Value& x, Body& body) {
  const Expr most = Like(x.re, 20), least = Like(x.re, -20);
  const Expr below = body.Name(Select(Compare(Op::kGt, x.re, most), most, x.re));  // NaN stays
  const Expr a = body.Name(Select(Compare(Op::kLt, below, least), least, below));
  const Expr sinh = body.Name(F("sinh", a)), sin = body.Name(F("sin", x.im)), cos = body.Name(F("cos", x.im));
  const Expr down = body.Name(sinh * sinh + cos * cos);
  const Value quotient = Named(body, Div(sinh * F("cosh", a), down), Div(sin * cos, down));
  const Value limit = {F("copysign", Like(a, 1), a), F("copysign", Like(a, 0), x.im)};
  return SelectValue(body.Name(And(IsInfinite(x.re), Not(IsFinite(x.im)))), limit, quotient);
}
Value TanC(const Value& x, Body& body) {  // tan z = -i tanh(iz)
  const Value t = TanhC({Unary(Op::kNeg, x.im), x.re}, body);
  return {t.im, body.Name(Unary(Op::kNeg, t.re))};
}

Value PowC(const Value& x, const Value& y, Body& body) {
  const Value power = ExpC(MulC(LogC(x, body), y, body), body);
  const Expr zero = Like(x.re, 0), one = Like(x.re, 1);
  const Expr base_zero = body.Name(And(Compare(Op::kEq, x.re, zero), Compare(Op::kEq, x.im, zero)));
  const Expr power_zero = body.Name(And(Compare(Op::kEq, y.re, zero), Compare(Op::kEq, y.im, zero)));
  return SelectValue(power_zero, {one, zero}, SelectValue(base_zero, {zero, zero}, power));
}

Value SignC(const Value& x, Body& body) {
  const Value y = Lessen(x, body).value;
  const Expr length = body.Name(F("hypot", y.re, y.im));
  const Expr is_zero = body.Name(Compare(Op::kEq, length, Like(length, 0)));
  return Named(body, Select(is_zero, x.re, Div(y.re, length)), Select(is_zero, x.im, Div(y.im, length)));
}

Value Log1pC(const Value& x, Body& body) {
  // log|1 + z| = log1p(2a + a^2 + b^2) / 2 keeps the digits of a small z.
  const Expr a = x.re;
  const Expr inner = a * (a + Like(a, 2)) + x.im * x.im;
  const Value whole = LogC({body.Name(a + Like(a, 1)), x.im}, body);
  const Expr is_large = Compare(Op::kGt, F("fmax", F("fabs", a), F("fabs", x.im)), Like(a, 0x1p30));
  return Named(body, Select(body.Name(is_large), whole.re, F("log1p", inner) * Like(a, 0.5)), whole.im);
}
Value Expm1C(const Value& x, Body& body) {
  // e^a cos b - 1 = expm1(a) cos b - 2 sin^2(b / 2)
  const Expr half = body.Name(F("sin", x.im * Like(x.im, 0.5)));
  return Named(body, F("expm1", x.re) * F("cos", x.im) - Like(half, 2) * half * half, ExpC(x, body).im);
}

using UnaryRule = Value (*)(const Value&, Body&);
const std::map<Opcode, UnaryRule>& UnaryRules() {
  static const std::map<Opcode, UnaryRule> kRules = {
      {Opcode::kExp, ExpC},
      {Opcode::kLog, LogC},
      {Opcode::kSqrt, SqrtC},
      {Opcode::kSin, SinC},
      {Opcode::kCos, CosC},
      {Opcode::kSinh, SinhC},
      {Opcode::kCosh, CoshC},
      {Opcode::kTanh, TanhC},
      {Opcode::kTan, TanC},
      {Opcode::kSign, SignC},
      {Opcode::kLog1p, Log1pC},
      {Opcode::kExpm1, Expm1C},
      {Opcode::kNegate, [](const Value& x, Body& b) { return Named(b, Unary(Op::kNeg, x.re), Unary(Op::kNeg, x.im)); }},
      {Opcode::kCopy, [](const Value& x, Body&) { return x; }},
      {Opcode::kReal,
       [](const Value& x, Body&) {
         return Value{x.re, nullptr};
       }},
      {Opcode::kImag,
       [](const Value& x, Body&) {
         return Value{x.im, nullptr};
       }},
      {Opcode::kAbs,
       [](const Value& x, Body& b) {
         return Value{AbsC(x, b), nullptr};
       }},
      {Opcode::kRsqrt, [](const Value& x, Body& b) { return DivC(OneC(x), SqrtC(x, b), b); }},
      {Opcode::kCbrt, [](const Value& x, Body& b) { return ExpC(ScaleC(LogC(x, b), 1.0 / 3), b); }},
      {Opcode::kLogistic,
       [](const Value& x, Body& b) { return DivC(OneC(x), AddC(OneC(x), ExpC(ScaleC(x, -1), b), b), b); }},
  };
  return kRules;
}

// By the real parts alone, as on XLA:CPU.
Value MaximumC(const Value& x, const Value& y, Body& body) {
  return SelectValue(body.Name(Compare(Op::kGe, x.re, y.re)), x, y);
}
Value MinimumC(const Value& x, const Value& y, Body& body) {
  return SelectValue(body.Name(Compare(Op::kLe, x.re, y.re)), x, y);
}

// Ordered by the real parts, then by the imaginary ones; what is not greater is less or equal, so NaN among the latter
// too.
Expr CompareC(hlo::ComparisonDirection direction, const Value& x, const Value& y, Body& body) {
  using hlo::ComparisonDirection;
  const Expr same = body.Name(Compare(Op::kEq, x.re, y.re));
  const auto ordered = [&](Op real, const Expr& imaginary) {
    return Or(Compare(real, x.re, y.re), And(same, imaginary));
  };
  switch (direction) {
    case ComparisonDirection::kEq: return And(same, Compare(Op::kEq, x.im, y.im));
    case ComparisonDirection::kNe: return Not(body.Name(And(same, Compare(Op::kEq, x.im, y.im))));
    case ComparisonDirection::kLt: return ordered(Op::kLt, Compare(Op::kLt, x.im, y.im));
    case ComparisonDirection::kGt: return ordered(Op::kGt, Compare(Op::kGt, x.im, y.im));
    case ComparisonDirection::kLe: return ordered(Op::kLt, Not(body.Name(Compare(Op::kGt, x.im, y.im))));
    case ComparisonDirection::kGe: return ordered(Op::kGt, Not(body.Name(Compare(Op::kLt, x.im, y.im))));
  }
  return nullptr;
}

using BinaryRule = Value (*)(const Value&, const Value&, Body&);
const std::map<Opcode, BinaryRule>& BinaryRules() {
  static const std::map<Opcode, BinaryRule> kRules = {
      {Opcode::kAdd, AddC},
      {Opcode::kSubtract, SubC},
      {Opcode::kMultiply, MulC},
      {Opcode::kDivide, DivC},
      {Opcode::kPower, PowC},
      {Opcode::kMaximum, MaximumC},
      {Opcode::kMinimum, MinimumC},
      {Opcode::kAtan2,
       [](const Value& y, const Value& x, Body& b) {
         // -i log((x + iy) / sqrt(x^2 + y^2))
         const Value up = AddC(x, {Unary(Op::kNeg, y.im), y.re}, b);
         const Value l = LogC(DivC(up, SqrtC(AddC(MulC(x, x, b), MulC(y, y, b), b), b), b), b);
         return Named(b, l.im, Unary(Op::kNeg, l.re));
       }},
  };
  return kRules;
}

}  // namespace

bool HasComplexForm(Opcode opcode) {
  return UnaryRules().count(opcode) != 0 || BinaryRules().count(opcode) != 0 || opcode == Opcode::kCompare ||
         opcode == Opcode::kClamp;
}

Value EmitComplexBinary(Opcode opcode, const Value& x, const Value& y, Body& body) {
  const auto found = BinaryRules().find(opcode);
  if (found == BinaryRules().end())
    Fail(ErrorCode::kUnimplemented, "{} of complex numbers has no kernel", hlo::OpcodeName(opcode));
  return found->second(x, y, body);
}

Value EmitComplex(const hlo::Instruction& instruction, std::span<const Value> operands, Body& body) {
  const Value& x = operands[0];
  if (instruction.Is(Opcode::kCompare)) {
    return {body.Name(CompareC(instruction.As<hlo::attr::Compare>().direction, x, operands[1], body)), nullptr};
  }
  if (instruction.Is(Opcode::kClamp)) return MinimumC(MaximumC(x, operands[1], body), operands[2], body);
  if (operands.size() == 2) return EmitComplexBinary(instruction.opcode(), x, operands[1], body);
  const auto found = UnaryRules().find(instruction.opcode());
  if (found == UnaryRules().end()) {
    Fail(ErrorCode::kUnimplemented, "{}: {} of complex numbers has no kernel", instruction.name(),
         hlo::OpcodeName(instruction.opcode()));
  }
  return found->second(x, body);
}

}  // namespace hlorun::opencl
