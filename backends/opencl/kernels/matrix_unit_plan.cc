#include "backends/opencl/kernels/matrix_unit_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/even_groups.h"
#include "backends/opencl/kernels/product_schedule.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

// Fewer rows or columns leave most of a tile empty, and fewer results most of a block; what register tiles do then is
// bound by memory.
constexpr int64_t kFewestRows = 12, kFewestColumns = 12, kFewestResults = 1024;
// Copying both operands costs about as much as a product of this depth.
constexpr int64_t kLeastDepth = 16;
// Few blocks with long sums: register tiles cut those into parts.
constexpr int64_t kFewBlocks = 8, kLongSum = 1024;
// Columns of a group: their copy of rhs is to stay in the second cache, beside other things; sums that wait stay on the
// stack.
constexpr int64_t kMostColumns = 16, kMostColumnsOfParts = 8, kFewestShared = 4;
// Below this depth turning a block's sums, and storing them apart, costs what multiplying them does.
constexpr int64_t kLeastMirroredSteps = 12, kLeastMirroredStepsOfParts = 4;

struct UnitRow {
  ElementType operands, sums;
  bool DeviceSpec::*has;
  // Rows of lhs that pay for the copy of a larger rhs [n][k]: register tiles read that as it lies, with exchanged
  // roles.
  int64_t fewest_uses;
  int64_t parts;  // of the unit's type, of an operand
};
constexpr UnitRow kUnits[] = {
    {ElementType::kBF16, ElementType::kF32, &DeviceSpec::has_bf16_tiles, 24, 1},
    {ElementType::kS8, ElementType::kS32, &DeviceSpec::has_s8_tiles, 48, 1},
    {ElementType::kF32, ElementType::kF32, &DeviceSpec::has_bf16_tiles, 48, MatrixUnitPlan::kPartsOfF32},
};

bool IsWorthIt(const ProductShape& shape, const UnitRow& unit) {
  if (shape.m < kFewestRows || shape.n < kFewestColumns || shape.k < kLeastDepth) return false;
  if (shape.m * shape.n < kFewestResults) return false;
  const bool is_larger = shape.rhs_transposed && !shape.lhs_transposed && shape.n > 2 * shape.m;
  if (is_larger && shape.m < unit.fewest_uses) return false;
  const int64_t blocks =
      shape.batch * CeilDiv(shape.m, MatrixUnitPlan::kBlock) * CeilDiv(shape.n, MatrixUnitPlan::kBlock);
  return blocks >= kFewBlocks || shape.k < kLongSum;
}

int64_t GroupsWanted(const DeviceSpec& device) { return 4 * device.compute_units; }

int64_t BytesOfRhs(const ProductShape& shape) { return shape.batch * shape.k * shape.n * hlo::BytesOf(shape.rhs_type); }

// Whether rhs comes from memory, as far as is known: the last cache has no more than this for a core or two. Neither
// that nor the number of units is asked, for whether f32 goes in parts, which has other bits, depends on it.
bool IsFar(const ProductShape& shape, const DeviceSpec& device) {
  constexpr int64_t kSecondCaches = 16;
  return BytesOfRhs(shape) > kSecondCaches * device.l2_bytes;
}

// Blocks of columns of a far rhs that a work-group copies for itself, at most: their whole depth stays in the second
// cache until all rows have met it. 0: too few, or a rhs that is kept, or near, or of which half is left out.
int64_t MostOwnColumns(const ProductShape& shape, int64_t parts, const DeviceSpec& device) {
  if (shape.rhs_is_kept || shape.is_symmetric || !IsFar(shape, device)) return 0;
  const int64_t part_bytes = parts > 1 ? 2 : hlo::BytesOf(shape.rhs_type);
  const int64_t depth_bytes =
      CeilDiv(shape.k * part_bytes, MatrixUnitPlan::kStepBytes) * parts * MatrixUnitPlan::kPartWords * 4;
  const int64_t in_room = device.l2_bytes / 8 * 5 / depth_bytes;
  return in_room < kFewestShared ? 0 : std::min(in_room, parts > 1 ? kMostColumnsOfParts : kMostColumns);
}

