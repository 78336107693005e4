#include "backends/opencl/kernels/product_schedule.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/register_tile.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

constexpr std::array<const char*, 3> kKinds = {"tiled", "panels", "clblast"};

// Large tiles read each operand less often; small ones are many, and reach less far beyond small matrices; those of few
// rows or columns are for products of few.
constexpr TiledSchedule kTilesByRule[] = {
    {256, 16, 8, 8, 16}, {128, 16, 8, 8, 16}, {64, 8, 8, 8, 16}, {64, 8, 4, 8, 16},
    {64, 8, 4, 4, 16},   {128, 32, 4, 4, 16}, {128, 4, 4, 4, 16}, {32, 8, 4, 4, 16},
};
// Work-groups that a large device runs at once. Not this device's: parts of sums would depend on it, and so would bits.
constexpr int64_t kGroupsAtOnce = 128;
// Sums and operands of a work-item beyond spill on every device.
constexpr int64_t kMostItemSums = 64;

int64_t LocalBytes(const TiledSchedule& s, hlo::ElementType type) {
  return (BlockStride(s.rows(), type) + BlockStride(s.columns(), type)) * s.depth * hlo::BytesOf(type);
}

int64_t TilesOf(const TiledSchedule& tile, const ProductShape& shape) {
  return shape.batch * CeilDiv(shape.m, tile.rows()) * CeilDiv(shape.n, tile.columns());
}

// Few tiles of long sums leave most of a device idle.
int64_t PartsByRule(const TiledSchedule& tile, const ProductShape& shape) {
  constexpr int64_t kLeastDepth = 128, kMostParts = 64;
  const int64_t tiles = TilesOf(tile, shape);
  if (tiles >= kGroupsAtOnce) return 1;
  return std::clamp<int64_t>(std::min(2 * kGroupsAtOnce / tiles, shape.k / kLeastDepth), 1, kMostParts);
}

// In multiplications of a work-item that does one at a time: those that loads and barriers take beside them too (with low
// sides the operands are loaded for few products each), and the sums of parts, which go through memory.
double CostOf(const TiledSchedule& tile, const ProductShape& shape) {
  constexpr double kLoad = 12, kSumOfPart = 40;
  const auto rows = static_cast<double>(tile.rows()), columns = static_cast<double>(tile.columns());
  const int64_t parts = tile.Parts(shape.k);
  const double depth = static_cast<double>(shape.k) / static_cast<double>(parts);
  const double of_sum = depth * (1 + kLoad / rows + kLoad / columns) + (parts > 1 ? kSumOfPart : 0);
  return static_cast<double>(CeilDiv(TilesOf(tile, shape) * parts, kGroupsAtOnce)) * rows * columns * of_sum;
}

std::string WhyNotTiled(const TiledSchedule& s, const ProductProblem& problem, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kGpu) return "tiled: products of CPU class are computed by panels";
  if (s.items > device.max_work_group_size) {
    return fmt::format("items={}: the device's work-groups have {} work-items at most", s.items,
                       device.max_work_group_size);
  }
  if (s.items % s.items_across != 0) {
    return fmt::format("items_across={}: {} work-items make no whole rows of so many", s.items_across, s.items);
  }
  if (s.item_rows * s.item_columns > kMostItemSums) {
    return fmt::format("item_rows={}, item_columns={}: a work-item has {} sums at most", s.item_rows, s.item_columns,
                       kMostItemSums);
  }
  if (!std::has_single_bit(static_cast<uint64_t>(s.depth))) {
    return fmt::format("depth={}: must be a power of two", s.depth);
  }
  if (s.k_parts > 1 && problem.convolution) return fmt::format("k_parts={}: not in convolutions", s.k_parts);
  if (s.k_parts > 1 && s.k_parts * s.depth > problem.shape.k)
    return fmt::format("k_parts={}: the product's sums have {} terms", s.k_parts, problem.shape.k);
  if (const int64_t bytes = LocalBytes(s, problem.shape.compute_type); bytes > device.local_memory_bytes) {
    return fmt::format("depth={}: the blocks take {} bytes of local memory, the device has {}", s.depth, bytes,
                       device.local_memory_bytes);
  }
  return "";
}

std::string WhyNotPanels(const PanelSchedule& s, const ProductProblem& problem, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu) return "panels: products of GPU class are computed by tiles";
  const ProductShape shape = WithLessToPack(problem.shape, device);
  const ProductPlan plan = PlanProduct(shape, device);
  if (plan.IsByRows()) return "panels: this product is computed row by row";
  if (PlanMatrixUnit(shape, device)) return "panels: this product is computed by the CPU's matrix unit";
  if (s.rows > shape.m) return fmt::format("rows={}: the product has {} rows", s.rows, shape.m);
  const int64_t most = (shape.n + plan.lanes - 1) / plan.lanes;
  if (s.vectors > most) return fmt::format("vectors={}: the product has {} vectors a row", s.vectors, most);
  if (s.rows * s.vectors > VectorRegisters(device)) {
    return fmt::format("rows={}, vectors={}: the device has {} vector registers", s.rows, s.vectors,
                       VectorRegisters(device));
  }
  return "";
}

