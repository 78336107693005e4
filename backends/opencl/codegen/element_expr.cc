#include "backends/opencl/codegen/element_expr.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "backends/opencl/codegen/complex_expr.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

Expr F(const char* function, const Expr& x) { return Call(x->type, function, {x}); }
Expr F(const char* function, const Expr& x, const Expr& y) { return Call(x->type, function, {x, y}); }
Expr Like(const Expr& x, double value) { return Constant(value, x->type); }

ElementType UnsignedOf(ElementType type) {
  switch (hlo::BitsOf(type)) {
    case 8: return ElementType::kU8;
    case 16: return ElementType::kU16;
    case 32: return ElementType::kU32;
    default: return ElementType::kU64;
  }
}
ElementType SignedOf(ElementType type) {
  switch (hlo::BitsOf(type)) {
    case 8: return ElementType::kS8;
    case 16: return ElementType::kS16;
    case 32: return ElementType::kS32;
    default: return ElementType::kS64;
  }
}

int64_t MaxOf(ElementType type) {
  const int bits = hlo::BitsOf(type) - (hlo::IsSigned(type) ? 1 : 0);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
}
int64_t MinOf(ElementType type) { return hlo::IsSigned(type) ? -MaxOf(type) - 1 : 0; }

// What a rule sees: the HLO type of the operands (`type`), of the result, and where to put common subexpressions.
struct Context {
  const Instruction* instruction;  // null when only an opcode is known
  ElementType type;
  ElementType result;
  Body& body;
};

// --- unary -----------------------------------------------------------------------------------------------------------

using UnaryRule = Expr (*)(const Expr&, const Context&);

Expr NegateRule(const Expr& x, const Context&) {
  return hlo::IsInteger(x->type.element) ? Wrapping(Op::kSub, Zero(x->type), x) : Unary(Op::kNeg, x);
}
Expr AbsRule(const Expr& x, const Context& c) {
  if (hlo::IsFloating(x->type.element)) return F("fabs", x);
  if (hlo::IsUnsigned(x->type.element)) return x;
  return Select(Compare(Op::kLt, x, Zero(x->type)), NegateRule(x, c), x);
}
// A zero, or a denormal, which is one too: with nothing left but its sign.
Expr SignedZero(const Expr& x) { return F("copysign", Zero(x->type), x); }
Expr IsZero(const Expr& x) { return Compare(Op::kEq, x, Zero(x->type)); }

Expr SignRule(const Expr& x, const Context& c) {
  const Expr zero = Zero(x->type), one = Like(x, 1);
  if (hlo::IsUnsigned(x->type.element)) return Select(Compare(Op::kGt, x, zero), one, zero);
  if (hlo::IsInteger(x->type.element)) {
    return Select(Compare(Op::kGt, x, zero), one, Select(Compare(Op::kLt, x, zero), Like(x, -1), zero));
  }
  const Expr unit = c.body.Name(F("copysign", one, x));
  return Select(Compare(Op::kNe, x, x), x, Select(IsZero(x), SignedZero(x), unit));
}
Expr NotRule(const Expr& x, const Context&) { return Not(x); }
Expr IsFiniteRule(const Expr& x, const Context&) {
  const bool is_double = x->type.element == ElementType::kF64;
  const Expr exponent = is_double ? Int(0x7ff0000000000000, {ElementType::kU64}) : Int(0x7f800000, {ElementType::kU32});
  const Expr bits = BitCast(x, exponent->type.element);
  return Compare(Op::kNe, And(bits, Splat(exponent, bits->type.lanes)), exponent);
}
Expr Polynomial(const Expr& x, std::initializer_list<double> coefficients, const Expr& last) {
  Expr sum = Like(x, *coefficients.begin());
  for (auto c = coefficients.begin() + 1; c != coefficients.end(); ++c) sum = Fma(sum, x, Like(x, *c));
  return Fma(sum, x, last);
}
// f32 within 0.94 ulp, a fifth of the time of PoCL's built-in (experiments/memory, part 2): an odd polynomial near
// zero, 1 - exp(a polynomial) beyond.
Expr ErfRule(const Expr& x, const Context& c) {
  if (x->type.element != ElementType::kF32) return F("erf", x);
  const Expr t = c.body.Name(F("fabs", x)), s = c.body.Name(x * x);
  const Expr r = Fma(t, Like(x, -1.72853470e-5), Like(x, 3.83197126e-4)),
             u = Fma(t, Like(x, -3.88396438e-3), Like(x, 2.42546219e-2));
  Expr exponent = Fma(r, s, u);
  for (const double coefficient : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    exponent = Fma(exponent, t, Like(x, coefficient));
  exponent = Fma(exponent, t, Unary(Op::kNeg, t));
  const Expr large = F("copysign", Like(x, 1) - F("exp", exponent), x);
  const Expr near = Polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1},
                               Like(x, 1.28379166e-1));
  return Select(Compare(Op::kGt, t, Like(x, 0.927734375)), c.body.Name(large), Fma(near, x, x));
}
Expr LogisticRule(const Expr& x, const Context&) {
  if (x->type.element == ElementType::kF32) return F("logistic", x);
  return Div(Like(x, 1), Like(x, 1) + F("exp", Unary(Op::kNeg, x)));
}
// XLA:CPU returns tiny arguments of these as they are.
template <const char* kFunction>
Expr KeepsTinyRule(const Expr& x, const Context&) {
  return Select(IsZero(x), x, F(kFunction, x));
}
template <const char* kFunction>
Expr FlushesTinyRule(const Expr& x, const Context&) {
  if (x->type.element != ElementType::kF64) return F(kFunction, x);
  const Expr tiny = Compare(Op::kLt, F("fabs", x), Like(x, 1e-17));
  return Select(IsZero(x), SignedZero(x), Select(tiny, x, F(kFunction, x)));
}
constexpr char kAsin[] = "asin", kAsinh[] = "asinh", kAtanh[] = "atanh", kSinh[] = "sinh", kExpm1[] = "expm1",
               kLog1p[] = "log1p", kTan[] = "tan", kTanh[] = "tanh";
