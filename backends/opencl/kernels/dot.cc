#include "backends/opencl/kernels/dot.h"

#include <algorithm>
#include <utility>

#include "backends/opencl/kernels/bf16_parts.h"
#include "backends/opencl/kernels/computed_operand.h"
#include "backends/opencl/kernels/constant_operand.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/matrix_unit_product.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/product_extents.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/tiled_tasks.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/stored_result.h"

namespace hlorun::opencl {
namespace {

struct Prepared {
  const hlo::Instruction* hero = nullptr;
  ArgumentRef lhs, rhs;
  ProductShape shape;
  bool keeps_rows = false;  // as `PrepareRoles` has it
};

bool IsWhole(const ProductShape& shape) { return !shape.depth_may_be_less && !shape.ends_at_sizes; }

// Whether a copy of an operand is made once and read by many products: before a loop, or before the first run. Weights
// larger than the last cache come from memory in any order, and would lie there twice.
bool IsKept(const hlo::Instruction& operand, const DeviceSpec& device, const CompileOptions* options) {
  if (IsSameInEveryTrip(operand, device)) return true;
  return options != nullptr && operand.shape().ByteSize() <= device.l3_bytes && IsSameInEveryRun(operand, *options);
}

ArgumentRef OperandOf(const hlo::Instruction& instruction, const hlo::Instruction& hero, int64_t of_dot) {
  if (IsComputed(instruction, hero, of_dot)) return {.kind = ArgumentRef::Kind::kComputed, .number = of_dot};
  return {.number = OperandNumber(instruction, hero, of_dot)};
}
bool IsComputed(const ArgumentRef& operand) { return operand.kind == ArgumentRef::Kind::kComputed; }

// The product that `instruction` is, with its operands as they stand.
std::optional<Prepared> FindProduct(const hlo::Instruction& instruction) {
  Prepared prepared;
  prepared.hero = passes::HeroOf(instruction).instruction;
  if (prepared.hero == nullptr || !prepared.hero->Is(hlo::Opcode::kDot)) return std::nullopt;
  std::optional<ProductShape> shape = ProductShapeOf(*prepared.hero);
  if (!shape || !Epilogue::Supports(instruction, *prepared.hero)) return std::nullopt;
  shape->depth_may_be_less = passes::ExtentsOf(instruction).contraction.has_value();
  shape->ends_at_sizes = !passes::ExtentsOf(instruction).empty();
  prepared.lhs = OperandOf(instruction, *prepared.hero, shape->swapped ? 1 : 0);
  prepared.rhs = OperandOf(instruction, *prepared.hero, shape->swapped ? 0 : 1);
  prepared.shape = *shape;
  return prepared;
}

// The rows that the root of a fusion makes one of; 0 where it keeps them.
int64_t RowsReduced(const hlo::Instruction& instruction) {
  return instruction.Is(hlo::Opcode::kFusion) ? passes::RowsOfGroup(*instruction.called()->root()) : 0;
}

// The same with the roles that its operands have in the kernels. Null options: parameters count as changing.
// `keeps_rows`: rows of the result are rows of tiles.
std::optional<Prepared> PrepareRoles(const hlo::Instruction& instruction, const DeviceSpec& device,
                                     const CompileOptions* options, bool keeps_rows) {
  std::optional<Prepared> prepared = FindProduct(instruction);
  if (!prepared) return std::nullopt;
  if (options != nullptr && !MayCutIntoParts(*options)) prepared->shape.multiplies_as_typed = true;
  prepared->keeps_rows = keeps_rows;
  if (keeps_rows) prepared->shape.is_symmetric = false;  // a group of rows is reduced where it is
  if (device.device_class != DeviceClass::kCpu || !IsWhole(prepared->shape)) return prepared;
  ProductShape& shape = prepared->shape;
  // Whether an operand may be computed, and how many rows are reduced, depends on the plan, so the plan does not on
  // what else the module keeps.
  shape.rhs_is_kept = !keeps_rows && !IsComputed(prepared->lhs) && !IsComputed(prepared->rhs) &&
                      IsKept(*instruction.operand(prepared->rhs.number), device, options);
  // Tiles of the matrix unit are copies of both sides, whichever is which.
  if (keeps_rows || PlanMatrixUnit(shape, device)) return prepared;
  const bool was_swapped = shape.swapped;
  shape = WithLessToPack(shape, device);
  if (shape.swapped != was_swapped) std::swap(prepared->lhs, prepared->rhs);
  return prepared;
}

// The schedule that the options hold; null: the rules choose. They do where rows are reduced as tiles have them: other
// tiles would add in another order.
const ProductSchedule* Tuned(const Prepared& prepared, const CompileOptions& options) {
  if (!IsWhole(prepared.shape) || prepared.keeps_rows) return nullptr;
  return TunedScheduleOf(*prepared.hero, options);
}

ProductPlan PlanOf(const Prepared& prepared, const EmitContext& context) {
  return PlanProduct(prepared.shape, context.device, std::get_if<PanelSchedule>(Tuned(prepared, context.options)));
}

// GPU class.
ProductSchedule GpuScheduleOf(const Prepared& prepared, const EmitContext& context) {
  const ProductSchedule* tuned = Tuned(prepared, context.options);
  if (tuned != nullptr && !std::holds_alternative<LibrarySchedule>(*tuned)) return *tuned;
  return GpuScheduleByRule(prepared.shape, IsWhole(prepared.shape), context.device);
}

// Rows of a tile, where all of its sums are finished in one place; of GPU class those that one work-item has together.
int64_t RowsFinished(const Prepared& prepared, const EmitContext& context) {
  const ProductShape& shape = prepared.shape;
  if (!IsWhole(shape) || shape.swapped) return 0;
  if (context.device.device_class != DeviceClass::kCpu) {
    const ProductSchedule schedule = GpuScheduleOf(prepared, context);
    const auto* tiled = std::get_if<TiledSchedule>(&schedule);
    if (tiled == nullptr || tiled->Parts(shape.k) > 1) return 0;
    const int64_t rows = tiled->RowsTogether(shape.compute_type);
    return rows > 1 ? rows : 0;
  }
  if (PlanMatrixUnit(shape, context.device)) return MatrixUnitPlan::kBlock;
  const ProductPlan plan = PlanOf(prepared, context);
  return plan.IsByRows() || plan.CombinesParts() ? 0 : plan.rows;
}

// Whether rows that the unit could read as they lie are better copied where they are computed. Rows of bf16 are not: a
// kernel of their own, which takes two numbers at once, writes them as quickly, and tall operands of short rows more so
// (docs/products.md).
bool CopiesWhenComputed(const MatrixUnitPlan& plan) { return plan.shape.lhs_type == hlo::ElementType::kS8; }

// A lhs that is computed is copied where it would else be read as it lies, a rhs by a launch: sums are the same.
std::optional<MatrixUnitPlan> UnitPlanOf(const Prepared& prepared, const DeviceSpec& device) {
  std::optional<MatrixUnitPlan> plan = PlanMatrixUnit(prepared.shape, device);
  if (plan && IsComputed(prepared.lhs)) plan->lhs_in_place = false;
  if (plan && IsComputed(prepared.rhs)) plan->slots = 0;
  return plan;
}

// Whether kernels read an operand by plain loads, each element once, or once for each of few rows; `is_rhs`: in that
// role.
bool ReadsOnce(const Prepared& prepared, bool is_rhs, const EmitContext& context) {
  const ProductShape& shape = prepared.shape;
  if (context.device.device_class != DeviceClass::kCpu) {
    const ProductSchedule schedule = GpuScheduleOf(prepared, context);
    const auto* tiled = std::get_if<TiledSchedule>(&schedule);
    return tiled != nullptr && (is_rhs ? shape.m <= tiled->rows() : shape.n <= tiled->columns());
  }
  if (const auto unit = PlanMatrixUnit(shape, context.device))
    return is_rhs || unit->PacksLhs() || CopiesWhenComputed(*unit);
  const ProductPlan plan = PlanOf(prepared, context);
  if (plan.IsByRows()) return is_rhs;
  if (plan.words) return false;
  // It is copied by vectors along all of its rows.
  if (!is_rhs) return (plan.lhs == LhsForm::kConverted || plan.lhs == LhsForm::kSpread) && shape.k % plan.lanes == 0;
  return !plan.shape.rhs_transposed && (plan.rhs != RhsForm::kInPlace || plan.tiles == 1);
}

// Whether the matrix unit's copies would read more rows at once than the CPU sends for by itself: 32 of each array that
// an operand is made of, a short run at a time, which matters where rows are longer than a page (docs/products.md).
bool ReadsTooManyRows(const Prepared& prepared, int64_t of_dot, const hlo::Instruction& made,
                      const DeviceSpec& device) {
  constexpr int64_t kPageBytes = 4096;
  const ProductShape& shape = prepared.shape;
  const bool is_rhs = of_dot == 1;
  const int64_t row_bytes = shape.k * hlo::BytesOf(is_rhs ? shape.rhs_type : shape.lhs_type);
  if ((is_rhs ? !shape.rhs_transposed : shape.lhs_transposed) || row_bytes <= kPageBytes) return false;
  const auto arrays = std::count_if(made.operands().begin(), made.operands().end(), [&](const auto* operand) {
    return operand->shape().IsArray() && operand->shape().ElementCount() >= made.shape().ElementCount();
  });
  return arrays > 1 && PlanMatrixUnit(shape, device).has_value();
}

// Nullopt also where an operand is computed, or rows are reduced, that the kernels would not read, or finish, so.
std::optional<Prepared> Prepare(const hlo::Instruction& instruction, const EmitContext& context) {
  const int64_t reduced = RowsReduced(instruction);
  std::optional<Prepared> prepared = PrepareRoles(instruction, context.device, &context.options, reduced > 0);
  if (!prepared || (reduced > 0 && RowsFinished(*prepared, context) != reduced)) return std::nullopt;
  const bool may_compute = (!IsComputed(prepared->lhs) || ReadsOnce(*prepared, false, context)) &&
                           (!IsComputed(prepared->rhs) || ReadsOnce(*prepared, true, context));
  return may_compute ? prepared : std::nullopt;
}

std::vector<KernelDraft> Kernels(const ProductTask& task, const Prepared& prepared, const EmitContext& context) {
  if (const auto unit = UnitPlanOf(prepared, context.device)) return MatrixUnitKernels(task, *unit);
  if (context.device.device_class == DeviceClass::kCpu) return ProductKernels(task, PlanOf(prepared, context));
  return GpuProductKernels(TiledDot(task, prepared.shape), GpuScheduleOf(prepared, context), context.device);
}

}  // namespace

std::optional<std::vector<EmittedLaunch>> EmitDot(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                  const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction, context);
  if (!prepared) return std::nullopt;
  const ProductTask task{instruction, *prepared->hero, aliases, prepared->lhs, prepared->rhs};
  std::vector<EmittedLaunch> launches;
  for (KernelDraft& kernel : Kernels(task, *prepared, context)) {
    launches.push_back(MakeLaunch(WithComputedOperands(std::move(kernel), instruction, *prepared->hero), context));
  }
  return launches;
}

