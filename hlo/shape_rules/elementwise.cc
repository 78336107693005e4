// Shapes of operations whose result element i depends on the operands' elements i.
#include <algorithm>
#include <array>

#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

constexpr uint8_t Bit(TypeClass c) { return static_cast<uint8_t>(1u << static_cast<unsigned>(c)); }
constexpr uint8_t kPredMask = Bit(TypeClass::kPredicate);
constexpr uint8_t kSignedMask = Bit(TypeClass::kSigned);
constexpr uint8_t kIntegerMask = kSignedMask | Bit(TypeClass::kUnsigned);
constexpr uint8_t kFloatMask = Bit(TypeClass::kFloating);
constexpr uint8_t kFloatOrComplex = kFloatMask | Bit(TypeClass::kComplex);
constexpr uint8_t kArithmetic = kIntegerMask | kFloatOrComplex;
constexpr uint8_t kBits = kPredMask | kIntegerMask;
constexpr uint8_t kAnything = kPredMask | kArithmetic;

struct Accepted {
  Opcode opcode;
  uint8_t mask;
  const char* text;
};

constexpr Accepted kAccepted[] = {
    {Opcode::kAbs, kSignedMask | kFloatOrComplex, "signed, floating or complex"},
    {Opcode::kAcos, kFloatOrComplex, "floating or complex"},
    {Opcode::kAcosh, kFloatOrComplex, "floating or complex"},
    {Opcode::kAdd, kAnything, "pred, integer, floating or complex"},
    {Opcode::kAnd, kBits, "pred or integer"},
    {Opcode::kAsin, kFloatOrComplex, "floating or complex"},
    {Opcode::kAsinh, kFloatOrComplex, "floating or complex"},
    {Opcode::kAtan2, kFloatOrComplex, "floating or complex"},
    {Opcode::kAtanh, kFloatOrComplex, "floating or complex"},
    {Opcode::kCbrt, kFloatOrComplex, "floating or complex"},
    {Opcode::kCeil, kFloatMask, "floating"},
    {Opcode::kClz, kIntegerMask, "integer"},
    {Opcode::kComplex, kFloatMask, "f32 or f64"},
    {Opcode::kCos, kFloatOrComplex, "floating or complex"},
    {Opcode::kCosh, kFloatOrComplex, "floating or complex"},
    {Opcode::kDivide, kArithmetic, "integer, floating or complex"},
    {Opcode::kErf, kFloatMask, "floating"},
    {Opcode::kExp, kFloatOrComplex, "floating or complex"},
    {Opcode::kExpm1, kFloatOrComplex, "floating or complex"},
    {Opcode::kFloor, kFloatMask, "floating"},
    {Opcode::kImag, kFloatOrComplex, "floating or complex"},
    {Opcode::kIsFinite, kFloatMask, "floating"},
    {Opcode::kLog, kFloatOrComplex, "floating or complex"},
    {Opcode::kLog1p, kFloatOrComplex, "floating or complex"},
    {Opcode::kLogistic, kFloatOrComplex, "floating or complex"},
    {Opcode::kMaximum, kAnything, "pred, integer, floating or complex"},
    {Opcode::kMinimum, kAnything, "pred, integer, floating or complex"},
    {Opcode::kMultiply, kAnything, "pred, integer, floating or complex"},
    {Opcode::kNegate, kArithmetic, "integer, floating or complex"},
    {Opcode::kNot, kBits, "pred or integer"},
    {Opcode::kOr, kBits, "pred or integer"},
    {Opcode::kPopulationCount, kIntegerMask, "integer"},
    {Opcode::kPower, kArithmetic, "integer, floating or complex"},
    {Opcode::kReal, kFloatOrComplex, "floating or complex"},
    {Opcode::kReducePrecision, kFloatMask, "floating"},
    {Opcode::kRemainder, kIntegerMask | kFloatMask, "integer or floating"},
    {Opcode::kRoundNearestAfz, kFloatMask, "floating"},
    {Opcode::kRoundNearestEven, kFloatMask, "floating"},
    {Opcode::kRsqrt, kFloatOrComplex, "floating or complex"},
    {Opcode::kShiftLeft, kIntegerMask, "integer"},
    {Opcode::kShiftRightArithmetic, kIntegerMask, "integer"},
    {Opcode::kShiftRightLogical, kIntegerMask, "integer"},
    {Opcode::kSign, kSignedMask | kFloatOrComplex, "signed, floating or complex"},
    {Opcode::kSin, kFloatOrComplex, "floating or complex"},
    {Opcode::kSinh, kFloatOrComplex, "floating or complex"},
    {Opcode::kSqrt, kFloatOrComplex, "floating or complex"},
    {Opcode::kStochasticConvert, kFloatMask, "floating"},
    {Opcode::kSubtract, kArithmetic, "integer, floating or complex"},
    {Opcode::kTan, kFloatOrComplex, "floating or complex"},
    {Opcode::kTanh, kFloatOrComplex, "floating or complex"},
    {Opcode::kXor, kBits, "pred or integer"},
};

