#include "backends/opencl/compiler.h"

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/dump.h"
#include "backends/opencl/plan_builder.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/pipeline.h"

namespace hlorun::opencl {

CompilerResult CompileModule(const hlo::Module& module, const DeviceSpec& device, const CompileOptions& options,
                             const StageObserver& observe) {
  const auto stage = [&](const std::string& name) {
    if (observe) observe(name);
  };
  stage("verify");
  hlo::VerifyModule(module);
  Dump dump(options.dump_to, options.dump_pass_re, module.name());
  dump.Module(module, "before_optimizations");

  CompilerResult result;
  const std::unique_ptr<hlo::Module> optimized = module.Clone();
  const OpenClKernelModel kernels(device, options);
  passes::PassContext context{device, options, kernels, {}};
  passes::Pipeline pipeline = passes::OptimizationPipeline(options, device);
  pipeline.set_observer([&](const hlo::Module& now, std::string_view pass, bool, double) {
    ++result.passes_run;
    stage(std::string(pass));
    dump.AfterPass(now, std::string(pass));
  });
  pipeline.Run(*optimized, context);
  dump.Module(*optimized, "after_optimizations");

  stage("buffer-assignment");
  const passes::BufferAssignment buffers = passes::AssignBuffers(*optimized, context);
  dump.Buffers(buffers);
  stage("kernels");
  result.plan = BuildPlan(*optimized, buffers, context);
  result.plan.module_text = hlo::PrintModule(module);
  dump.PlanAndKernels(result.plan);
  result.remarks = std::move(context.remarks);
  return result;
}

}  // namespace hlorun::opencl