// What copying an element of rhs into parts costs, in multiplications by register tiles: where the caches hold the
// copy, and where it comes from memory, goes there, and comes from there again.
double CostOfRhs(const ProductShape& shape, const DeviceSpec& device) {
  constexpr double kOfCopy = 54, kOfFarCopy = 110;
  if (shape.rhs_is_kept) return 0;
  const bool goes_through_memory =
      IsFar(shape, device) && MostOwnColumns(shape, MatrixUnitPlan::kPartsOfF32, device) == 0;
  return goes_through_memory ? kOfFarCopy : kOfCopy;
}

// Of register tiles, a multiplication with a rhs that comes from beyond the second cache each time; rows of [n][k] are
// read as they lie.
double CostByRegisters(const ProductShape& shape, const DeviceSpec& device) {
  constexpr double kOfFar = 1.4, kOfFarRows = 1.15;
  const bool is_far = !shape.rhs_is_kept && shape.k * shape.n * hlo::BytesOf(shape.rhs_type) >= 2 * device.l2_bytes;
  return is_far ? (shape.rhs_transposed ? kOfFarRows : kOfFar) : 1;
}

// f32 in parts: what is spared of multiplications pays for the copies, in multiplications by register tiles. A rhs that
// is kept is copied once.
bool PaysForParts(const ProductShape& shape, const DeviceSpec& device) {
  // Of the unit, each padded multiplication; an element of lhs that is copied, one that is summed.
  constexpr double kOfUnit = 0.6, kOfLhs = 54, kOfResult = 16;
  const auto padded = [](int64_t extent, int64_t block) { return static_cast<double>(CeilDiv(extent, block) * block); };
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const double all_rows = padded(shape.m, MatrixUnitPlan::kBlock),
               all_columns = padded(shape.n, MatrixUnitPlan::kBlock);
  const double by_unit = kOfUnit * all_rows * all_columns * padded(shape.k, MatrixUnitPlan::kStepBytes / 2);
  const double copies = k * (kOfLhs * m + CostOfRhs(shape, device) * n);
  const double spared = CostByRegisters(shape, device) * m * n * k - by_unit - kOfResult * all_rows * all_columns;
  // Either way leaves out half of a symmetric product.
  const bool is_half = shape.is_symmetric && shape.k >= kLeastMirroredStepsOfParts * MatrixUnitPlan::kStepBytes / 2;
  return (is_half ? spared / 2 : spared) > copies;
}

bool MayMirror(const MatrixUnitPlan& plan) {
  return plan.shape.is_symmetric && plan.column_blocks > 1 &&
         plan.steps >= (plan.parts == 1 ? kLeastMirroredSteps : kLeastMirroredStepsOfParts);
}

bool Takes(const UnitRow& unit, const ProductShape& shape, const DeviceSpec& device) {
  if (unit.parts > 1 && (shape.multiplies_as_typed || !PaysForParts(shape, device))) return false;
  return device.device_class == DeviceClass::kCpu && device.*unit.has && shape.lhs_type == unit.operands &&
         shape.rhs_type == unit.operands && shape.compute_type == unit.sums && !shape.depth_may_be_less &&
         !shape.ends_at_sizes && !shape.swapped && IsWorthIt(shape, unit);
}

// Rows without padding, that do not fall into few sets of the first cache: those of a whole depth lie side by side.
bool LiesInTiles(const MatrixUnitPlan& plan) {
  const ProductShape& shape = plan.shape;
  const int64_t row_bytes = shape.k * hlo::BytesOf(shape.lhs_type);
  return !shape.lhs_transposed && shape.m % MatrixUnitPlan::kBlock == 0 && shape.k % plan.ElementsOfStep() == 0 &&
         (!plan.SumsInParts() || !FallsIntoFewSets(row_bytes));
}

// A block's pixels at all taps of a row of the window, which stay in the first cache while the group's columns pass by.
int64_t TapRowBytes(const MatrixUnitPlan& plan) {
  return (MatrixUnitPlan::kBlock + plan.windows.columns.Reach(1) - 1) * plan.PixelBytes();
}
// As many such rows as the first cache would have of other products.
int64_t TapRows(const MatrixUnitPlan& plan) {
  constexpr int64_t kBytes = MatrixUnitPlan::kBlock * MatrixUnitPlan::kStepsOfBlock * MatrixUnitPlan::kStepBytes;
  return std::clamp<int64_t>(kBytes / TapRowBytes(plan), 1, plan.windows.rows.window);
}

