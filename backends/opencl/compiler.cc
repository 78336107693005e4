#include "backends/opencl/compiler.h"

#include <atomic>
#include <map>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/kernels/convolution.h"
#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "backends/opencl/plan_builder.h"
#include "backends/opencl/plan_remarks.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/dump.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/pipeline.h"

namespace hlorun::opencl {
namespace {

// The number of this process's next dumped module.
int64_t NextModuleNumber() {
  static std::atomic<int64_t> next{0};
  return next++;
}

void DumpPlan(const CompileOptions& options, const Plan& plan, int64_t number) {
  if (options.dump_to.empty()) return;
  passes::DumpText(options, plan.module_name, number, "plan.txt", plan.ToString());
  for (const Kernel& kernel : plan.kernels) {
    passes::DumpText(options, plan.module_name, number, kernel.name + ".kir", kernel.kernel_ir);
    passes::DumpText(options, plan.module_name, number, kernel.name + ".cl", kernel.source);
  }
}

// Calls visit(instruction, problem) for each product of an executed computation.
template <typename Visit>
void ForEachProduct(const hlo::Module& module, const EmitContext& context, const Visit& visit) {
  for (const hlo::Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) {
      auto problem = TunableProductOf(*instruction, context.device);
      if (!problem) problem = TunableConvolutionOf(*instruction, context);
      if (problem) visit(*instruction, *problem);
    }
  }
}

std::vector<ProductUse> ProductsOf(const hlo::Module& module, const EmitContext& context) {
  std::vector<ProductUse> products;
  std::map<std::string, size_t> numbers;
  ForEachProduct(module, context, [&](const hlo::Instruction&, const ProductProblem& problem) {
    const auto [found, added] = numbers.try_emplace(problem.ToString(), products.size());
    if (added) products.push_back({problem, 0});
    ++products[found->second].uses;
  });
  return products;
}

// The choices of `options` that hold for the module: they are explained, and kept with the plan.
void NoteTunedProducts(const hlo::Module& module, passes::PassContext& context, Plan& plan) {
  if (context.options.tuned == nullptr) return;
  TuningRecord used(context.device);
  ForEachProduct(module, {context.device, context.options},
                 [&](const hlo::Instruction& instruction, const ProductProblem& problem) {
                   const TunedProduct* product = context.options.tuned->Find(problem);
                   if (product == nullptr) return;
                   used.Set(problem, *product);
                   context.remarks.push_back(ExplainTunedProduct(instruction, *product));
                 });
  if (!used.empty()) plan.tuning = used.ToJson();
}

}  // namespace

CompilerResult CompileModule(const hlo::Module& module, const DeviceSpec& device, const CompileOptions& options,
                             const StageObserver& observe) {
  const auto stage = [&](const std::string& name) {
    if (observe) observe(name);
  };
  stage("verify");
  hlo::VerifyModule(module);
  const int64_t number = options.dump_to.empty() ? 0 : NextModuleNumber();
  const passes::Pipeline::Observer dump_pass = passes::DumpingObserver(options, number);
  passes::DumpModule(options, module, number, "before_optimizations");

  CompilerResult result;
  const std::unique_ptr<hlo::Module> optimized = module.Clone();
  const OpenClKernelModel kernels(device, options);
  passes::PassContext context{device, options, kernels, {}};
  passes::Pipeline pipeline = passes::OptimizationPipeline(options, device);
  pipeline.set_observer([&](const hlo::Module& now, std::string_view pass, bool changed, double seconds) {
    ++result.passes_run;
    stage(std::string(pass));
    if (dump_pass) dump_pass(now, pass, changed, seconds);
  });
  pipeline.Run(*optimized, context);
  passes::DumpModule(options, *optimized, number, "after_optimizations");

  stage("buffer-assignment");
  const passes::BufferAssignment buffers = passes::AssignBuffers(*optimized, context);
  if (!options.dump_to.empty()) {
    passes::DumpText(options, module.name(), number, "buffer-assignment.txt", buffers.ToString());
  }
  stage("kernels");
  result.plan = BuildPlan(*optimized, buffers, context);
  result.products = ProductsOf(*optimized, {device, options});
  NoteTunedProducts(*optimized, context, result.plan);
  result.plan.module_text = hlo::PrintModule(module);
  DumpPlan(options, result.plan, number);
  result.plan.remarks = std::move(context.remarks);
  return result;
}

}  // namespace hlorun::opencl