Expr RsqrtRule(const Expr& x, const Context&) { return Div(Like(x, 1), F("sqrt", x)); }
Expr ClzRule(const Expr& x, const Context& c) {
  const int extra = hlo::BitsOf(x->type.element) - hlo::BitsOf(c.type);
  if (extra == 0) return F("clz", x);
  // A type narrower than its byte: shift its bits to the top, ones below them so that zero counts its own width.
  const Expr u = BitCast(x, ElementType::kU8);
  const Expr top = Or(Binary(Op::kShl, u, Int(extra, u->type)), Int((1 << extra) - 1, u->type));
  return BitCast(F("clz", top), x->type.element);
}
// On the bits without their sign: rounds to nearest even, then what the smaller exponent range cannot hold becomes
// infinity or zero. f16 has bits of its own, whose denormals count; bf16 is rounded as the f32 that holds it.
Expr ReducePrecisionRule(const Expr& x, const Context& c) {
  const auto& to = c.instruction->As<hlo::attr::ReducePrecision>();
  const bool is_half = c.type == ElementType::kF16, is_double = x->type.element == ElementType::kF64;
  const int mantissa = is_half ? 10 : is_double ? 52 : 23, exponent = is_half ? 5 : is_double ? 11 : 8;
  const Type bits_type{is_double ? ElementType::kU64 : ElementType::kU32, 1};
  const auto constant = [&](uint64_t value) { return Int(static_cast<int64_t>(value), bits_type); };
  const uint64_t sign_bit = uint64_t{1} << (mantissa + exponent);
  const uint64_t infinity = ((uint64_t{1} << exponent) - 1) << mantissa;
  const Expr bits = c.body.Name(is_half ? Cast(ToBits(x, c.type), bits_type.element) : BitCast(x, bits_type.element));
  const Expr magnitude = c.body.Name(And(bits, constant(sign_bit - 1)));
  Expr rounded = magnitude;
  const int dropped = mantissa - static_cast<int>(to.mantissa_bits);
  if (dropped > 0) {
    const uint64_t half_less_one = (uint64_t{1} << (dropped - 1)) - 1;
    const Expr odd = And(Binary(Op::kShr, magnitude, constant(static_cast<uint64_t>(dropped))), constant(1));
    rounded = c.body.Name(And(magnitude + constant(half_less_one) + odd, constant(~((uint64_t{1} << dropped) - 1))));
  }
  if (to.exponent_bits < exponent) {
    const int64_t bias = (int64_t{1} << (exponent - 1)) - 1, reduced = (int64_t{1} << (to.exponent_bits - 1)) - 1;
    const Expr overflow = constant(static_cast<uint64_t>(bias + reduced + 1) << mantissa);
    const Expr smallest = constant(static_cast<uint64_t>(bias - reduced + 1) << mantissa);
    rounded = c.body.Name(Select(Compare(Op::kGe, rounded, overflow), constant(infinity),
                                 Select(Compare(Op::kLt, rounded, smallest), constant(0), rounded)));
  }
  const Expr is_nan = Compare(Op::kGt, magnitude, constant(infinity));
  const Expr result = c.body.Name(Select(is_nan, bits, Or(rounded, And(bits, constant(sign_bit)))));
  return is_half ? FromBits(Cast(result, ElementType::kU16), c.type) : BitCast(result, x->type.element);
}
// Of s4, the ones of the byte that it lies in; of s2, its own: as XLA:CPU.
Expr PopulationCountRule(const Expr& x, const Context& c) {
  return F("popcount", hlo::BitsOf(c.type) == 2 ? And(x, Int(3, x->type)) : x);
}
#define BUILTIN(name) [](const Expr& x, const Context&) { return F(name, x); }

