// Ops that work element by element, on whole literals.
#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/scalar_function.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun::hlo {
namespace {

// A scalar repeated `count` times: clamp's bounds and select's predicate may be scalars among arrays.
Literal Splat(const Literal& scalar, const Shape& like) {
  Literal result(Shape(scalar.element_type(), like.dimensions()));
  const Dims still(static_cast<size_t>(like.rank()), 0);
  CopyStrided(scalar.data(), {0, still}, result.mutable_data(), {0, like.Strides()}, like.dimensions(),
              BytesOf(scalar.element_type()));
  return result;
}

}  // namespace

Literal EvaluateElementwise(OpCall& call) {
  if (call.instruction.Is(Opcode::kCopy)) return std::move(call.operands[0]);  // of a tuple too
  const std::optional<LaneOp> op = LaneOp::For(call.instruction);
  if (!op.has_value()) {
    Fail(ErrorCode::kUnimplemented, "{}: {} is not defined on {}", call.instruction.name(),
         OpcodeName(call.instruction.opcode()), call.operand(0).shape().ToString(false));
  }
  const void* inputs[3] = {};
  for (size_t i = 0; i < call.operands.size(); ++i) {
    Literal& operand = call.operands[i];
    if (operand.shape().IsScalar() && call.shape.rank() > 0) operand = Splat(operand, call.shape);
    HLORUN_CHECK(operand.ElementCount() == call.shape.ElementCount());
    inputs[i] = operand.data();
  }
  Literal result(call.shape);
  op->Run({inputs, call.operands.size()}, result.mutable_data(), call.shape.ElementCount());
  return result;
}

// Elements keep their bits, the first in the lowest: s4[2] becomes s8[], f32[3] becomes u8[3,4].
Literal EvaluateBitcastConvert(OpCall& call) {
  const Literal& operand = call.operand(0);
  Literal result(call.shape);
  const int from_bits = BitsOf(operand.element_type());
  const int to_bits = BitsOf(call.shape.element_type());
  if (from_bits >= 8 && to_bits >= 8) {
    HLORUN_CHECK(operand.ByteSize() == result.ByteSize());
    std::memcpy(result.mutable_data(), operand.data(), static_cast<size_t>(operand.ByteSize()));
    return result;
  }
  // One side is narrower than the byte it is stored in: through a stream of bits.
  auto bit_at = [&](int64_t position) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(operand.data());
    const int64_t element = position / from_bits;
    const int64_t bit = position % from_bits;
    return (bytes[element * BytesOf(operand.element_type()) + bit / 8] >> (bit % 8)) & 1;
  };
  auto* bytes = reinterpret_cast<uint8_t*>(result.mutable_data());
  for (int64_t position = 0; position < call.shape.ElementCount() * to_bits; ++position) {
    const int64_t bit = position % to_bits;
    const int64_t byte = position / to_bits * BytesOf(call.shape.element_type()) + bit / 8;
    bytes[byte] = static_cast<uint8_t>(bytes[byte] | (bit_at(position) << (bit % 8)));
  }
  if (to_bits < 8 && IsSigned(call.shape.element_type())) {
    for (int64_t i = 0; i < call.shape.ElementCount(); ++i) result.SetInt(i, result.GetInt(i));  // extends the sign
  }
  return result;
}

// Truncates |x| and adds one where the dropped fraction exceeds the random bits read as a fraction of one.
Literal EvaluateStochasticConvert(OpCall& call) {
  const ElementType to = call.shape.element_type();
  if (!IsInteger(to)) {
    Fail(ErrorCode::kUnimplemented, "{}: stochastic-convert to {} is not defined, only to integers",
         call.instruction.name(), ElementTypeName(to));
  }
  Literal result(call.shape);
  const int random_bits = BitsOf(call.operand(1).element_type());
  const double least = IsSigned(to) ? -std::ldexp(1.0, BitsOf(to) - 1) : 0;
  const double most = std::ldexp(1.0, BitsOf(to) - (IsSigned(to) ? 1 : 0)) - 1;
  for (int64_t i = 0; i < call.shape.ElementCount(); ++i) {
    const double x = call.operand(0).GetDouble(i);
    const double magnitude = std::fabs(x);
    const double random =
        std::ldexp(static_cast<double>(static_cast<uint64_t>(call.operand(1).GetInt(i))), -random_bits);
    double rounded = std::trunc(magnitude);
    if (magnitude - rounded > random) rounded += 1;
    result.SetDouble(i, std::isnan(x) ? 0 : std::clamp(std::copysign(rounded, x), least, most));
  }
  return result;
}

Literal EvaluateMap(OpCall& call) {
  Literal result(call.shape);
  std::vector<Literal> operands;  // of the parameters' types
  std::vector<const void*> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Instruction& parameter = *call.instruction.called()->parameter(static_cast<int64_t>(i));
    operands.push_back(ConvertedTo(call.operands[i], parameter.shape().element_type()));
    inputs.push_back(operands.back().data());
  }
  void* output = result.mutable_data();
  ScalarFunction(call.evaluation, *call.instruction.called()).Run(inputs, {&output, 1}, call.shape.ElementCount());
  return result;
}

}  // namespace hlorun::hlo