void CheckType(const Query& q, ElementType type) {
  static const auto* const kByOpcode = [] {
    auto* table = new std::array<const Accepted*, 256>{};
    for (const Accepted& row : kAccepted) (*table)[static_cast<size_t>(row.opcode)] = &row;
    return table;
  }();
  const Accepted* row = (*kByOpcode)[static_cast<size_t>(q.opcode)];
  if (row != nullptr && (Bit(ClassOf(type)) & row->mask) == 0) {
    q.Reject("is not defined for {}; its operand must be {}", ElementTypeName(type), row->text);
  }
}

// The dimensions that all operands have; dynamic where one of them is.
Shape CommonDimensions(const Query& q) {
  Shape result = q.Array(0).WithoutLayout();
  for (int64_t i = 1; i < q.operand_count(); ++i) {
    const Shape& other = q.Array(i);
    if (other.dimensions() != result.dimensions()) {
      q.Reject("operands differ in dimensions: {} and {}; broadcast one of them first", q.operand(0).ToString(false),
               other.ToString(false));
    }
    CopyDynamic(other, &result);
  }
  return result;
}

Shape CommonShape(const Query& q) {
  const Shape result = CommonDimensions(q);
  for (int64_t i = 1; i < q.operand_count(); ++i) {
    if (q.operand(i).element_type() != result.element_type()) {
      q.Reject("operands differ in element type: {} and {}; convert one of them first", q.operand(0).ToString(false),
               q.operand(i).ToString(false));
    }
  }
  return result;
}

}  // namespace

Shape Unary(const Query& q) {
  CheckType(q, q.Array(0).element_type());
  return q.operand(0).WithoutLayout();
}

Shape Binary(const Query& q) {
  Shape result = CommonShape(q);
  CheckType(q, result.element_type());
  return result;
}

Shape RealPart(const Query& q) {
  Shape result = Unary(q);
  result.set_element_type(RealOf(result.element_type()));
  return result;
}

Shape Predicate(const Query& q) {
  Shape result = CommonShape(q);
  CheckType(q, result.element_type());
  result.set_element_type(ElementType::kPred);
  return result;
}

Shape Complex(const Query& q) {
  Shape result = CommonShape(q);
  const ElementType type = result.element_type();
  if (type != ElementType::kF32 && type != ElementType::kF64) {
    q.Reject("is not defined for {}; its operands must be f32 or f64", ElementTypeName(type));
  }
  result.set_element_type(type == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128);
  return result;
}

Shape Select(const Query& q) {
  const Shape& predicate = q.Array(0);
  const Shape& on_true = q.Array(1);
  const Shape& on_false = q.Array(2);
  if (on_true.dimensions() != on_false.dimensions() || on_true.element_type() != on_false.element_type()) {
    q.Reject("the two values differ in shape: {} and {}", on_true.ToString(false), on_false.ToString(false));
  }
  if (predicate.element_type() != ElementType::kPred ||
      (predicate.rank() != 0 && predicate.dimensions() != on_true.dimensions())) {
    q.Reject("the predicate must be pred[] or pred of the values' dimensions {}, but is {}", on_true.ToString(false),
             predicate.ToString(false));
  }
  Shape result = on_true.WithoutLayout();
  CopyDynamic(on_false, &result);
  if (predicate.rank() != 0) CopyDynamic(predicate, &result);
  return result;
}