const std::map<Opcode, UnaryRule>& UnaryRules() {
  static const std::map<Opcode, UnaryRule> kRules = {
      {Opcode::kAbs, AbsRule},
      {Opcode::kAcos, BUILTIN("acos")},
      {Opcode::kAcosh, BUILTIN("acosh")},
      {Opcode::kAsin, KeepsTinyRule<kAsin>},
      {Opcode::kAsinh, KeepsTinyRule<kAsinh>},
      {Opcode::kAtanh, KeepsTinyRule<kAtanh>},
      {Opcode::kCbrt, BUILTIN("cbrt")},
      {Opcode::kCeil, BUILTIN("ceil")},
      {Opcode::kClz, ClzRule},
      {Opcode::kCopy, [](const Expr& x, const Context&) { return x; }},
      {Opcode::kCos, BUILTIN("cos")},
      {Opcode::kCosh, BUILTIN("cosh")},
      {Opcode::kErf, ErfRule},
      {Opcode::kExp, BUILTIN("exp")},
      {Opcode::kExpm1, KeepsTinyRule<kExpm1>},
      {Opcode::kFloor, BUILTIN("floor")},
      {Opcode::kIsFinite, IsFiniteRule},
      {Opcode::kLog, BUILTIN("log")},
      {Opcode::kLog1p, FlushesTinyRule<kLog1p>},
      {Opcode::kLogistic, LogisticRule},
      {Opcode::kNegate, NegateRule},
      {Opcode::kNot, NotRule},
      {Opcode::kPopulationCount, PopulationCountRule},
      {Opcode::kReal, [](const Expr& x, const Context&) { return x; }},
      {Opcode::kImag, [](const Expr& x, const Context&) { return Zero(x->type); }},
      {Opcode::kReducePrecision, ReducePrecisionRule},
      {Opcode::kRoundNearestAfz, BUILTIN("round")},
      {Opcode::kRoundNearestEven, BUILTIN("rint")},
      {Opcode::kRsqrt, RsqrtRule},
      {Opcode::kSign, SignRule},
      {Opcode::kSin, BUILTIN("sin")},
      {Opcode::kSinh, KeepsTinyRule<kSinh>},
      {Opcode::kSqrt, BUILTIN("sqrt")},
      {Opcode::kTan, KeepsTinyRule<kTan>},
      {Opcode::kTanh, FlushesTinyRule<kTanh>},
  };
  return kRules;
}

// --- binary ----------------------------------------------------------------------------------------------------------

using BinaryRule = Expr (*)(const Expr&, const Expr&, const Context&);

bool IsInt(const Expr& x) { return hlo::IsInteger(x->type.element); }
bool IsPred(const Expr& x) { return x->type.element == ElementType::kPred; }

Expr AddRule(const Expr& x, const Expr& y, const Context&) {
  return IsPred(x) ? Or(x, y) : IsInt(x) ? Wrapping(Op::kAdd, x, y) : x + y;
}
Expr SubtractRule(const Expr& x, const Expr& y, const Context&) {
  return IsPred(x) ? Binary(Op::kXor, x, y) : IsInt(x) ? Wrapping(Op::kSub, x, y) : x - y;
}
Expr MultiplyRule(const Expr& x, const Expr& y, const Context&) {
  return IsPred(x) ? And(x, y) : IsInt(x) ? Wrapping(Op::kMul, x, y) : x * y;
}

