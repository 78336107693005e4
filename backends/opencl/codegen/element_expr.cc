#include "backends/opencl/codegen/element_expr.h"

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
Expr SignRule(const Expr& x, const Context&) {
  const Expr zero = Zero(x->type), one = Like(x, 1);
  if (hlo::IsUnsigned(x->type.element)) return Select(Compare(Op::kGt, x, zero), one, zero);
  // Neither branch for zeros and NaN: they are their own sign.
  return Select(Compare(Op::kGt, x, zero), one, Select(Compare(Op::kLt, x, zero), Like(x, -1), x));
}
Expr NotRule(const Expr& x, const Context&) { return Not(x); }
Expr IsFiniteRule(const Expr& x, const Context&) {
  const bool is_double = x->type.element == ElementType::kF64;
  const Expr exponent = is_double ? Int(0x7ff0000000000000, {ElementType::kU64}) : Int(0x7f800000, {ElementType::kU32});
  const Expr bits = BitCast(x, exponent->type.element);
  return Compare(Op::kNe, And(bits, Splat(exponent, bits->type.lanes)), exponent);
}
Expr LogisticRule(const Expr& x, const Context&) { return Div(Like(x, 1), Like(x, 1) + F("exp", Unary(Op::kNeg, x))); }
Expr RsqrtRule(const Expr& x, const Context&) { return Div(Like(x, 1), F("sqrt", x)); }
Expr ClzRule(const Expr& x, const Context& c) {
  const int extra = hlo::BitsOf(x->type.element) - hlo::BitsOf(c.type);
  if (extra == 0) return F("clz", x);
  // A type narrower than its byte: shift its bits to the top, ones below them so that zero counts its own width.
  const Expr u = BitCast(x, ElementType::kU8);
  const Expr top = Or(Binary(Op::kShl, u, Int(extra, u->type)), Int((1 << extra) - 1, u->type));
  return BitCast(F("clz", top), x->type.element);
}
Expr ReducePrecisionRule(const Expr& x, const Context& c) {
  const auto& to = c.instruction->As<hlo::attr::ReducePrecision>();
  const bool is_double = x->type.element == ElementType::kF64;
  const int mantissa = is_double ? 52 : 23, exponent = is_double ? 11 : 8;
  const Type bits_type{is_double ? ElementType::kU64 : ElementType::kU32, 1};
  const auto bits_constant = [&](uint64_t value) { return Int(static_cast<int64_t>(value), bits_type); };
  Expr bits = BitCast(x, bits_type.element);
  const int dropped = mantissa - static_cast<int>(to.mantissa_bits);
  if (dropped > 0) {
    const uint64_t half_less_one = (uint64_t{1} << (dropped - 1)) - 1;
    const Expr odd = And(Binary(Op::kShr, bits, bits_constant(static_cast<uint64_t>(dropped))), bits_constant(1));
    bits = c.body.Name(And(bits + bits_constant(half_less_one) + odd, bits_constant(~((uint64_t{1} << dropped) - 1))));
  }
  Expr rounded = BitCast(bits, x->type.element);
  if (to.exponent_bits < exponent) {
    const int64_t bias = (int64_t{1} << (to.exponent_bits - 1)) - 1;
    const double largest = std::ldexp(2.0 - std::ldexp(1.0, -static_cast<int>(std::min<int64_t>(to.mantissa_bits, mantissa))), static_cast<int>(bias));
    const double smallest = std::ldexp(1.0, static_cast<int>(1 - bias));
    rounded = c.body.Name(rounded);
    const Expr size = c.body.Name(F("fabs", rounded));
    const Expr infinity = F("copysign", Like(x, INFINITY), x), zero = F("copysign", Like(x, 0), x);
    rounded = Select(Compare(Op::kGt, size, Like(x, largest)), infinity, Select(Compare(Op::kLt, size, Like(x, smallest)), zero, rounded));
  }
  return Select(Compare(Op::kNe, x, x), x, c.body.Name(rounded));
}
#define BUILTIN(name) [](const Expr& x, const Context&) { return F(name, x); }

