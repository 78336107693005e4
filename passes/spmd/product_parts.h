// What passes share that compute a product in parts, so that one part's exchange runs beside the next part's kernel.
#pragma once

#include <vector>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::passes {

// On a module: its devices exchange data over a network.
inline constexpr const char* kOverNetwork = "hlorun.over_network";

// More parts have more to start than to send. Less gain is within the estimates' error.
inline constexpr int64_t kMostParts = 8;
inline constexpr double kWorthGain = 1.1;

// A dimension of one of a product's operands that the result keeps, and where.
struct FreeDimension {
  int64_t operand = 0, of_operand = 0, of_result = 0;
};
std::vector<FreeDimension> FreeDimensions(const hlo::Instruction& dot);

hlo::Instruction* Product(hlo::Builder& build, const hlo::Instruction& dot,
                          const std::vector<hlo::Instruction*>& operands);

bool HasControlEdges(const hlo::Instruction& instruction);

// Whether exchanges run beside kernels at all, as every device sees it: over a network, or on devices that are not the
// host's cores. Devices of several kinds would come to different forms.
bool ExchangesBesideKernels(const hlo::Module& module, const PassContext& context);

}  // namespace hlorun::passes
