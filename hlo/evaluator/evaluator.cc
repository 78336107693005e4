#include "hlo/evaluator/evaluator.h"

#include "hlo/error.h"
#include "hlo/evaluator/evaluation.h"
#include "hlo/evaluator/spmd.h"

namespace hlorun::hlo {
namespace {

// A bounded parameter takes any size up to its bound.
bool Fits(const Shape& given, const Shape& declared) {
  if (declared.IsTuple()) {
    if (!given.IsTuple() || given.tuple_shapes().size() != declared.tuple_shapes().size()) return false;
    for (size_t i = 0; i < given.tuple_shapes().size(); ++i) {
      if (!Fits(given.tuple_shapes()[i], declared.tuple_shapes()[i])) return false;
    }
    return true;
  }
  if (given.element_type() != declared.element_type() || given.rank() != declared.rank()) return false;
  for (int64_t d = 0; d < given.rank(); ++d) {
    const int64_t size = given.dimension(d);
    const int64_t bound = declared.dimension(d);
    if (declared.is_dynamic_dimension(d) ? size > bound : size != bound) return false;
  }
  return true;
}

void CheckArguments(const Computation& computation, std::span<const Literal> arguments) {
  if (static_cast<int64_t>(arguments.size()) != computation.parameter_count()) {
    Invalid("computation {} takes {} parameters, {} values were given", computation.name(),
            computation.parameter_count(), arguments.size());
  }
  for (int64_t i = 0; i < computation.parameter_count(); ++i) {
    const Shape& given = arguments[static_cast<size_t>(i)].shape();
    const Shape& declared = computation.parameter(i)->shape();
    if (!Fits(given, declared)) {
      Invalid("parameter {} of {} is {}, the value given is {}", i, computation.name(), declared.ToString(false),
              given.ToString(false));
    }
  }
}

}  // namespace

Literal Evaluate(const Module& module, std::span<const Literal> arguments, const EvaluatorOptions& options) {
  HLORUN_CHECK(module.entry() != nullptr);
  return EvaluateComputation(*module.entry(), arguments, options);
}

Literal EvaluateComputation(const Computation& computation, std::span<const Literal> arguments,
                            const EvaluatorOptions& options) {
  CheckArguments(computation, arguments);
  const DenormalFlush flush(options.flush_denormals);
  Evaluation evaluation(options);
  evaluation.set_observed(&computation);
  return evaluation.Run(computation, {arguments.begin(), arguments.end()});
}

Literal EvaluateInstruction(const Instruction& instruction, std::span<const Literal> operands,
                            const EvaluatorOptions& options) {
  HLORUN_CHECK(static_cast<int64_t>(operands.size()) == instruction.operand_count());
  const DenormalFlush flush(options.flush_denormals);
  Evaluation evaluation(options);
  std::vector<Literal> values(operands.begin(), operands.end());
  return evaluation.Apply(instruction, values);
}

std::vector<Literal> EvaluateSpmd(const Module& module, const std::vector<std::vector<Literal>>& arguments,
                                  const EvaluatorOptions& options) {
  HLORUN_CHECK(module.entry() != nullptr);
  SpmdRun run(module.replica_count, module.num_partitions);
  if (static_cast<int64_t>(arguments.size()) != run.device_count()) {
    Invalid("module {} runs on {} devices ({} replicas of {} partitions), arguments were given for {}", module.name(),
            run.device_count(), module.replica_count, module.num_partitions, arguments.size());
  }
  for (const std::vector<Literal>& device : arguments) CheckArguments(*module.entry(), device);
  return run.Run(*module.entry(), arguments, options);
}

}  // namespace hlorun::hlo
