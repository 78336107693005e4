// What to tell a user of the control flow that is left in a plan.
#pragma once

#include "backends/opencl/kernels/tuning_record.h"
#include "hlo/instruction.h"
#include "passes/pass.h"

namespace hlorun::opencl {

passes::Remark ExplainLoop(const hlo::Instruction& loop, const passes::PassContext& context);
// A conditional whose kernels read the predicate.
passes::Remark ExplainPredicatedBranch(const hlo::Instruction& conditional, const passes::PassContext& context);
// A conditional of which the host takes one branch.
passes::Remark ExplainHostBranch(const hlo::Instruction& conditional, const passes::PassContext& context);
passes::Remark ExplainHostCall(const hlo::Instruction& call);
// A product that --dot_library=clblast did not get.
passes::Remark ExplainOwnProduct(const hlo::Instruction& dot);
// A product whose schedule was measured.
passes::Remark ExplainTunedProduct(const hlo::Instruction& product, const TunedProduct& choice);

}  // namespace hlorun::opencl