// A divisor that cannot trap: zero and MIN / -1 divide by one instead.
Expr SafeDivisor(const Expr& x, const Expr& y, const Context& c) {
  Expr trap = Compare(Op::kEq, y, Zero(y->type));
  if (hlo::IsSigned(x->type.element)) {
    trap = Or(trap, And(Compare(Op::kEq, y, Like(y, -1)), Compare(Op::kEq, x, Int(MinOf(x->type.element), x->type))));
  }
  return c.body.Name(Select(trap, Like(y, 1), y));
}
bool DividesSafely(const Expr& y) {
  return y->kind == ExprKind::kIntConstant && y->integer != 0 && !(hlo::IsSigned(y->type.element) && y->integer == -1);
}
Expr DivideRule(const Expr& x, const Expr& y, const Context& c) {
  if (c.type == ElementType::kBF16) return Call(x->type, kQuotientBf16, {x, y});
  if (!IsInt(x)) return Div(x, y);
  if (DividesSafely(y)) return Div(x, y);
  const Expr quotient = c.body.Name(Div(x, SafeDivisor(x, y, c)));
  return Select(Compare(Op::kEq, y, Zero(y->type)), Int(-1, x->type), quotient);
}
Expr RemainderRule(const Expr& x, const Expr& y, const Context& c) {
  if (!IsInt(x)) return F("fmod", x, y);
  if (DividesSafely(y)) return Binary(Op::kMod, x, y);
  const Expr rest = c.body.Name(Binary(Op::kMod, x, SafeDivisor(x, y, c)));
  return Select(Compare(Op::kEq, y, Zero(y->type)), x, rest);
}
// A real constant that is no zero which the rule below would have to look at: of the sign that loses against none.
bool DecidesZeros(const Expr& bound, bool maximum) {
  if (bound->kind != ExprKind::kFloatConstant || std::isnan(bound->real)) return false;
  return maximum ? bound->real >= 0 && !std::signbit(bound->real) : bound->real <= 0 && std::signbit(bound->real);
}
bool IsReal(const Expr& x) { return x->kind == ExprKind::kFloatConstant; }

// NaN wins, -0 is below +0, and a denormal is a zero.
Expr Extreme(Expr x, Expr y, bool maximum, const Context& c) {
  if (IsReal(x) && !IsReal(y)) std::swap(x, y);
  const Expr pick = Select(Or(Compare(maximum ? Op::kGt : Op::kLt, x, y), Compare(Op::kNe, x, x)), x, y);
  if (DecidesZeros(y, maximum)) return pick;
  const ElementType bits_type = x->type.element == ElementType::kF64 ? ElementType::kU64 : ElementType::kU32;
  const Expr signs = Binary(maximum ? Op::kAnd : Op::kOr, BitCast(x, bits_type), BitCast(y, bits_type));
  const Expr sign_bit =
      Int(bits_type == ElementType::kU64 ? std::numeric_limits<int64_t>::min() : INT64_C(0x80000000), signs->type);
  const Expr named = c.body.Name(pick);
  return Select(IsZero(named), BitCast(And(signs, sign_bit), x->type.element), named);
}
Expr MaximumRule(const Expr& x, const Expr& y, const Context& c) {
  if (IsPred(x)) return Or(x, y);
  return IsInt(x) ? Max(x, y) : Extreme(x, y, /*maximum=*/true, c);
}
Expr MinimumRule(const Expr& x, const Expr& y, const Context& c) {
  if (IsPred(x)) return And(x, y);
  return IsInt(x) ? Min(x, y) : Extreme(x, y, /*maximum=*/false, c);
}
Expr AndRule(const Expr& x, const Expr& y, const Context&) { return And(x, y); }
Expr OrRule(const Expr& x, const Expr& y, const Context&) { return Or(x, y); }
Expr XorRule(const Expr& x, const Expr& y, const Context&) { return Binary(Op::kXor, x, y); }

Expr Shift(const Expr& x, const Expr& y, const Context& c, Op op, bool arithmetic) {
  const int bits = hlo::BitsOf(c.type), carrier = hlo::BitsOf(x->type.element);
  const ElementType unsigned_type = UnsignedOf(x->type.element);
  const Expr count = Cast(y, unsigned_type);
  const Expr inside = c.body.Name(Compare(Op::kLt, count, Int(bits, count->type)));
  const Expr safe = c.body.Name(Select(inside, count, Int(arithmetic ? bits - 1 : 0, count->type)));
  Expr value = Cast(x, arithmetic ? SignedOf(x->type.element) : unsigned_type);
  if (arithmetic && bits < carrier && hlo::IsUnsigned(x->type.element)) {  // its sign is its own highest bit
    const Expr extra = Int(carrier - bits, value->type);
    value = c.body.Name(Binary(Op::kShr, c.body.Name(Binary(Op::kShl, value, extra)), extra));
  }
  if (!arithmetic && op == Op::kShr && bits < carrier) value = And(value, Int((1 << bits) - 1, value->type));
  const Expr shifted = Cast(Binary(op, value, Cast(safe, value->type.element)), x->type.element);
  return arithmetic ? shifted : Select(inside, shifted, Zero(x->type));
}
Expr ShiftLeftRule(const Expr& x, const Expr& y, const Context& c) { return Shift(x, y, c, Op::kShl, false); }
Expr ShiftRightLogicalRule(const Expr& x, const Expr& y, const Context& c) { return Shift(x, y, c, Op::kShr, false); }
Expr ShiftRightArithmeticRule(const Expr& x, const Expr& y, const Context& c) { return Shift(x, y, c, Op::kShr, true); }