const std::map<Opcode, UnaryRule>& UnaryRules() {
  static const std::map<Opcode, UnaryRule> kRules = {
      {Opcode::kAbs, AbsRule},
      {Opcode::kAcos, BUILTIN("acos")},
      {Opcode::kAcosh, BUILTIN("acosh")},
      {Opcode::kAsin, BUILTIN("asin")},
      {Opcode::kAsinh, BUILTIN("asinh")},
      {Opcode::kAtanh, BUILTIN("atanh")},
      {Opcode::kCbrt, BUILTIN("cbrt")},
      {Opcode::kCeil, BUILTIN("ceil")},
      {Opcode::kClz, ClzRule},
      {Opcode::kCopy, [](const Expr& x, const Context&) { return x; }},
      {Opcode::kCos, BUILTIN("cos")},
      {Opcode::kCosh, BUILTIN("cosh")},
      {Opcode::kErf, BUILTIN("erf")},
      {Opcode::kExp, BUILTIN("exp")},
      {Opcode::kExpm1, BUILTIN("expm1")},
      {Opcode::kFloor, BUILTIN("floor")},
      {Opcode::kIsFinite, IsFiniteRule},
      {Opcode::kLog, BUILTIN("log")},
      {Opcode::kLog1p, BUILTIN("log1p")},
      {Opcode::kLogistic, LogisticRule},
      {Opcode::kNegate, NegateRule},
      {Opcode::kNot, NotRule},
      {Opcode::kPopulationCount, BUILTIN("popcount")},  // of the byte that a narrower type lies in, as XLA:CPU
      {Opcode::kReal, [](const Expr& x, const Context&) { return x; }},
      {Opcode::kImag, [](const Expr& x, const Context&) { return Zero(x->type); }},
      {Opcode::kReducePrecision, ReducePrecisionRule},
      {Opcode::kRoundNearestAfz, BUILTIN("round")},
      {Opcode::kRoundNearestEven, BUILTIN("rint")},
      {Opcode::kRsqrt, RsqrtRule},
      {Opcode::kSign, SignRule},
      {Opcode::kSin, BUILTIN("sin")},
      {Opcode::kSinh, BUILTIN("sinh")},
      {Opcode::kSqrt, BUILTIN("sqrt")},
      {Opcode::kTan, BUILTIN("tan")},
      {Opcode::kTanh, BUILTIN("tanh")},
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
Expr MaximumRule(const Expr& x, const Expr& y, const Context&) {
  if (IsPred(x)) return Or(x, y);
  if (IsInt(x)) return Max(x, y);
  return Select(Or(Compare(Op::kGt, x, y), Compare(Op::kNe, x, x)), x, y);
}
Expr MinimumRule(const Expr& x, const Expr& y, const Context&) {
  if (IsPred(x)) return And(x, y);
  if (IsInt(x)) return Min(x, y);
  return Select(Or(Compare(Op::kLt, x, y), Compare(Op::kNe, x, x)), x, y);
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

// Integer powers by squaring, as a fixed number of steps so that lanes stay together. As on XLA:CPU, exponents are signed
// whatever the type and only their lowest six bits count; negative ones give the reciprocal's integer part: 1 for 1, +-1
// for -1, else 0.
Expr PowerRule(const Expr& x, const Expr& y, const Context& c) {
  if (!IsInt(x)) return F("pow", x, y);
  constexpr int kExponentBits = 6;
  const ElementType unsigned_type = UnsignedOf(x->type.element);
  const Expr one = Int(1, {unsigned_type});
  const Var result = c.body.Mutable(one, "power"), square = c.body.Mutable(Cast(x, unsigned_type), "square"),
            rest = c.body.Mutable(Cast(y, unsigned_type), "rest");
  const Var step = MakeVar(c.body.FreshName("s"), kIndex32);
  const Expr odd = Compare(Op::kNe, And(Ref(rest), one), Zero(one->type));
  c.body.Add(For(LoopRole::kSerial, step, Int(0), Int(kExponentBits),
                 Block({Assign(result, Select(odd, Ref(result) * Ref(square), Ref(result))), Assign(square, Ref(square) * Ref(square)),
                        Assign(rest, Binary(Op::kShr, Ref(rest), one))})));
  const Expr power = Cast(Ref(result), x->type.element);
  const Expr exponent = Cast(y, SignedOf(x->type.element));
  const Expr even = Compare(Op::kEq, And(y, Like(y, 1)), Zero(y->type));
  const Expr minus_one = Int(-1, x->type);
  const Expr reciprocal = Select(Compare(Op::kEq, x, Like(x, 1)), x,
                                 Select(Compare(Op::kEq, x, minus_one), Select(even, Like(x, 1), minus_one), Zero(x->type)));
  return Select(Compare(Op::kLt, exponent, Zero(exponent->type)), c.body.Name(reciprocal), power);
}

const std::map<Opcode, BinaryRule>& BinaryRules() {
  static const std::map<Opcode, BinaryRule> kRules = {
      {Opcode::kAdd, AddRule},
      {Opcode::kAnd, AndRule},
      {Opcode::kAtan2, [](const Expr& x, const Expr& y, const Context&) { return F("atan2", x, y); }},
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
  const double low = static_cast<double>(MinOf(to)), high = std::ldexp(1.0, hlo::BitsOf(to) - (hlo::IsSigned(to) ? 1 : 0));
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
    Fail(ErrorCode::kUnimplemented, "{}: stochastic-convert to {} has no kernel", instruction.name(), hlo::ElementTypeName(to));
  }
  const Expr down = body.Name(F("trunc", x));
  const Expr fraction = F("fabs", x - down);
  const Expr threshold = Cast(random, x->type.element) * Like(x, std::ldexp(1.0, -hlo::BitsOf(random->type.element)));
  const Expr away = F("copysign", Like(x, 1), x);
  return FloatToInt(body.Name(Select(Compare(Op::kLt, threshold, fraction), down + away, down)), to, body);
}

Expr ClampExpr(const Expr& low, const Expr& x, const Expr& high, const Context& c) {
  return MinimumRule(c.body.Name(MaximumRule(x, low, c)), high, c);
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
  return {Select(condition, on_true.re, on_false.re), on_true.im ? Select(condition, on_true.im, on_false.im) : nullptr};
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
  return {body.Name(RoundTo(value, type)), nullptr};
}

bool IsElementwise(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kCompare || opcode == Opcode::kSelect || opcode == Opcode::kComplex || opcode == Opcode::kConvert ||
      opcode == Opcode::kClamp) {
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
    case Opcode::kClamp: return {body.Name(ClampExpr(x.re, operands[1].re, operands[2].re, context)), nullptr};
    case Opcode::kStochasticConvert: return {body.Name(StochasticConvert(instruction, x.re, operands[1].re, body)), nullptr};
    default: break;
  }
  if (hlo::IsComplex(type)) return EmitComplex(instruction, operands, body);
  if (opcode == Opcode::kCompare) return {CompareExpr(instruction, x.re, operands[1].re, body), nullptr};

  Expr value;
  bool rounds = true;
  if (const auto unary = UnaryRules().find(opcode); unary != UnaryRules().end() && operands.size() == 1) {
    value = unary->second(x.re, context);
    rounds = opcode != Opcode::kCopy && opcode != Opcode::kIsFinite && opcode != Opcode::kReal && opcode != Opcode::kImag;
  } else if (const auto binary = BinaryRules().find(opcode); binary != BinaryRules().end() && operands.size() == 2) {
    value = binary->second(x.re, operands[1].re, context);
    rounds = opcode != Opcode::kMaximum && opcode != Opcode::kMinimum;
  } else {
    Fail(ErrorCode::kUnimplemented, "{}: {} of {} has no kernel", instruction.name(), hlo::OpcodeName(opcode), hlo::ElementTypeName(type));
  }
  value = body.Name(value);
  return {rounds ? body.Name(RoundTo(value, result)) : value, nullptr};
}

}  // namespace hlorun::opencl
