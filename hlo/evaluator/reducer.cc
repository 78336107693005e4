#include "hlo/evaluator/reducer.h"

namespace hlorun::hlo {
namespace {

bool IsAssociative(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
      return true;
    default:
      return false;
  }
}

}  // namespace

Reducer::Reducer(Evaluation& evaluation, const Computation& computation) : function_(evaluation, computation) {
  for (int64_t i = 0; i < computation.parameter_count() / 2; ++i) {
    types_.push_back(computation.parameter(i)->shape().element_type());
  }
  const std::optional<Opcode> opcode = SingleOpcode(computation);
  if (!opcode.has_value() || !IsAssociative(*opcode)) return;
  const ElementType type = types_[0];
  const bool sums = *opcode == Opcode::kAdd || *opcode == Opcode::kMultiply;
  ElementType computed = type;
  if (IsFloating(type)) computed = sums ? ElementType::kF64 : BitsOf(type) < 32 ? ElementType::kF32 : type;
  if (type == ElementType::kC64 && *opcode == Opcode::kAdd) computed = ElementType::kC128;
  if (BitsOf(type) < 8) return;  // wraps at each step
  kernel_ = FindBinaryKernel(*opcode, computed);
  if (kernel_ == nullptr) return;
  types_[0] = computed;
  bits_ = BitsOf(computed);
  associates_ = true;
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
  function_.Run(inputs, accumulators, count);
}

}  // namespace hlorun::hlo