// Of f64, the built-ins but for edges: a denormal exponent is no whole number, tiny angles are quotients.
Expr RealPower(const Expr& x, const Expr& y, const Context& c) {
  if (x->type.element != ElementType::kF64) return F("pow", x, y);
  const Expr bits = BitCast(y, ElementType::kU64);
  const Expr is_denormal =
      And(IsZero(y), Compare(Op::kNe, Binary(Op::kShl, bits, Int(1, bits->type)), Zero(bits->type)));
  const Expr undefined =
      And(is_denormal, And(Compare(Op::kLt, x, Zero(x->type)), Compare(Op::kNe, x, Like(x, -INFINITY))));
  // PoCL's built-in goes wrong far beyond the range of results.
  const Expr logarithm = c.body.Name(y * F("log", F("fabs", x)));
  const Expr whole = c.body.Name(Compare(Op::kEq, F("trunc", y), y));
  const Expr far = c.body.Name(And(Compare(Op::kGt, F("fabs", logarithm), Like(x, 1e4)), whole));
  const Expr size = c.body.Name(Select(Compare(Op::kGt, logarithm, Zero(x->type)), Like(x, INFINITY), Zero(x->type)));
  const Expr half = c.body.Name(y * Like(y, 0.5));
  const Expr negative = Compare(Op::kLt, F("copysign", Like(x, 1), x), Zero(x->type));  // -0 too
  const Expr minus = c.body.Name(And(negative, And(whole, Compare(Op::kNe, F("trunc", half), half))));
  const Expr limit = c.body.Name(Select(minus, Unary(Op::kNeg, size), size));
  const Expr base = c.body.Name(Select(IsZero(x), F("copysign", Zero(x->type), x), x));  // of a denormal, noise
  // Intel's built-in flushes a negative result to +0.
  const Expr power = c.body.Name(F("pow", base, y));
  const Expr flushed = Select(minus, Like(x, -0.0), Like(x, 0));
  const Expr near = c.body.Name(Select(IsZero(power), flushed, power));
  // Intel's built-in says NaN of an infinity and a denormal exponent.
  const Expr endless = c.body.Name(And(is_denormal, Compare(Op::kEq, F("fabs", x), Like(x, INFINITY))));
  const Expr grows = Compare(Op::kGt, F("copysign", Like(y, 1), y), Zero(y->type));
  const Expr of_infinity = c.body.Name(Select(grows, Like(x, INFINITY), Zero(x->type)));
  const Expr defined = c.body.Name(Select(endless, of_infinity, Select(far, limit, near)));
  return Select(c.body.Name(undefined), Like(x, std::nan("")), defined);
}
Expr Atan2Rule(const Expr& y, const Expr& x, const Context& c) {
  if (x->type.element != ElementType::kF64) return F("atan2", y, x);
  const Expr quotient = c.body.Name(Div(y, x));
  const Expr tiny = And(Compare(Op::kGt, x, Zero(x->type)), Compare(Op::kLt, F("fabs", quotient), Like(x, 1e-9)));
  // PoCL's built-in overflows on sides beyond 2^1000.
  const Expr huge = Compare(Op::kGt, F("fmax", F("fabs", x), F("fabs", y)), Like(x, 0x1p1000));
  const Expr scale = c.body.Name(Select(c.body.Name(huge), Like(x, 0x1p-100), Like(x, 1)));
  return Select(c.body.Name(tiny), quotient, F("atan2", c.body.Name(y * scale), c.body.Name(x * scale)));
}

// Integer powers by squaring, as a fixed number of steps so that lanes stay together. As on XLA:CPU, exponents are
// signed whatever the type and only their lowest six bits count; negative ones give the reciprocal's integer part: 1
// for 1, +-1 for -1, else 0.
Expr PowerRule(const Expr& x, const Expr& y, const Context& c) {
  if (!IsInt(x)) return RealPower(x, y, c);
  constexpr int kExponentBits = 6;
  const ElementType unsigned_type = UnsignedOf(x->type.element);
  const Expr one = Int(1, {unsigned_type});
  const Var result = c.body.Mutable(one, "power"), square = c.body.Mutable(Cast(x, unsigned_type), "square"),
            rest = c.body.Mutable(Cast(y, unsigned_type), "rest");
  const Var step = MakeVar(c.body.FreshName("s"), kIndex32);
  const Expr odd = Compare(Op::kNe, And(Ref(rest), one), Zero(one->type));
  c.body.Add(For(LoopRole::kSerial, step, Int(0), Int(kExponentBits),
                 Block({Assign(result, Select(odd, Ref(result) * Ref(square), Ref(result))),
                        Assign(square, Ref(square) * Ref(square)), Assign(rest, Binary(Op::kShr, Ref(rest), one))})));
  const Expr power = Cast(Ref(result), x->type.element);
  const Expr exponent = Cast(y, SignedOf(x->type.element));
  const Expr even = Compare(Op::kEq, And(y, Like(y, 1)), Zero(y->type));
  const Expr minus_one = Int(-1, x->type);
  const Expr reciprocal =
      Select(Compare(Op::kEq, x, Like(x, 1)), x,
             Select(Compare(Op::kEq, x, minus_one), Select(even, Like(x, 1), minus_one), Zero(x->type)));
  return Select(Compare(Op::kLt, exponent, Zero(exponent->type)), c.body.Name(reciprocal), power);
}

