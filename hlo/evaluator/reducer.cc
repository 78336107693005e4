#include "hlo/evaluator/reducer.h"

#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/reducing_opcode.h"

namespace hlorun::hlo {
namespace {

ElementType ComputingFloat(ElementType type) { return IsNarrowFloat(type) ? ElementType::kF32 : type; }

}  // namespace

Reducer::Reducer(Evaluation& evaluation, const Computation& computation, Rounding rounding)
    : computation_(computation) {
  const int64_t count = computation.parameter_count() / 2;
  for (int64_t i = 0; i < count; ++i) {
    types_.push_back(computation.parameter(i)->shape().element_type());
    value_types_.push_back(computation.parameter(count + i)->shape().element_type());
  }
  Specialise(computation, rounding);
  if (kernel_ != nullptr) return;
  const bool narrow = std::any_of(types_.begin(), types_.end(), IsNarrowFloat);
  if (narrow && rounding == Rounding::kOnce) {
    function_ = std::make_unique<ScalarFunction>(evaluation, computation, true);
    if (function_->IsLanes()) {
      for (ElementType& type : types_) type = ComputingFloat(type);
      for (ElementType& type : value_types_) type = ComputingFloat(type);
      return;
    }
  }
  function_ = std::make_unique<ScalarFunction>(evaluation, computation);
}

void Reducer::Specialise(const Computation& computation, Rounding rounding) {
  const std::optional<Opcode> opcode = SingleOpcode(computation);
  if (!opcode.has_value() || !IsReducing(*opcode) || types_[0] != value_types_[0]) return;
  const ElementType type = types_[0];
  const bool sums = *opcode == Opcode::kAdd || *opcode == Opcode::kMultiply;
  const bool steps = rounding == Rounding::kAtEachStep && sums;
  ElementType computed = type;
  if (IsFloating(type) && !steps) computed = sums ? ElementType::kF64 : BitsOf(type) < 32 ? ElementType::kF32 : type;
  if (type == ElementType::kC64 && *opcode == Opcode::kAdd && !steps) computed = ElementType::kC128;
  if (BitsOf(type) < 8 || (IsFloating(computed) && BitsOf(computed) < 32)) return;  // wraps or rounds at each step
  kernel_ = FindBinaryKernel(*opcode, computed);
  if (kernel_ == nullptr) return;
  types_[0] = value_types_[0] = computed;
  bits_ = BitsOf(computed);
  associates_ = true;
}

Literal Reducer::AsAccumulator(int64_t i, const Literal& array) const {
  return ConvertedTo(ConvertedTo(array, computation_.parameter(i)->shape().element_type()),
                     types_[static_cast<size_t>(i)]);
}

Literal Reducer::AsValue(int64_t i, const Literal& array) const {
  const ElementType declared = computation_.parameter(arity() + i)->shape().element_type();
  return ConvertedTo(ConvertedTo(array, declared), value_types_[static_cast<size_t>(i)]);
}

void Reducer::Run(std::span<void* const> accumulators, std::span<const void* const> values, int64_t count) {
  if (kernel_ != nullptr) {
    LaneCall call;
    call.operands[0] = accumulators[0];
    call.operands[1] = values[0];
    call.result = accumulators[0];
    call.count = count;
    call.bits = bits_;
    kernel_(call);
    return;
  }
  std::vector<const void*> inputs(accumulators.begin(), accumulators.end());
  inputs.insert(inputs.end(), values.begin(), values.end());
  function_->Run(inputs, accumulators, count);
}

}  // namespace hlorun::hlo
