#include "passes/spmd/product_parts.h"

#include <algorithm>

#include "passes/spmd/uniform_predicates.h"

namespace hlorun::passes {

using hlo::Instruction;

std::vector<FreeDimension> FreeDimensions(const Instruction& dot) {
  const auto& attributes = dot.As<hlo::attr::Dot>();
  const auto has = [](const std::vector<int64_t>& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  std::vector<FreeDimension> free;
  auto next = static_cast<int64_t>(attributes.lhs_batch.size());
  for (const int64_t operand : {0, 1}) {
    const auto& batch = operand == 0 ? attributes.lhs_batch : attributes.rhs_batch;
    const auto& contracting = operand == 0 ? attributes.lhs_contracting : attributes.rhs_contracting;
    for (int64_t d = 0; d < dot.operand(operand)->shape().rank(); ++d) {
      if (!has(batch, d) && !has(contracting, d)) free.push_back({operand, d, next++});
    }
  }
  return free;
}

Instruction* Product(hlo::Builder& build, const Instruction& dot, const std::vector<Instruction*>& operands) {
  return build.Dot(operands[0], operands[1], dot.As<hlo::attr::Dot>(), dot.shape().element_type());
}

bool HasControlEdges(const Instruction& instruction) {
  return !instruction.control_predecessors().empty() || !instruction.control_successors().empty();
}

bool ExchangesBesideKernels(const hlo::Module& module, const PassContext& context) {
  if (module.num_partitions * module.replica_count == 1) return false;
  if (module.frontend_attributes.contains(spmd::kMixedDevices)) return false;
  return context.device.device_class != DeviceClass::kCpu || module.frontend_attributes.contains(kOverNetwork);
}

}  // namespace hlorun::passes