const std::map<Opcode, BinaryRule>& BinaryRules() {
  static const std::map<Opcode, BinaryRule> kRules = {
      {Opcode::kAdd, AddRule},
      {Opcode::kAnd, AndRule},
      {Opcode::kAtan2, Atan2Rule},
      {Opcode::kDivide, DivideRule},
      {Opcode::kMaximum, MaximumRule},
      {Opcode::kMinimum, MinimumRule},
      {Opcode::kMultiply, MultiplyRule},
      {Opcode::kOr, OrRule},
      {Opcode::kPower, PowerRule},
      {Opcode::kRemainder, RemainderRule},
      {Opcode::kShiftLeft, ShiftLeftRule},
      {Opcode::kShiftRightArithmetic, ShiftRightArithmeticRule},
      {Opcode::kShiftRightLogical, ShiftRightLogicalRule},
      {Opcode::kSubtract, SubtractRule},
      {Opcode::kXor, XorRule},
  };
  return kRules;
}

// --- the rest --------------------------------------------------------------------------------------------------------

// Floats ordered as their bits are: -NaN < -inf < ... < -0 < +0 < ... < NaN.
Expr TotalOrderKey(const Expr& x) {
  const ElementType type = x->type.element == ElementType::kF64 ? ElementType::kS64 : ElementType::kS32;
  const Expr bits = BitCast(x, type);
  return Select(Compare(Op::kLt, bits, Zero(bits->type)), Binary(Op::kXor, bits, Int(MaxOf(type), bits->type)), bits);
}

Expr CompareExpr(const Instruction& instruction, Expr x, Expr y, Body& body) {
  static constexpr Op kOps[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe};
  const auto& compare = instruction.As<hlo::attr::Compare>();
  if (IsPred(x)) {
    x = Cast(x, ElementType::kU8);
    y = Cast(y, ElementType::kU8);
  }
  if (compare.type == hlo::ComparisonType::kTotalOrder && hlo::IsFloating(x->type.element)) {
    x = TotalOrderKey(x);
    y = TotalOrderKey(y);
  }
  return body.Name(Compare(kOps[static_cast<int>(compare.direction)], x, y));
}

// Saturating, NaN becomes 0. The bounds are compared as floats: beyond them lies nothing that converts.
Expr FloatToInt(const Expr& x, ElementType to, Body& body) {
  const ElementType compute = ComputeType(to);
  const double low = static_cast<double>(MinOf(to)),
               high = std::ldexp(1.0, hlo::BitsOf(to) - (hlo::IsSigned(to) ? 1 : 0));
  const Expr over = body.Name(Compare(Op::kGe, x, Like(x, high))), under = body.Name(Compare(Op::kLe, x, Like(x, low)));
  const Expr is_nan = Compare(Op::kNe, x, x);
  const Expr inside = body.Name(Select(Or(over, Or(under, is_nan)), Zero(x->type), x));
  const Expr highest = to == ElementType::kU64 ? Int(-1, {compute}) : Int(MaxOf(to), {compute});
  return Select(over, highest, Select(under, Int(MinOf(to), {compute}), Cast(inside, compute)));
}

Expr StochasticConvert(const Instruction& instruction, const Expr& x, const Expr& random, Body& body) {
  // The fraction that truncation drops is compared with the random bits, as a fraction of their range.
  const ElementType to = instruction.shape().element_type();
  if (!hlo::IsInteger(to)) {
    Fail(ErrorCode::kUnimplemented, "{}: stochastic-convert to {} has no kernel", instruction.name(),
         hlo::ElementTypeName(to));
  }
  const Expr down = body.Name(F("trunc", x));
  const Expr fraction = F("fabs", x - down);
  const Expr threshold = Cast(random, x->type.element) * Like(x, std::ldexp(1.0, -hlo::BitsOf(random->type.element)));
  const Expr away = F("copysign", Like(x, 1), x);
  return FloatToInt(body.Name(Select(Compare(Op::kLt, threshold, fraction), down + away, down)), to, body);
}

Expr ClampExpr(const Expr& low, const Expr& x, const Expr& high, const Context& c) {
  const Expr raised = c.body.Name(MaximumRule(low, x, c));
  // What was raised has no denormals left, and its zeros are below a positive bound.
  if (IsReal(high) && high->real > 0)
    return Select(Or(Compare(Op::kLt, raised, high), Compare(Op::kNe, raised, raised)), raised, high);
  return MinimumRule(high, raised, c);
}

