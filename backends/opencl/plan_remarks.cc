#include "backends/opencl/plan_remarks.h"

#include <fmt/format.h>

#include "hlo/cost_analysis.h"
#include "hlo/module.h"
#include "passes/control/conditional_to_select.h"
#include "passes/control/predication.h"
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

Remark ExplainLoop(const hlo::Instruction& loop, const passes::PassContext& context) {
  const passes::TimeModel time(context.device);
  Remark remark = About(Remark::Subject::kLoop, loop);
  const std::string launches = "the launches of its body, queued back to back";
  if (const std::optional<int64_t> trips = hlo::KnownTripCount(loop)) {
    remark.choice = "enqueued";
    remark.reason = fmt::format("its {} iterations are known, so the host enqueues them without asking", *trips);
    remark.cost = launches;
    return remark;
  }
  const std::optional<passes::LoopPredication> predicated = passes::PredicationOf(loop);
  if (predicated && predicated->ahead == 0) {
    remark.choice = "enqueued";
    remark.reason = fmt::format(
        "it ends after {} iterations at the latest: the host enqueues them all, and kernels of those after "
        "its end read the predicate and return at once",
        predicated->at_most);
    remark.cost =
        fmt::format("{}; about {:.2g} us for an iteration that does not run", launches,
                    time.launch() * (time.Launches(*loop.while_body()) + time.Launches(*loop.while_condition())));
    return remark;
  }
  remark.host_waits = true;
  remark.advice =
      "count to a constant (fori_loop, scan), or add \"and i < N\" to its condition: then it is enqueued to the end";
  if (predicated) {
    remark.choice = "ahead";
    remark.reason = fmt::format(
        "its number of iterations is data: kernels read the predicate, and the host enqueues {} iteration{} "
        "while that of earlier ones comes back",
        predicated->ahead, predicated->ahead == 1 ? "" : "s");
    remark.cost = fmt::format("no wait of the device; up to {} iterations after the end, whose kernels return at once",
                              2 * predicated->ahead);
    return remark;
  }
  remark.choice = "host";
  remark.reason = "its number of iterations is data, so the host reads the predicate back before each";
  for (const hlo::Computation* called : loop.called_computations()) {
    const std::string why = passes::WhyNotPredicated(*called, context.kernels);
    if (!why.empty()) remark.reason += ": " + why;
    if (!why.empty()) break;
  }
  remark.cost = "one wait of the host an iteration, about 40 us";
  return remark;
}

Remark ExplainPredicatedBranch(const hlo::Instruction& conditional, const passes::PassContext& context) {
  const passes::TimeModel time(context.device);
  double launches = 0;
  for (const hlo::Computation* branch : conditional.called_computations()) launches += time.Launches(*branch);
  Remark remark = About(Remark::Subject::kConditional, conditional);
  remark.choice = "predicate";
  remark.reason =
      "kernels of all branches read the predicate on the device, and those of a branch that is not taken return at once";
  remark.cost = fmt::format("{:.3g} launches of about {:.2g} us, of which the branch that is taken works", launches,
                            time.launch());
  const std::string why = passes::WhyNotBothBranches(conditional);
  if (context.options.branches == BranchStrategy::kSelect) {
    remark.reason += "; not select, as --branches asks: " + why;
    remark.warns = true;
  }
  return remark;
}

Remark ExplainHostBranch(const hlo::Instruction& conditional, const passes::PassContext& context) {
  Remark remark = About(Remark::Subject::kConditional, conditional);
  remark.choice = "host";
  remark.reason = "the host reads the predicate back and enqueues one branch";
  const BranchStrategy asked = context.options.branches;
  std::string why;
  for (const hlo::Computation* branch : conditional.called_computations()) {
    if (why.empty()) why = passes::WhyNotPredicated(*branch, context.kernels);
  }
  if (asked == BranchStrategy::kHost) {
    why = "--branches=host asks for it";
  } else if (why.empty()) {
    why = "launching the kernels of all branches costs more than its wait";
    remark.advice = "--branches=predicate launches them, and nothing waits; or ";
  }
  remark.reason += ": " + why;
  remark.warns = asked == BranchStrategy::kSelect || asked == BranchStrategy::kPredicate;
  remark.cost = "one wait of the host, about 40 us, and a queue that runs empty";
  remark.advice += "compute both branches and take one with where(), or move what has effects out of the branches";
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

Remark ExplainTunedProduct(const hlo::Instruction& product, const TunedProduct& choice) {
  Remark remark = About(Remark::Subject::kProduct, product);
  remark.choice = ToString(choice.schedule);
  remark.reason = choice.us > 0 ? fmt::format("measured: {:.1f} us, what the rules choose takes {:.1f} us", choice.us,
                                              choice.rule_us)
                                : "not measured: what the rules choose";
  return remark;
}

}  // namespace hlorun::opencl