std::string TextOf(const ConvolutionDimension& d) {
  return fmt::format("{} -> {} window {} stride {} low {} dilation {} base {}", d.in, d.out, d.window, d.stride, d.low,
                     d.dilation, d.base_dilation);
}

}  // namespace

int64_t BlockStride(int64_t width, hlo::ElementType type) { return width + 16 / hlo::BytesOf(type); }

const char* KindOf(const ProductSchedule& schedule) { return kKinds[schedule.index()]; }

std::optional<ProductSchedule> ScheduleOfKind(const std::string& kind) {
  if (kind == kKinds[0]) return TiledSchedule{};
  if (kind == kKinds[1]) return PanelSchedule{};
  if (kind == kKinds[2]) return LibrarySchedule{};
  return std::nullopt;
}

std::string ToString(const ProductSchedule& schedule) {
  std::string text = KindOf(schedule);
  ProductSchedule copy = schedule;
  ForEachNumber(copy,
                [&](const char* name, int64_t value, int64_t, int64_t) { text += fmt::format(" {}={}", name, value); });
  return text;
}

bool KeepsOrderOfSums(const ProductSchedule& schedule) {
  if (const auto* tiled = std::get_if<TiledSchedule>(&schedule)) return tiled->k_parts == 1;
  return std::holds_alternative<PanelSchedule>(schedule);
}

double ProductProblem::flops() const {
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k);
}

std::string ProductProblem::ToString() const {
  if (convolution) {
    const ConvolutionShape& c = *convolution;
    return fmt::format(
        "convolution of {} {} images, rank {}, {} channels to {} features of {} -> {}; rows {}; columns {}", c.batch,
        hlo::ElementTypeName(c.input_type), c.spatial_rank, c.channels, c.features, hlo::ElementTypeName(c.weight_type),
        hlo::ElementTypeName(result_type), TextOf(c.rows), TextOf(c.columns));
  }
  const auto matrix = [&](hlo::ElementType type, int64_t rows, int64_t columns, bool transposed) {
    return fmt::format("{}[{},{},{}]{}", hlo::ElementTypeName(type), shape.batch, rows, columns,
                       transposed ? " transposed" : "");
  };
  return fmt::format("{} x {} -> {}", matrix(shape.lhs_type, shape.m, shape.k, shape.lhs_transposed),
                     matrix(shape.rhs_type, shape.k, shape.n, shape.rhs_transposed), hlo::ElementTypeName(result_type));
}

std::optional<ProductProblem> ProductProblemOf(const hlo::Instruction& dot) {
  std::optional<ProductShape> shape = ProductShapeOf(dot);
  if (!shape) return std::nullopt;
  shape->swapped = false;
  return ProductProblem{*shape, dot.shape().element_type()};
}

ProductProblem ConvolutionProblem(const ConvolutionShape& shape, hlo::ElementType result_type) {
  ProductProblem problem;
  problem.shape.m = shape.batch * shape.rows.out * shape.columns.out;
  problem.shape.n = shape.features;
  problem.shape.k = shape.Depth();
  problem.shape.lhs_type = shape.input_type;
  problem.shape.rhs_type = shape.weight_type;
  problem.shape.compute_type = shape.compute_type;
  problem.result_type = result_type;
  problem.convolution = shape;
  problem.convolution->weights_are_constant = false;  // the same kernel
  return problem;
}

TiledSchedule TiledScheduleByRule(const ProductShape& shape, bool may_have_parts, const DeviceSpec& device) {
  TiledSchedule best;
  double least = 0;
  for (TiledSchedule tile : kTilesByRule) {
    if (tile.items > device.max_work_group_size) continue;
    while (tile.depth > 1 && LocalBytes(tile, shape.compute_type) > device.local_memory_bytes / 2) tile.depth /= 2;
    if (may_have_parts) tile.k_parts = PartsByRule(tile, shape);
    const double cost = CostOf(tile, shape);
    if (least != 0 && cost >= least) continue;
    least = cost;
    best = tile;
  }
  HLORUN_CHECK(least != 0);
  return best;
}

ProductSchedule ScheduleByRule(const ProductProblem& problem, const DeviceSpec& device) {
  if (device.device_class == DeviceClass::kGpu) return TiledScheduleByRule(problem.shape, !problem.convolution, device);
  const ProductPlan plan = PlanProduct(WithLessToPack(problem.shape, device), device);
  return PanelSchedule{plan.rows, plan.vectors, plan.tiles_per_block, plan.panels_per_block};
}

std::string WhyNot(const ProductSchedule& schedule, const ProductProblem& problem, const DeviceSpec& device) {
  std::string reason;
  ProductSchedule copy = schedule;
  ForEachNumber(copy, [&](const char* name, int64_t value, int64_t least, int64_t most) {
    if (reason.empty() && (value < least || value > most))
      reason = fmt::format("{}={}: must be {} to {}", name, value, least, most);
  });
  if (!reason.empty()) return reason;
  if (const auto* tiled = std::get_if<TiledSchedule>(&schedule)) return WhyNotTiled(*tiled, problem, device);
  if (const auto* panels = std::get_if<PanelSchedule>(&schedule)) return WhyNotPanels(*panels, problem, device);
  if (problem.convolution) return "clblast: it computes no convolutions";
  return device.device_class == DeviceClass::kGpu ? "" : "clblast: products of CPU class are computed by panels";
}

}  // namespace hlorun::opencl
