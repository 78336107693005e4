#include "backends/opencl/plan_remarks.h"

#include <fmt/format.h>

#include "hlo/module.h"
#include "passes/control/conditional_to_select.h"
#include "passes/control/time_model.h"

namespace hlorun::opencl {
namespace {

using passes::Remark;

Remark About(Remark::Subject subject, const hlo::Instruction& instruction) {
  Remark remark;
  remark.subject = subject;
  remark.instruction = instruction.name();
  remark.source = instruction.module()->SourceOf(instruction);
  return remark;
}

}  // namespace

Remark ExplainLoop(const hlo::Instruction& loop, int64_t trip_count) {
  Remark remark = About(Remark::Subject::kLoop, loop);
  if (trip_count >= 0) {
    remark.choice = "enqueued";
    remark.reason = fmt::format("its {} iterations are known, so the host enqueues them without asking", trip_count);
    remark.cost = "the launches of its body, queued back to back";
    return remark;
  }
  remark.choice = "host";
  remark.reason = "its number of iterations is data, so the host reads the predicate back before each";
  remark.cost = "one wait of the host an iteration, about 40 us";
  remark.advice = "count to a constant (fori_loop, scan), or mask the iterations beyond the end of an unrolled loop";
  remark.host_waits = true;
  return remark;
}

Remark ExplainHostBranch(const hlo::Instruction& conditional, const passes::PassContext& context) {
  Remark remark = About(Remark::Subject::kConditional, conditional);
  remark.choice = "host";
  const std::string why = passes::WhyNotBothBranches(conditional);
  remark.reason = "the host reads the predicate back and enqueues one branch";
  if (context.options.branches == BranchStrategy::kHost) {
    remark.reason += ", as --branches=host asks";
  } else if (!why.empty()) {
    remark.reason += ": " + why;
  }
  remark.cost = "one wait of the host, about 40 us, and a queue that runs empty";
  remark.advice = "compute both branches and take one with where(), or move what has effects out of the branches";
  remark.host_waits = true;
  return remark;
}

Remark ExplainHostCall(const hlo::Instruction& call) {
  Remark remark = About(Remark::Subject::kHostCall, call);
  remark.choice = "host";
  remark.reason = call.Is(hlo::Opcode::kCustomCall)
                      ? fmt::format("\"{}\" runs on the host", call.As<hlo::attr::CustomCall>().target)
                      : fmt::format("{} runs on the host", hlo::OpcodeName(call.opcode()));
  remark.cost = "the host waits for its operands, and the device for its results";
  remark.advice = "register an OpenCL kernel for it, or write it in array operations";
  remark.host_waits = true;
  return remark;
}

Remark ExplainOwnProduct(const hlo::Instruction& dot) {
  Remark remark = About(Remark::Subject::kProduct, dot);
  remark.choice = "own kernel";
  remark.reason = "CLBlast does not multiply these types or shapes";
  remark.warns = true;
  return remark;
}

}  // namespace hlorun::opencl
