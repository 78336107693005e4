// Module -> Plan: the pipeline, buffer assignment and plan building in one call, with dumps of every stage.
#pragma once

#include <functional>
#include <string>

#include "backends/opencl/kernels/product_schedule.h"
#include "backends/opencl/plan.h"
#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::opencl {

// A product that a tuner may choose a schedule for, and how many instructions compute it.
struct ProductUse {
  ProductProblem problem;
  int64_t uses = 0;
};

struct CompilerResult {
  Plan plan;
  std::vector<ProductUse> products;  // in the order in which they are met
  int64_t passes_run = 0;
};

// Called before each stage with its name ("simplify", "fusion", "kernels" ...), for progress on a terminal.
using StageObserver = std::function<void(const std::string& stage)>;

// Verifies, optimises, assigns buffers, emits kernels. `module` is not changed. Depends on nothing but its arguments.
// Throws Error for modules that do not verify or hold what no kernel runs.
CompilerResult CompileModule(const hlo::Module& module, const DeviceSpec& device, const CompileOptions& options,
                             const StageObserver& observe = nullptr);

}  // namespace hlorun::opencl
