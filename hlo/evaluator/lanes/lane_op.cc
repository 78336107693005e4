#include "hlo/evaluator/lanes/lane_op.h"

#include <cstring>

#include "hlo/number_types.h"

namespace hlorun::hlo {
namespace {

constexpr int64_t kChunk = 512;  // lanes converted at a time; the buffers fit in the first-level cache

bool IsNarrowInteger(ElementType type) { return IsInteger(type) && BitsOf(type) < 8; }

// What a float becomes in an integer of fewer than 8 bits: saturated, as wider integers are.
void SaturateToWidth(ElementType type, int8_t* values, int64_t count) {
  const int bits = BitsOf(type);
  const int least = IsSigned(type) ? -(1 << (bits - 1)) : 0;
  const int most = IsSigned(type) ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    // Unsigned values above 127 read as negative in int8_t.
    const int value = IsSigned(type) ? values[i] : static_cast<uint8_t>(values[i]);
    values[i] = static_cast<int8_t>(std::clamp(value, least, most));
  }
}

void WrapToWidth(ElementType type, int8_t* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int8_t>(WrapInteger(type, values[i]));
}

LaneKernel FindKernel(const Instruction& instruction, ElementType operand, ElementType result) {
  if (instruction.Is(Opcode::kCompare)) {
    const auto& compare = instruction.As<attr::Compare>();
    return FindCompareKernel(compare.direction, compare.type == ComparisonType::kTotalOrder, operand);
  }
  if (LaneKernel kernel = FindUnaryKernel(instruction.opcode(), operand)) return kernel;
  if (LaneKernel kernel = FindBinaryKernel(instruction.opcode(), operand)) return kernel;
  return FindOtherKernel(instruction.opcode(), operand, result);
}

}  // namespace

ElementType ComputingType(ElementType type) {
  if (IsNarrowFloat(type)) return ElementType::kF32;
  if (IsNarrowInteger(type)) return IsSigned(type) ? ElementType::kS8 : ElementType::kU8;
  return type;
}

LaneOp LaneOp::Convert(ElementType from, ElementType to) {
  LaneOp op;
  op.operand_count_ = 1;
  op.operand_types_[0] = from;
  op.result_type_ = to;
  if (from == to) return op;
  if (from == ElementType::kBF16 && to == ElementType::kPred) {
    // Its denormals are not zero here, although those of f32 are.
    op.kernel_ = [](const LaneCall& call) {
      for (int64_t i = 0; i < call.count; ++i) {
        static_cast<bool*>(call.result)[i] = (LaneOperand<uint16_t>(call, 0)[i] & 0x7FFF) != 0;
      }
    };
    return op;
  }
  op.converts_ = IsNarrowFloat(from) || IsNarrowFloat(to) || IsNarrowInteger(to);
  op.saturates_ = IsFloating(RealOf(from));
  op.kernel_ = FindConvertKernel(ComputingType(from), ComputingType(to));
  return op;
}

std::optional<LaneOp> LaneOp::For(const Instruction& instruction, bool widened) {
  if (instruction.operand_count() < 1 || instruction.operand_count() > 3 || !instruction.shape().IsArray()) {
    return std::nullopt;
  }
  auto held = [widened](const Instruction& value) {
    const ElementType type = value.shape().element_type();
    return widened && IsNarrowFloat(type) ? ElementType::kF32 : type;
  };
  if (instruction.Is(Opcode::kConvert)) {
    if (widened) return std::nullopt;  // rounds on purpose
    return Convert(instruction.operand(0)->shape().element_type(), instruction.shape().element_type());
  }
  LaneOp op;
  op.operand_count_ = static_cast<int>(instruction.operand_count());
  op.result_type_ = held(instruction);
  for (int i = 0; i < op.operand_count_; ++i) {
    op.operand_types_[i] = held(*instruction.operand(i));
    op.converts_ |= IsNarrowFloat(op.operand_types_[i]);
  }
  op.converts_ |= IsNarrowFloat(op.result_type_) || IsNarrowInteger(op.result_type_);
  if (instruction.Is(Opcode::kCopy)) {
    op.converts_ = false;
    return op;
  }
  ElementType computing = ComputingType(op.operand_types_[0]);
  if (instruction.Is(Opcode::kReducePrecision) && op.result_type_ == ElementType::kF16) {
    computing = ElementType::kF16;  // on its own bits: its denormals are normal in f32
    op.converts_ = false;
  }
  op.kernel_ = FindKernel(instruction, computing, ComputingType(op.result_type_));
  if (op.kernel_ == nullptr) return std::nullopt;
  op.call_.instruction = &instruction;
  op.call_.bits = BitsOf(op.operand_types_[0]);
  return op;
}

void LaneOp::Run(std::span<const void* const> operands, void* result, int64_t count) const {
  if (kernel_ == nullptr) {
    std::memmove(result, operands[0], static_cast<size_t>(count * BytesOf(result_type_)));
    return;
  }
  LaneCall call = call_;
  if (!converts_) {
    for (int i = 0; i < operand_count_; ++i) call.operands[i] = operands[static_cast<size_t>(i)];
    call.result = result;
    call.count = count;
    kernel_(call);
    return;
  }
  alignas(64) float widened[4][kChunk];
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    call.count = std::min(kChunk, count - begin);
    for (int i = 0; i < operand_count_; ++i) {
      const auto* from =
          static_cast<const std::byte*>(operands[static_cast<size_t>(i)]) + begin * BytesOf(operand_types_[i]);
      call.operands[i] = from;
      if (IsNarrowFloat(operand_types_[i])) {
        WidenToFloat(operand_types_[i], from, widened[i], call.count);
        call.operands[i] = widened[i];
      }
    }
    std::byte* to = static_cast<std::byte*>(result) + begin * BytesOf(result_type_);
    call.result = IsNarrowFloat(result_type_) ? static_cast<void*>(widened[3]) : to;
    kernel_(call);
    if (IsNarrowFloat(result_type_)) NarrowFromFloat(result_type_, widened[3], to, call.count);
    if (IsNarrowInteger(result_type_)) {
      (saturates_ ? SaturateToWidth : WrapToWidth)(result_type_, reinterpret_cast<int8_t*>(to), call.count);
    }
  }
}

void WidenToFloat(ElementType type, const void* from, float* to, int64_t count) {
  VisitType(type, [&]<typename T, ElementType kType>() {
    if constexpr (!std::is_arithmetic_v<T> && !Complex<T>) {
      const T* values = static_cast<const T*>(from);
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
    } else {
      Fail(ErrorCode::kInternal, "{} is not a narrow floating type", ElementTypeName(kType));
    }
  });
}

void NarrowFromFloat(ElementType type, const float* from, void* to, int64_t count) {
  VisitType(type, [&]<typename T, ElementType kType>() {
    if constexpr (!std::is_arithmetic_v<T> && !Complex<T>) {
      T* values = static_cast<T*>(to);
      for (int64_t i = 0; i < count; ++i) values[i] = T(from[i]);
    } else {
      Fail(ErrorCode::kInternal, "{} is not a narrow floating type", ElementTypeName(kType));
    }
  });
}

void ConvertElements(ElementType from_type, const void* from, ElementType to_type, void* to, int64_t count) {
  LaneOp::Convert(from_type, to_type).Run({&from, 1}, to, count);
}

Literal ConvertedTo(const Literal& literal, ElementType type) {
  if (literal.element_type() == type) return literal;
  Literal result(Shape(type, literal.shape().dimensions()));
  ConvertElements(literal.element_type(), literal.data(), type, result.mutable_data(), literal.ElementCount());
  return result;
}

}  // namespace hlorun::hlo