bool MayGoByLines(const MatrixUnitPlan& plan, const DeviceSpec& device) {
  if (!plan.has_windows || plan.PixelBytes() % MatrixUnitPlan::kStepBytes != 0) return false;
  const ConvolutionDimension &rows = plan.windows.rows, &columns = plan.windows.columns;
  return rows.stride == 1 && columns.stride == 1 && rows.window * columns.window > 1 &&
         TapRowBytes(plan) <= device.l1_bytes / 4 * 3;
}

// What is multiplied and copied, by the unit's time for a step of a pixel and a feature.
int64_t CostOfWindows(const MatrixUnitPlan& plan) {
  constexpr int64_t kCopiedStep = 32;
  const int64_t taps = plan.windows.rows.window * plan.windows.columns.window;
  const int64_t pixels = (plan.by_lines ? plan.windows.batch : 1) * plan.row_blocks * MatrixUnitPlan::kBlock;
  const int64_t copied = plan.by_lines ? plan.RowGroups() * plan.CopiedPixels() : pixels * taps;
  return pixels * taps * plan.column_blocks * MatrixUnitPlan::kBlock + kCopiedStep * plan.ColumnGroups() * copied;
}

// Columns and depth whose copy of rhs stays in the second cache, for all rows where that leaves work for all.
void ChooseGroups(MatrixUnitPlan& plan, const DeviceSpec& device) {
  const int64_t step_bytes = plan.StepWords() * 4;
  // Windows are copied again for each group of columns. Lines take a part of the room.
  const int64_t room =
      (plan.has_windows && !plan.by_lines ? device.l2_bytes / 4 * 3 : device.l2_bytes / 2) / step_bytes;
  const bool has_sections = plan.parts > 1;
  const int64_t most =
      has_sections ? kMostColumnsOfParts : std::clamp<int64_t>(room / plan.steps, kFewestShared, kMostColumns);
  int64_t column_groups = CeilDiv(plan.column_blocks, most);
  // Of a triangle about as many groups for each unit, which come from either end in turns.
  const int64_t of_all = 2 * device.compute_units;
  if (plan.mirrors && of_all <= plan.column_blocks) column_groups = CeilDiv(column_groups, of_all) * of_all;
  plan.columns_per_group = CeilDiv(plan.column_blocks, std::min(column_groups, plan.column_blocks));
  plan.steps_per_section = plan.steps;
  const int64_t in_room = std::max<int64_t>(room / plan.columns_per_group, 1);
  if (has_sections && in_room < plan.steps) plan.steps_per_section = CeilDiv(plan.steps, CeilDiv(plan.steps, in_room));
  const int64_t batch = plan.by_lines ? plan.windows.batch : plan.shape.batch;
  const int64_t groups = batch * CeilDiv(plan.column_blocks, plan.columns_per_group);
  plan.rows_per_group =
      CeilDiv(plan.row_blocks, std::clamp<int64_t>(CeilDiv(GroupsWanted(device), groups), 1, plan.row_blocks));
}

// The same plan by lines, with as many rows a group as leave its copy in the second cache; nullopt: not even one.
std::optional<MatrixUnitPlan> ByLines(MatrixUnitPlan plan, const DeviceSpec& device) {
  plan.by_lines = true;
  plan.row_blocks = plan.BlocksOfImage();
  plan.tap_rows = TapRows(plan);
  ChooseGroups(plan, device);
  const int64_t around = plan.CopiedPixels() - plan.rows_per_group * MatrixUnitPlan::kBlock;
  const int64_t fit = (device.l2_bytes / 4 / plan.PixelBytes() - around) / MatrixUnitPlan::kBlock;
  if (fit < 1) return std::nullopt;
  const int64_t groups = CeilDiv(plan.row_blocks, std::min(plan.rows_per_group, fit));
  plan.rows_per_group = CeilDiv(plan.row_blocks, groups);
  plan.panels = EvenGroups(plan.RowGroups() * plan.ColumnGroups(), 2 * GroupsWanted(device), device.compute_units);
  return plan;
}