bool HasProductKernel(const hlo::Instruction& instruction) { return FindProduct(instruction).has_value(); }

int64_t DotScratchBytes(const hlo::Instruction& instruction, const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction, context);
  if (!prepared) return 0;
  if (const auto unit = UnitPlanOf(*prepared, context.device)) return unit->ScratchBytes();
  const bool is_cpu = context.device.device_class == DeviceClass::kCpu;
  return is_cpu ? PlanOf(*prepared, context).ScratchBytes()
                : PartBytes(prepared->shape, GpuScheduleOf(*prepared, context));
}

std::vector<int64_t> OperandsCopiedByDot(const hlo::Instruction& instruction, const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction, context);
  if (!prepared || context.device.device_class != DeviceClass::kCpu ||
      PlanMatrixUnit(prepared->shape, context.device)) {
    return {};
  }
  const ProductPlan plan = PlanOf(*prepared, context);
  std::vector<int64_t> copied;
  if (plan.IsByRows()) return copied;
  if (plan.lhs != LhsForm::kInPlace && !IsComputed(prepared->lhs)) copied.push_back(prepared->lhs.number);
  if (plan.rhs == RhsForm::kPanels && !IsComputed(prepared->rhs)) copied.push_back(prepared->rhs.number);
  return copied;
}

