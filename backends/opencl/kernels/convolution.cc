#include "backends/opencl/kernels/convolution.h"

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/direct_convolution.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/packing.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/tiled_tasks.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

struct Prepared {
  const hlo::Instruction* hero = nullptr;
  ArgumentRef input, weights;
  ConvolutionShape shape;
};

std::optional<Prepared> Prepare(const hlo::Instruction& instruction) {
  Prepared prepared;
  prepared.hero = passes::HeroOf(instruction).instruction;
  if (prepared.hero == nullptr || !prepared.hero->Is(hlo::Opcode::kConvolution)) return std::nullopt;
  const std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*prepared.hero);
  if (!shape || !Epilogue::Supports(instruction, *prepared.hero)) return std::nullopt;
  prepared.shape = *shape;
  prepared.input.number = OperandNumber(instruction, *prepared.hero, 0);
  prepared.weights.number = OperandNumber(instruction, *prepared.hero, 1);
  if (prepared.input.number < 0 || prepared.weights.number < 0) return std::nullopt;
  return prepared;
}

ProductPlan PointwisePlan(const ConvolutionShape& shape, const DeviceSpec& device) {
  ProductShape product;
  product.m = shape.batch * shape.rows.out * shape.columns.out;
  product.k = shape.channels;
  product.n = shape.features;
  product.lhs_type = shape.input_type;
  product.rhs_type = shape.weight_type;
  product.compute_type = shape.compute_type;
  return PlanProduct(product, device);
}

std::vector<KernelDraft> DirectKernels(const Prepared& prepared, const hlo::Instruction& instruction, const AliasPattern& aliases,
                                       const ConvolutionPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const MatrixSource weights{prepared.weights, shape.weight_type, 1, shape.Depth(), shape.features};
  const ConvolutionTask task{instruction, *prepared.hero, aliases, prepared.input, prepared.weights};
  return {PackColumns(weights, shape.compute_type, plan.lanes, plan.width(), ScratchSlice(0, plan.WeightBytes(), true)),
          DirectConvolutionKernel(task, plan)};
}

}  // namespace

std::optional<std::vector<EmittedLaunch>> EmitConvolution(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                          const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction);
  if (!prepared) return std::nullopt;
  std::vector<KernelDraft> kernels;
  if (context.device.device_class == DeviceClass::kGpu) {
    const ConvolutionTask task{instruction, *prepared->hero, aliases, prepared->input, prepared->weights};
    kernels = {TiledProductKernel(TiledConvolution(task, prepared->shape), context.device)};
  } else if (prepared->shape.IsProduct()) {
    const ProductTask task{instruction, *prepared->hero, aliases, prepared->input, prepared->weights};
    kernels = ProductKernels(task, PointwisePlan(prepared->shape, context.device));
  } else {
    kernels = DirectKernels(*prepared, instruction, aliases, PlanConvolution(prepared->shape, context.device));
  }
  std::vector<EmittedLaunch> launches;
  for (const KernelDraft& kernel : kernels) launches.push_back(MakeLaunch(kernel, context));
  return launches;
}

int64_t ConvolutionScratchBytes(const hlo::Instruction& instruction, const DeviceSpec& device) {
  const std::optional<Prepared> prepared = Prepare(instruction);
  if (!prepared || device.device_class != DeviceClass::kCpu) return 0;
  if (prepared->shape.IsProduct()) return PointwisePlan(prepared->shape, device).ScratchBytes();
  return PlanConvolution(prepared->shape, device).ScratchBytes();
}

}  // namespace hlorun::opencl