// The result is one of the operands.
bool IsChoice(Opcode opcode) { return opcode == Opcode::kMaximum || opcode == Opcode::kMinimum; }

// Whether a denormal never comes out of `opcode`: the CPU flushes what it computes. Functions that are their argument
// near zero give it back as it is.
bool IsFlushed(Opcode opcode) {
  static constexpr std::array kFlushed = {Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply, Opcode::kDivide,
                                          Opcode::kExp, Opcode::kLogistic, Opcode::kSqrt,     Opcode::kRsqrt};
  return std::find(kFlushed.begin(), kFlushed.end(), opcode) != kFlushed.end();
}

Expr RoundResultOf(Opcode opcode, const Expr& x, ElementType storage) {
  return IsFlushed(opcode) ? RoundResult(x, storage) : RoundTo(x, storage);
}

}  // namespace

ir::Type ValueType(ElementType type) { return {ComputeType(hlo::RealOf(type)), 1}; }

Expr Wrapping(Op op, const Expr& x, const Expr& y) {
  const ElementType type = x->type.element;
  if (!hlo::IsSigned(type)) return Binary(op, x, y);
  const ElementType u = UnsignedOf(type);
  return Cast(Binary(op, Cast(x, u), Cast(y, u)), type);
}

Expr RoundTo(const Expr& x, ElementType storage) {
  if (hlo::IsFloating(storage) && hlo::BitsOf(storage) < 32) {
    return Call(x->type, "hl_round_" + std::string(hlo::ElementTypeName(storage)), {x});
  }
  const int missing = hlo::IsInteger(storage) ? hlo::BitsOf(x->type.element) - hlo::BitsOf(storage) : 0;
  if (missing <= 0) return x;
  const Expr shift = Int(missing, x->type);
  return Binary(Op::kShr, Binary(Op::kShl, x, shift), shift);
}

Expr RoundResult(const Expr& x, ElementType storage) {
  return storage == ElementType::kBF16 ? Call(x->type, "hl_result_bf16", {x}) : RoundTo(x, storage);
}

Expr ToBits(const Expr& x, ElementType storage) {
  if (hlo::IsFloating(storage) && hlo::BitsOf(storage) < 32) {
    const ElementType carrier = hlo::BitsOf(storage) == 16 ? ElementType::kU16 : ElementType::kU8;
    return Call({carrier, x->type.lanes}, "hl_to_" + std::string(hlo::ElementTypeName(storage)), {x});
  }
  if (storage == ElementType::kPred) return Cast(x, ElementType::kU8);
  return BitCast(x, UnsignedOf(x->type.element));
}

Expr FromBits(const Expr& bits, ElementType storage) {
  if (hlo::IsFloating(storage) && hlo::BitsOf(storage) < 32) {
    return Call({ElementType::kF32, bits->type.lanes}, "hl_from_" + std::string(hlo::ElementTypeName(storage)), {bits});
  }
  if (storage == ElementType::kPred) return Cast(bits, ElementType::kPred);
  return RoundTo(BitCast(bits, ComputeType(storage)), storage);
}

Value ZeroOf(hlo::ElementType type) {
  const ir::Type t = ValueType(type);
  return {ir::Zero(t), hlo::IsComplex(type) ? ir::Zero(t) : nullptr};
}

Value ConstantValue(const hlo::Literal& literal, int64_t linear) {
  const ElementType type = literal.element_type();
  const Type value_type = ValueType(type);
  if (hlo::IsComplex(type)) {
    const std::complex<double> z = literal.GetComplex(linear);
    return {Real(z.real(), value_type), Real(z.imag(), value_type)};
  }
  if (hlo::IsFloating(type)) return {Real(literal.GetDouble(linear), value_type), nullptr};
  return {Int(literal.GetInt(linear), value_type), nullptr};
}

Value SelectValue(const Expr& condition, const Value& on_true, const Value& on_false) {
  return {Select(condition, on_true.re, on_false.re),
          on_true.im ? Select(condition, on_true.im, on_false.im) : nullptr};
}

