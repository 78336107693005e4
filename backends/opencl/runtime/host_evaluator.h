// Runs the steps of a plan that the evaluator computes (codegen/host_evaluation.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>

#include "backends/opencl/plan.h"
#include "hlo/custom_calls/host_call.h"
#include "hlo/module.h"

namespace hlorun::opencl {

// One thread at a time. Keeps each step's parsed module from run to run.
class HostEvaluator {
 public:
  // `call` outlives the evaluator. A result may lie over an operand.
  void Run(const HostCallThunk& call, std::span<const hlo::HostArray> operands,
           std::span<const hlo::HostArray> results);

 private:
  std::unordered_map<const HostCallThunk*, std::unique_ptr<hlo::Module>> modules_;
};

}  // namespace hlorun::opencl