Shape Clamp(const Query& q) {
  const Shape& value = q.Array(1);
  for (int64_t i : {0, 2}) {
    const Shape& bound = q.Array(i);
    if (bound.element_type() != value.element_type() ||
        (bound.rank() != 0 && bound.dimensions() != value.dimensions())) {
      q.Reject("the {} bound must be a scalar of the operand's type or have its shape {}, but is {}",
               i == 0 ? "lower" : "upper", value.ToString(false), bound.ToString(false));
    }
  }
  return value.WithoutLayout();
}

Shape Convert(const Query& q) {
  Shape result = q.Array(0).WithoutLayout();
  const Shape declared = q.Declared();
  if (!declared.IsArray()) q.Reject("the result must be an array, but is {}", declared.ToString(false));
  if (IsComplex(result.element_type()) && !IsComplex(declared.element_type())) {
    q.Reject("cannot convert {} to {}; take real() of it first", ElementTypeName(result.element_type()),
             ElementTypeName(declared.element_type()));
  }
  result.set_element_type(declared.element_type());
  return result;
}

Shape BitcastConvert(const Query& q) {
  const Shape& operand = q.Array(0);
  const ElementType to = q.Declared().element_type();
  if (!IsArrayType(to)) q.Reject("the result must be an array, but is {}", q.declared.ToString(false));
  const int from_bits = BitsOf(operand.element_type());
  const int to_bits = BitsOf(to);
  if (IsComplex(operand.element_type()) != IsComplex(to)) {
    q.Reject("cannot reinterpret {} as {}: one of them is complex", ElementTypeName(operand.element_type()),
             ElementTypeName(to));
  }
  Shape result = operand.WithoutLayout();
  if (from_bits == to_bits) {
    result.set_element_type(to);
    return result;
  }
  // A wider element becomes a row of narrower ones along a new last dimension, and the reverse.
  Dims dimensions = operand.dimensions();
  if (from_bits > to_bits) {
    dimensions.push_back(from_bits / to_bits);
  } else {
    if (dimensions.empty() || dimensions.back() != to_bits / from_bits) {
      q.Reject("the last dimension of {} must be {} to make elements of {}", operand.ToString(false),
               to_bits / from_bits, ElementTypeName(to));
    }
    dimensions.pop_back();
  }
  result = Shape(to, std::move(dimensions));
  CopyDynamic(operand, &result);
  return result;
}

Shape StochasticConvert(const Query& q) {
  Shape result = CommonDimensions(q);
  CheckType(q, result.element_type());
  const ElementType random = q.operand(1).element_type();
  if (!IsUnsigned(random) || BitsOf(random) != BitsOf(result.element_type())) {
    q.Reject("the random bits must be unsigned integers as wide as {}, but are {}",
             ElementTypeName(result.element_type()), ElementTypeName(random));
  }
  const ElementType to = q.Declared().element_type();
  if (!IsInteger(to) && !IsFloating(to)) q.Reject("cannot convert to {}", ElementTypeName(to));
  result.set_element_type(to);
  return result;
}

Shape ReducePrecision(const Query& q) {
  const auto& bits = q.As<attr::ReducePrecision>();
  if (bits.exponent_bits < 1 || bits.mantissa_bits < 0) {
    q.Reject("needs at least 1 exponent bit and 0 mantissa bits, but has {} and {}", bits.exponent_bits,
             bits.mantissa_bits);
  }
  return Unary(q);
}

Shape Map(const Query& q) {
  q.RequireOperands(1);
  Shape result = CommonDimensions(q);
  const ProgramShape signature = q.Signature(0, q.operand_count());
  for (int64_t i = 0; i < q.operand_count(); ++i) {
    const Shape& parameter = signature.parameters[static_cast<size_t>(i)];
    if (!parameter.IsScalar() || !SameTypeIgnoringPrecision(parameter.element_type(), q.operand(i).element_type())) {
      q.Reject("computation {} takes {} as parameter {}, but operand {} holds {}", q.called[0]->name(),
               parameter.ToString(false), i, i, ElementTypeName(q.operand(i).element_type()));
    }
  }
  if (!signature.result.IsScalar()) {
    q.Reject("computation {} must return a scalar, but returns {}", q.called[0]->name(),
             signature.result.ToString(false));
  }
  const auto& dimensions = q.As<attr::Dimensions>().dimensions;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] != static_cast<int64_t>(i)) q.Reject("dimensions must be 0, 1, 2 ... of the operands");
  }
  result.set_element_type(signature.result.element_type());
  return result;
}

}  // namespace hlorun::hlo::shape_rules