Value EmitConvert(const Value& x, ElementType from, ElementType to, Body& body) {
  if (from == to) return x;
  if (hlo::IsComplex(to)) {
    const ElementType part = hlo::RealOf(to);
    const Value re = EmitConvert({x.re, nullptr}, hlo::RealOf(from), part, body);
    const Expr im = x.im ? EmitConvert({x.im, nullptr}, hlo::RealOf(from), part, body).re : Zero(re.re->type);
    return {re.re, im};
  }
  if (hlo::IsComplex(from)) {
    if (to == ElementType::kPred) {
      return {body.Name(Or(Cast(x.re, ElementType::kPred), Cast(x.im, ElementType::kPred))), nullptr};
    }
    return EmitConvert({x.re, nullptr}, hlo::RealOf(from), to, body);
  }
  if (to == ElementType::kPred && from == ElementType::kBF16) {  // its denormals are true, other types' are not
    const Expr bits = BitCast(x.re, ElementType::kU32);
    return {body.Name(Compare(Op::kNe, And(bits, Int(0x7fffffff, bits->type)), Zero(bits->type))), nullptr};
  }
  if (to == ElementType::kPred) return {body.Name(Compare(Op::kNe, x.re, Zero(x.re->type))), nullptr};
  if (hlo::IsFloating(from) && hlo::IsInteger(to)) return {body.Name(FloatToInt(x.re, to, body)), nullptr};
  const Expr cast = body.Name(Cast(x.re, ComputeType(to)));
  const bool widens = hlo::IsFloating(from) && to == ElementType::kF32;
  return {widens ? cast : body.Name(RoundTo(cast, to)), nullptr};
}

Value EmitBinary(Opcode opcode, ElementType type, const Value& x, const Value& y, Body& body) {
  if (hlo::IsComplex(type)) return EmitComplexBinary(opcode, x, y, body);
  const auto found = BinaryRules().find(opcode);
  HLORUN_CHECK(found != BinaryRules().end());
  const Expr value = body.Name(found->second(x.re, y.re, Context{nullptr, type, type, body}));
  return {IsChoice(opcode) ? value : body.Name(RoundResultOf(opcode, value, type)), nullptr};
}

bool IsElementwise(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kCompare || opcode == Opcode::kSelect || opcode == Opcode::kComplex ||
      opcode == Opcode::kConvert || opcode == Opcode::kClamp) {
    return true;
  }
  if (opcode == Opcode::kStochasticConvert) return hlo::IsInteger(instruction.shape().element_type());
  if (instruction.operand_count() == 0 || !instruction.operand(0)->shape().IsArray()) return false;
  if (hlo::IsComplex(instruction.operand(0)->shape().element_type())) return HasComplexForm(opcode);
  return UnaryRules().count(opcode) != 0 || BinaryRules().count(opcode) != 0;
}

Value EmitElementwise(const Instruction& instruction, std::span<const Value> operands, Body& body) {
  const Opcode opcode = instruction.opcode();
  const ElementType result = instruction.shape().element_type(), type = instruction.operand(0)->shape().element_type();
  const Context context{&instruction, type, result, body};
  const Value& x = operands[0];
  switch (opcode) {
    case Opcode::kSelect: {
      const Value picked = SelectValue(x.re, operands[1], operands[2]);
      return {body.Name(picked.re), picked.im ? body.Name(picked.im) : nullptr};
    }
    case Opcode::kConvert: return EmitConvert(x, type, result, body);
    case Opcode::kComplex: return {x.re, operands[1].re};
    case Opcode::kClamp:
      if (hlo::IsComplex(type)) break;
      return {body.Name(ClampExpr(x.re, operands[1].re, operands[2].re, context)), nullptr};
    case Opcode::kStochasticConvert:
      return {body.Name(StochasticConvert(instruction, x.re, operands[1].re, body)), nullptr};
    default: break;
  }
  if (hlo::IsComplex(type)) return EmitComplex(instruction, operands, body);
  if (opcode == Opcode::kCompare) return {CompareExpr(instruction, x.re, operands[1].re, body), nullptr};

  Expr value;
  bool rounds = true;
  if (const auto unary = UnaryRules().find(opcode); unary != UnaryRules().end() && operands.size() == 1) {
    value = unary->second(x.re, context);
    rounds =
        opcode != Opcode::kCopy && opcode != Opcode::kIsFinite && opcode != Opcode::kReal && opcode != Opcode::kImag;
    // A sign is exact, but for an integer's that has no opposite; and it alone may leave a denormal as it is.
    if (hlo::IsFloating(result) && (opcode == Opcode::kNegate || opcode == Opcode::kAbs)) rounds = false;
  } else if (const auto binary = BinaryRules().find(opcode); binary != BinaryRules().end() && operands.size() == 2) {
    value = binary->second(x.re, operands[1].re, context);
    rounds = !IsChoice(opcode);
  } else {
    Fail(ErrorCode::kUnimplemented, "{}: {} of {} has no kernel", instruction.name(), hlo::OpcodeName(opcode),
         hlo::ElementTypeName(type));
  }
  value = body.Name(value);
  return {rounds ? body.Name(RoundResultOf(opcode, value, result)) : value, nullptr};
}

}  // namespace hlorun::opencl
