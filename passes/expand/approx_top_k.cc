#include "passes/expand/approx_top_k.h"

#include "hlo/builder.h"
#include "hlo/custom_calls/named_ops.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

void Expand(Instruction* call, const hlo::ApproxTopK& request) {
  hlo::Builder build(call->parent(), call);
  build.before = call;
  const std::vector<Instruction*> arrays(call->operands().begin(), call->operands().begin() + request.arrays);
  Instruction* sorted = build.Make(Opcode::kSort, arrays, hlo::attr::Sort{request.dimension, true}, {call->called()});
  std::vector<Instruction*> results;
  for (int64_t i = 0; i < request.arrays; ++i) {
    Instruction* array = request.arrays == 1 ? sorted : build.GetTupleElement(sorted, i);
    std::vector<hlo::PaddingDimension> padding(static_cast<size_t>(array->shape().rank()));
    padding[static_cast<size_t>(request.dimension)].high = request.length - array->shape().dimension(request.dimension);
    results.push_back(build.Pad(array, call->operand(request.arrays + i), std::move(padding)));
  }
  call->parent()->Replace(call, call->shape().IsTuple() ? build.Tuple(results) : results[0]);
}

}  // namespace

bool ExpandApproxTopK::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      const std::optional<hlo::ApproxTopK> request = hlo::ApproxTopKOf(*instruction);
      if (!request) continue;
      Expand(instruction, *request);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