bool MayComputeOperand(const hlo::Instruction& instruction, int64_t of_dot, const hlo::Instruction& made,
                       const EmitContext& context) {
  const std::optional<Prepared> prepared = Prepare(instruction, context);
  // What is the same in each run is made, and copied, once; and a copy that is kept goes with a plan of its own.
  if (!prepared || !IsWhole(prepared->shape) || prepared->shape.rhs_is_kept ||
      IsSameInEveryTrip(made, context.device) || IsSameInEveryRun(made, context.options))
    return false;
  if (ReadsTooManyRows(*prepared, of_dot, made, context.device)) return false;
  if (IsComputed(instruction, *prepared->hero, of_dot)) return true;  // as it is, so with more
  const int64_t number = OperandNumber(instruction, *prepared->hero, of_dot);
  const bool is_rhs = !IsComputed(prepared->rhs) && prepared->rhs.number == number;
  return ReadsOnce(*prepared, is_rhs, context);
}

int64_t RowsFinishedByDot(const hlo::Instruction& dot, const EmitContext& context) {
  const std::optional<Prepared> prepared = PrepareRoles(dot, context.device, &context.options, true);
  return prepared ? RowsFinished(*prepared, context) : 0;
}

std::optional<ProductProblem> TunableProductOf(const hlo::Instruction& instruction, const DeviceSpec& device) {
  if (RowsReduced(instruction) > 0) return std::nullopt;  // see Tuned
  const std::optional<Prepared> prepared = PrepareRoles(instruction, device, nullptr, false);
  if (!prepared || !IsWhole(prepared->shape)) return std::nullopt;
  std::optional<ProductProblem> problem = ProductProblemOf(*prepared->hero);
  // These have nothing to choose.
  const bool by_rows = device.device_class == DeviceClass::kCpu && PlanProduct(prepared->shape, device).IsByRows();
  return by_rows || PlanMatrixUnit(prepared->shape, device) ? std::nullopt : problem;
}

}  // namespace hlorun::opencl