void ChooseOwnColumns(MatrixUnitPlan& plan, const DeviceSpec& device) {
  const int64_t most = plan.has_windows ? 0 : MostOwnColumns(plan.shape, plan.parts, device);
  if (most == 0) return;
  const int64_t wanted = GroupsWanted(device);
  const int64_t columns = std::clamp(plan.shape.batch * plan.column_blocks / wanted, kFewestShared, most);
  const int64_t of_batch = CeilDiv(plan.column_blocks, columns), groups = plan.shape.batch * of_batch;
  if (groups < 2 * device.compute_units) return;  // rows are shared out instead
  plan.slots = std::min(wanted, groups);
  plan.columns_per_group = CeilDiv(plan.column_blocks, of_batch);
  plan.rows_per_group = plan.row_blocks;
  plan.steps_per_section = plan.steps;
}

std::optional<MatrixUnitPlan> PlanOf(const ProductShape& shape, const ConvolutionShape* windows,
                                     const DeviceSpec& device) {
  const auto* const unit =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const UnitRow& row) { return Takes(row, shape, device); });
  if (unit == std::end(kUnits) || (windows != nullptr && unit->parts > 1)) return std::nullopt;
  MatrixUnitPlan plan;
  plan.parts = unit->parts;
  plan.shape = shape;
  plan.has_windows = windows != nullptr;
  if (plan.has_windows) plan.windows = *windows;
  plan.inline_assembly = device.has_inline_assembly;
  plan.rounds_pairs = device.bf16_dot == "assembly";
  plan.row_blocks = CeilDiv(shape.m, MatrixUnitPlan::kBlock);
  plan.column_blocks = CeilDiv(shape.n, MatrixUnitPlan::kBlock);
  plan.steps = CeilDiv(shape.k, plan.ElementsOfStep());
  plan.lhs_in_place = !plan.has_windows && plan.parts == 1 && LiesInTiles(plan);
  plan.mirrors = MayMirror(plan);
  ChooseGroups(plan, device);
  ChooseOwnColumns(plan, device);
  if (MayGoByLines(plan, device)) {
    const std::optional<MatrixUnitPlan> lines = ByLines(plan, device);
    if (lines && CostOfWindows(*lines) < CostOfWindows(plan)) return lines;
  }
  return plan;
}

}  // namespace

int64_t MatrixUnitPlan::ElementsOfWord() const { return parts == 1 ? 4 / hlo::BytesOf(shape.lhs_type) : 2; }

int64_t MatrixUnitPlan::BlocksOfImage() const {
  return CeilDiv((windows.rows.out - 1) * LinePixels() + windows.columns.out, kBlock);
}
int64_t MatrixUnitPlan::GroupsOfImage() const { return CeilDiv(row_blocks, rows_per_group); }
int64_t MatrixUnitPlan::CopiedPixels() const {
  return rows_per_group * kBlock + (windows.rows.Reach(1) - 1) * LinePixels() + windows.columns.Reach(1) - 1;
}

int64_t MatrixUnitPlan::RowGroups() const {
  return by_lines ? windows.batch * GroupsOfImage() : CeilDiv(row_blocks, rows_per_group);
}
int64_t MatrixUnitPlan::ColumnGroups() const { return CeilDiv(column_blocks, columns_per_group); }

int64_t MatrixUnitPlan::LhsBytes() const {
  if (by_lines) return AlignScratch(panels * PanelBytes());
  if (has_windows) return AlignScratch(RowGroups() * ColumnGroups() * kBlock * WindowPitch());
  return lhs_in_place ? 0 : AlignScratch(shape.batch * row_blocks * steps * StepWords() * 4);
}
int64_t MatrixUnitPlan::RhsBytes() const {
  const int64_t copied = CopiesColumns() ? slots * columns_per_group : shape.batch * column_blocks;
  return AlignScratch(copied * steps * StepWords() * 4);
}
int64_t MatrixUnitPlan::SumsBytes() const {
  return HasSections() ? AlignScratch(shape.batch * row_blocks * column_blocks * kSumsOfBlock * 4) : 0;
}

std::optional<MatrixUnitPlan> PlanMatrixUnit(const ProductShape& shape, const DeviceSpec& device) {
  return PlanOf(shape, nullptr, device);
}

std::optional<MatrixUnitPlan> PlanMatrixUnitOverWindows(const ConvolutionShape& shape, const DeviceSpec& device) {
  if (shape.groups != 1 || shape.rows.base_dilation != 1 || shape.columns.base_dilation != 1) return std::nullopt;
  return PlanOf(ConvolutionProblem(shape, shape.compute_type).shape, &shape, device);
}

}  // namespace hlorun::opencl
