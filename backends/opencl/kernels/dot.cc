#include "backends/opencl/kernels/dot.h"

#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/product_plan.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

// The operand of the executed instruction that `operand` (of the hero) is; -1 when it is computed inside the fusion.
int64_t OperandNumber(const hlo::Instruction& instruction, const hlo::Instruction& hero, int64_t operand) {
  if (&instruction == &hero) return operand;
  const hlo::Instruction* source = hero.operand(operand);
  return source->Is(hlo::Opcode::kParameter) ? source->parameter_number() : -1;
}

struct Prepared {
  const hlo::Instruction* hero = nullptr;
  ArgumentRef lhs, rhs;
  ProductPlan plan;
};

std::optional<Prepared> Prepare(const hlo::Instruction& instruction, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu) return std::nullopt;
  Prepared prepared;
  prepared.hero = passes::HeroOf(instruction).instruction;
  if (prepared.hero == nullptr || !prepared.hero->Is(hlo::Opcode::kDot)) return std::nullopt;
  const std::optional<ProductShape> shape = ProductShapeOf(*prepared.hero);
  if (!shape || !Epilogue::Supports(instruction, *prepared.hero)) return std::nullopt;
  const int64_t lhs = OperandNumber(instruction, *prepared.hero, 0), rhs = OperandNumber(instruction, *prepared.hero, 1);
  if (lhs < 0 || rhs < 0) return std::nullopt;
  prepared.lhs.number = shape->swapped ? rhs : lhs;
  prepared.rhs.number = shape->swapped ? lhs : rhs;
  prepared.plan = PlanProduct(*shape, device);
  return prepared;
}

// The copies of operands that the plan asks for.
std::vector<KernelDraft> PackingKernels(const ProductTask& task, const ProductPlan& plan) {
  const ProductShape& shape = plan.shape;
  std::vector<KernelDraft> kernels;
  if (plan.lhs != LhsForm::kInPlace) {
    const ArgumentRef out = ScratchSlice(0, plan.LhsBytes(), true);
    const MatrixSource source{task.lhs, shape.lhs_type, shape.batch, shape.lhs_transposed ? shape.k : shape.m,
                              shape.lhs_transposed ? shape.m : shape.k};
    kernels.push_back(plan.lhs == LhsForm::kPanels ? PackTiles(source, shape.compute_type, plan.lanes, plan.rows, out)
                                                   : Convert(source, shape.compute_type, plan.lanes, out));
  }
  if (plan.rhs != RhsForm::kInPlace) {
    const ArgumentRef out = ScratchSlice(plan.RhsOffset(), plan.RhsBytes(), true);
    const MatrixSource source{task.rhs, shape.rhs_type, shape.batch, shape.rhs_transposed ? shape.n : shape.k,
                              shape.rhs_transposed ? shape.k : shape.n};
    kernels.push_back(shape.rhs_transposed ? PackTransposed(source, shape.compute_type, plan.lanes, plan.columns(), out)
                                           : PackColumns(source, shape.compute_type, plan.lanes, plan.columns(), out));
  }
  return kernels;
}

}  // namespace

std::optional<std::vector<EmittedLaunch>> EmitDot(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                  const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction, context.device);
  if (!prepared) return std::nullopt;
  const ProductPlan& plan = prepared->plan;
  const ProductTask task{instruction, *prepared->hero, aliases, prepared->lhs, prepared->rhs};
  std::vector<KernelDraft> kernels;
  if (plan.dot_products) {
    kernels.push_back(DotProductKernel(task, plan));
  } else {
    kernels = PackingKernels(task, plan);
    kernels.push_back(MultiplyKernel(task, plan));
    if (plan.UsesPartialSums()) kernels.push_back(CombineKernel(task, plan));
  }
  std::vector<EmittedLaunch> launches;
  for (const KernelDraft& kernel : kernels) launches.push_back(MakeLaunch(kernel, context));
  return launches;
}

int64_t DotScratchBytes(const hlo::Instruction& instruction, const DeviceSpec& device) {
  const std::optional<Prepared> prepared = Prepare(instruction, device);
  return prepared && !prepared->plan.dot_products ? prepared->plan.ScratchBytes() : 0;
}

}  // namespace hlorun::opencl
