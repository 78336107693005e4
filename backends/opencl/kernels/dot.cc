#include "backends/opencl/kernels/dot.h"

#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/product_extents.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/tiled_tasks.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

struct Prepared {
  const hlo::Instruction* hero = nullptr;
  ArgumentRef lhs, rhs;
  ProductPlan plan;
};

std::optional<Prepared> Prepare(const hlo::Instruction& instruction, const DeviceSpec& device) {
  Prepared prepared;
  prepared.hero = passes::HeroOf(instruction).instruction;
  if (prepared.hero == nullptr || !prepared.hero->Is(hlo::Opcode::kDot)) return std::nullopt;
  std::optional<ProductShape> shape = ProductShapeOf(*prepared.hero);
  if (!shape || !Epilogue::Supports(instruction, *prepared.hero)) return std::nullopt;
  const int64_t lhs = OperandNumber(instruction, *prepared.hero, 0),
                rhs = OperandNumber(instruction, *prepared.hero, 1);
  if (lhs < 0 || rhs < 0) return std::nullopt;
  prepared.lhs.number = shape->swapped ? rhs : lhs;
  prepared.rhs.number = shape->swapped ? lhs : rhs;
  shape->depth_may_be_less = passes::ExtentsOf(instruction).contraction.has_value();
  shape->ends_at_sizes = !passes::ExtentsOf(instruction).empty();
  prepared.plan = PlanProduct(*shape, device);
  return prepared;
}

}  // namespace

std::optional<std::vector<EmittedLaunch>> EmitDot(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                  const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction, context.device);
  if (!prepared) return std::nullopt;
  const ProductPlan& plan = prepared->plan;
  const ProductTask task{instruction, *prepared->hero, aliases, prepared->lhs, prepared->rhs};
  if (context.device.device_class == DeviceClass::kGpu) {
    return std::vector{MakeLaunch(TiledProductKernel(TiledDot(task, plan.shape), context.device), context)};
  }
  std::vector<EmittedLaunch> launches;
  for (const KernelDraft& kernel : ProductKernels(task, plan)) launches.push_back(MakeLaunch(kernel, context));
  return launches;
}

bool HasProductKernel(const hlo::Instruction& instruction, const DeviceSpec& device) {
  return Prepare(instruction, device).has_value();
}

int64_t DotScratchBytes(const hlo::Instruction& instruction, const DeviceSpec& device) {
  const std::optional<Prepared> prepared = Prepare(instruction, device);
  return prepared && device.device_class == DeviceClass::kCpu ? prepared->plan.ScratchBytes() : 0;
}

}  // namespace hlorun::opencl
