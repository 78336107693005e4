#include "backends/opencl/kernels/product_schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/block_copy.h"
#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/register_tile.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

constexpr std::array<const char*, std::variant_size_v<ProductSchedule>> kKinds = {"tiled", "panels", "clblast",
                                                                                  "fragments"};

// Large tiles read each operand less often; small ones are many, and reach less far beyond small matrices; those of few
// rows or columns are for products of few.
constexpr TiledSchedule kTilesByRule[] = {
    {256, 16, 8, 8, 8},  {128, 16, 8, 8, 8}, {64, 8, 8, 8, 8},  {64, 8, 4, 8, 16}, {64, 8, 4, 4, 16},
    {128, 32, 4, 4, 16}, {128, 4, 4, 4, 16}, {32, 8, 4, 4, 16}, {8, 4, 4, 4, 16},  {1, 1, 4, 4, 16},
};
// Depths are those of 16-bit floats.
constexpr FragmentSchedule kFragmentsByRule[] = {
    {2, 2, 4, 4, 32},
    {2, 2, 2, 4, 64},
    {2, 2, 2, 2, 64},
    {1, 4, 1, 2, 64},
    {4, 1, 2, 1, 64},
    {1, 4, 2, 1, 64},
    {4, 1, 1, 8, 64, 2, 1, 1, 1},
    {8, 1, 1, 4, 64, 2, 1, 1, 1},
};
// Sums and operands of a work-item beyond spill on every device.
constexpr int64_t kMostItemSums = 64;

int64_t LocalBytes(const TiledSchedule& s, hlo::ElementType type) {
  return s.buffers * (LineStride(s.rows(), type) + LineStride(s.columns(), type)) * s.depth * hlo::BytesOf(type);
}

int64_t LocalBytes(const FragmentSchedule& s, hlo::ElementType type) {
  // As much for either order of an operand in memory; elements of 8 bits lie in one of them only.
  const int64_t bytes = hlo::BytesOf(type);
  if (s.asynchronous != 0) return s.buffers * (s.rows() + s.columns()) * s.depth * bytes;
  const auto of = [&](int64_t width) {
    const int64_t by_k = width * LineStride(s.depth, type);
    return (bytes == 1 ? by_k : std::max(by_k, s.depth * LineStride(width, type))) * bytes;
  };
  return s.buffers * (of(s.rows()) + of(s.columns()));
}

bool HasFragments(const ProductShape& shape, const DeviceSpec& device) {
  if (device.matrix_fragments.empty() || shape.rhs_type != shape.lhs_type) return false;
  switch (shape.lhs_type) {
    case hlo::ElementType::kBF16:
    case hlo::ElementType::kF16: return shape.compute_type == hlo::ElementType::kF32;
    case hlo::ElementType::kS8: return device.has_s8_fragments && shape.compute_type == hlo::ElementType::kS32;
    default: return false;
  }
}

bool MayBeWide(const ProductShape& shape, const DeviceSpec& device) {
  return device.has_wide_fragments && HasFragments(shape, device) && hlo::BytesOf(shape.lhs_type) == 2;
}

// Whether both operands lie in memory by vectors that blocks in local memory have too.
bool MayCopyAhead(const ProductShape& shape) {
  const int64_t vector = LanesOf16Bytes(shape.lhs_type), rhs = shape.rhs_transposed ? shape.k : shape.n,
                lhs = shape.lhs_run > 0      ? shape.lhs_run
                      : shape.lhs_transposed ? shape.m
                                             : shape.k;
  if (hlo::BytesOf(shape.lhs_type) == 1 && (shape.lhs_transposed || !shape.rhs_transposed)) return false;
  return lhs % vector == 0 && rhs % vector == 0;
}

template <typename Schedule>
int64_t TilesOf(const Schedule& tile, const ProductShape& shape) {
  return shape.batch * CeilDiv(shape.m, tile.rows()) * CeilDiv(shape.n, tile.columns());
}

int64_t ItemsOf(const TiledSchedule& tile) { return tile.items; }
int64_t ItemsOf(const FragmentSchedule& tile) { return tile.items(); }

// Of a large device, whichever is at hand: parts of sums would depend on its units, and so would bits. Each wants so
// many work-items at once.
constexpr int64_t kUnits = 128, kItemsOfUnit = 512;

int64_t GroupsOfUnit(const TiledSchedule& tile) { return std::max<int64_t>(1, kItemsOfUnit / ItemsOf(tile)); }
// Four sub-groups together keep a unit busy.
int64_t GroupsOfUnit(const FragmentSchedule& tile) {
  return tile.wide != 0 ? 1 : std::max<int64_t>(1, kItemsOfUnit / ItemsOf(tile));
}

// A part's sum of a product costs as much as so many multiplications: matrix instructions do ten in the time of one, of
// s8 twenty.
struct PartCost {
  double sum;
  int64_t least_depth;
};
PartCost PartCostOf(const TiledSchedule&, const ProductShape&) { return {40, 128}; }
PartCost PartCostOf(const FragmentSchedule& tile, const ProductShape& shape) {
  return hlo::BytesOf(shape.lhs_type) == 1 || tile.wide != 0 ? PartCost{800, 1024} : PartCost{400, 512};
}

// Few tiles of long sums leave most of a device idle: as many parts as still make a sum of their own worth it.
template <typename Schedule>
int64_t MostParts(const Schedule& tile, const ProductShape& shape) {
  constexpr int64_t kMostParts = 64;
  const int64_t tiles = TilesOf(tile, shape), groups = kUnits * GroupsOfUnit(tile);
  if (tiles >= 2 * groups) return 1;
  return std::clamp<int64_t>(std::min(2 * groups / tiles, shape.k / PartCostOf(tile, shape).least_depth), 1,
                             kMostParts);
}

// Of a multiplication, beside others of its kind.
double TimeOfOne(const TiledSchedule&) { return 1; }
double TimeOfOne(const FragmentSchedule& tile) { return tile.wide != 0 ? 0.7 : 1; }

// In multiplications of a unit that does one at a time, with those that loads and barriers take beside them (with low
// sides the operands are loaded for few products each), and the sums of parts, which go through memory. A unit is no
// sooner done with fewer groups than it has at once.
template <typename Schedule>
double CostOf(const Schedule& tile, const ProductShape& shape) {
  constexpr double kLoad = 12;
  const auto rows = static_cast<double>(tile.rows()), columns = static_cast<double>(tile.columns());
  const int64_t parts = tile.Parts(shape.k);
  const double depth = static_cast<double>(shape.k) / static_cast<double>(parts);
  const double of_sum = depth * (1 + kLoad / rows + kLoad / columns) + (parts > 1 ? PartCostOf(tile, shape).sum : 0);
  const int64_t groups = std::max(CeilDiv(TilesOf(tile, shape) * parts, kUnits), GroupsOfUnit(tile));
  return static_cast<double>(groups) * rows * columns * of_sum * TimeOfOne(tile);
}

// Of the elements in local memory.
hlo::ElementType BlockType(const TiledSchedule&, const ProductShape& shape) { return shape.compute_type; }
hlo::ElementType BlockType(const FragmentSchedule&, const ProductShape& shape) { return shape.lhs_type; }

int64_t LeastDepth(const TiledSchedule&, const ProductShape&) { return 1; }
int64_t LeastDepth(const FragmentSchedule&, const ProductShape& shape) {
  return FragmentSchedule::StepOf(shape.lhs_type);
}

TiledSchedule WithDepthFor(const TiledSchedule& tile, const ProductShape&) { return tile; }
FragmentSchedule WithDepthFor(const FragmentSchedule& tile, const ProductShape& shape) {
  return tile.For(shape.lhs_type);
}

bool IsFor(const TiledSchedule&, const ProductShape&, const DeviceSpec&) { return true; }
bool IsFor(const FragmentSchedule& tile, const ProductShape& shape, const DeviceSpec& device) {
  return tile.wide == 0 || (MayBeWide(shape, device) && MayCopyAhead(shape));
}

// What leaves local memory for a second work-group; GPUs that multiply so have several times as much as a kernel of one
// may take.
int64_t LocalBytesFor(const TiledSchedule&, const DeviceSpec& device) { return device.local_memory_bytes / 2; }
int64_t LocalBytesFor(const FragmentSchedule& tile, const DeviceSpec& device) {
  return tile.wide != 0 ? device.local_memory_bytes : device.local_memory_bytes / 2;
}

template <typename Schedules>
auto Cheapest(const Schedules& schedules, const ProductShape& shape, bool may_have_parts, const DeviceSpec& device)
    -> std::optional<std::remove_cvref_t<decltype(schedules[0])>> {
  std::optional<std::remove_cvref_t<decltype(schedules[0])>> best;
  for (const auto& schedule : schedules) {
    auto tile = WithDepthFor(schedule, shape);
    if (!IsFor(tile, shape, device)) continue;
    const auto fits = [&] { return LocalBytes(tile, BlockType(tile, shape)) <= LocalBytesFor(tile, device); };
    while (tile.depth > LeastDepth(tile, shape) && !fits()) tile.depth /= 2;
    if (ItemsOf(tile) > device.max_work_group_size || !fits()) continue;
    const int64_t most_parts = may_have_parts ? MostParts(tile, shape) : 1;
    for (tile.k_parts = 1; tile.k_parts <= most_parts; ++tile.k_parts) {
      if (!best || CostOf(tile, shape) < CostOf(*best, shape)) best = tile;
    }
  }
  return best;
}

std::string WhyNotParts(int64_t k_parts, int64_t depth, const ProductProblem& problem) {
  if (k_parts > 1 && k_parts * depth > problem.shape.k)
    return fmt::format("k_parts={}: the product's sums have {} terms", k_parts, problem.shape.k);
  return "";
}

std::string WhyNotAhead(const FragmentSchedule& s, const ProductShape& shape) {
  if (s.asynchronous == 0)
    return s.buffers > 2 ? fmt::format("buffers={}: 2 at most through registers", s.buffers) : "";
  if (!std::has_single_bit(static_cast<uint64_t>(s.rows())) || !std::has_single_bit(static_cast<uint64_t>(s.columns())))
    return "asynchronous=1: the tile's sides must be powers of two";
  return MayCopyAhead(shape) ? "" : "asynchronous=1: the operands have no vectors of 16 bytes side by side";
}

std::string WhyNotWide(const FragmentSchedule& s, const ProductShape& shape, const DeviceSpec& device) {
  if (s.wide == 0) return "";
  if (!MayBeWide(shape, device)) return "wide=1: the device has no such instructions for this product";
  if (s.asynchronous == 0) return "wide=1: blocks must be copied asynchronously";
  if (s.groups_down % 4 != 0 || s.groups_across != 1 || s.square_rows != 1)
    return "wide=1: needs sub-groups in fours, one above the other, with a row of squares each";
  if (s.square_columns % 4 != 0) return fmt::format("square_columns={}: must be a multiple of 4", s.square_columns);
  return s.depth <= 64 ? "" : fmt::format("depth={}: 64 at most", s.depth);
}

std::string WhyNotFragments(const FragmentSchedule& s, const ProductProblem& problem, const DeviceSpec& device) {
  constexpr int64_t kMostSquares = 16;  // whose sums fit a work-item's registers
  if (device.device_class != DeviceClass::kGpu || !HasFragments(problem.shape, device))
    return "fragments: the device has no matrix instructions for this product";
  if (s.items() > device.max_work_group_size) {
    return fmt::format("groups_down={}, groups_across={}: the device's work-groups have {} work-items at most",
                       s.groups_down, s.groups_across, device.max_work_group_size);
  }
  if (s.square_rows * s.square_columns > kMostSquares) {
    return fmt::format("square_rows={}, square_columns={}: a sub-group has {} squares at most", s.square_rows,
                       s.square_columns, kMostSquares);
  }
  if (!std::has_single_bit(static_cast<uint64_t>(s.depth))) {
    return fmt::format("depth={}: must be a power of two", s.depth);
  }
  if (std::string reason = WhyNotAhead(s, problem.shape); !reason.empty()) return reason;
  if (std::string reason = WhyNotWide(s, problem.shape, device); !reason.empty()) return reason;
  if (const int64_t step = FragmentSchedule::StepOf(problem.shape.lhs_type); s.depth < step) {
    return fmt::format("depth={}: a matrix instruction multiplies {} of {}", s.depth, step,
                       hlo::ElementTypeName(problem.shape.lhs_type));
  }
  if (const int64_t bytes = LocalBytes(s, problem.shape.lhs_type); bytes > device.local_memory_bytes) {
    return fmt::format("depth={}, buffers={}: the blocks take {} bytes of local memory, the device has {}", s.depth,
                       s.buffers, bytes, device.local_memory_bytes);
  }
  return WhyNotParts(s.k_parts, s.depth, problem);
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
  if (HasFragments(problem.shape, device)) return "tiled: the device has matrix instructions for this product";
  if (const int64_t bytes = LocalBytes(s, problem.shape.compute_type); bytes > device.local_memory_bytes) {
    return fmt::format("depth={}, buffers={}: the blocks take {} bytes of local memory, the device has {}", s.depth,
                       s.buffers, bytes, device.local_memory_bytes);
  }
  return WhyNotParts(s.k_parts, s.depth, problem);
}

std::string WhyNotPanels(const PanelSchedule& s, const ProductProblem& problem, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu) return "panels: products of GPU class are computed by tiles";
  const ProductShape shape = WithLessToPack(problem.shape, device);
  const ProductPlan plan = PlanProduct(shape, device);
  if (plan.IsByRows()) return "panels: this product is computed row by row";
  // f32 in parts depends on more than the problem says, and goes before a schedule that is there.
  if (const auto unit = PlanMatrixUnit(shape, device); unit && unit->parts == 1)
    return "panels: this product is computed by the CPU's matrix unit";
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

int64_t TiledSchedule::RowsTogether(hlo::ElementType compute_type) const {
  return std::gcd(item_rows, LanesOf16Bytes(compute_type));
}
int64_t TiledSchedule::ColumnsTogether(hlo::ElementType compute_type) const {
  return std::gcd(item_columns, LanesOf16Bytes(compute_type));
}

const char* KindOf(const ProductSchedule& schedule) { return kKinds[schedule.index()]; }

std::optional<ProductSchedule> ScheduleOfKind(const std::string& kind) {
  std::optional<ProductSchedule> found;
  const auto try_kind = [&]<size_t kIndex>() {
    if (kind == kKinds[kIndex]) found.emplace(std::in_place_index<kIndex>);
  };
  [&]<size_t... kIndices>(std::index_sequence<kIndices...>) { (try_kind.template operator()<kIndices>(), ...); }
  (std::make_index_sequence<kKinds.size()>());
  return found;
}

std::string ToString(const ProductSchedule& schedule) {
  std::string text = KindOf(schedule);
  if (schedule == ProductSchedule(LibrarySchedule{})) return text;
  ProductSchedule copy = schedule;
  ForEachNumber(copy,
                [&](const char* name, int64_t value, int64_t, int64_t) { text += fmt::format(" {}={}", name, value); });
  return text;
}

bool AddInTheSameOrder(const ProductSchedule& a, const ProductSchedule& b, int64_t k) {
  if (a.index() != b.index()) return false;
  const auto have_same_parts = [k](const auto& x, const auto& y) {
    return x.Parts(k) == y.Parts(k) && (x.Parts(k) == 1 || x.PartDepth(k) == y.PartDepth(k));
  };
  if (const auto* tiled = std::get_if<TiledSchedule>(&a)) return have_same_parts(*tiled, std::get<TiledSchedule>(b));
  if (const auto* fragments = std::get_if<FragmentSchedule>(&a))
    return have_same_parts(*fragments, std::get<FragmentSchedule>(b)) &&
           fragments->wide == std::get<FragmentSchedule>(b).wide;
  if (const auto* library = std::get_if<LibrarySchedule>(&a)) return *library == std::get<LibrarySchedule>(b);
  return true;
}

double ProductProblem::flops() const {
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k);
}

std::string ProductProblem::ToString() const {
  if (convolution) {
    const ConvolutionShape& c = *convolution;
    const std::string groups = c.groups > 1 ? fmt::format(", {} groups", c.groups) : "";
    return fmt::format(
        "convolution of {} {} images, rank {}, {} channels to {} features{} of {} -> {}; rows {}; columns {}", c.batch,
        hlo::ElementTypeName(c.input_type), c.spatial_rank, c.channels, c.features, groups,
        hlo::ElementTypeName(c.weight_type), hlo::ElementTypeName(result_type), TextOf(c.rows), TextOf(c.columns));
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
  problem.shape.batch = shape.groups;
  problem.shape.m = shape.batch * shape.rows.out * shape.columns.out;
  problem.shape.n = shape.group_features();
  problem.shape.k = shape.Depth();
  problem.shape.lhs_run = shape.channels;
  problem.shape.lhs_type = shape.input_type;
  problem.shape.rhs_type = shape.weight_type;
  problem.shape.compute_type = shape.compute_type;
  problem.result_type = result_type;
  problem.convolution = shape;
  problem.convolution->weights_are_constant = false;  // the same kernel
  return problem;
}

ProductSchedule GpuScheduleByRule(const ProductShape& shape, bool may_have_parts, const DeviceSpec& device) {
  if (HasFragments(shape, device)) {
    if (const auto best = Cheapest(kFragmentsByRule, shape, may_have_parts, device)) return *best;
  }
  const auto best = Cheapest(kTilesByRule, shape, may_have_parts, device);
  if (!best) {
    Fail(ErrorCode::kUnimplemented, "{} has {} bytes of local memory and work-groups of {}: too little for a product",
         device.name, device.local_memory_bytes, device.max_work_group_size);
  }
  return *best;
}

int64_t PartsOfSums(const ProductSchedule& schedule, int64_t k) {
  if (const auto* fragments = std::get_if<FragmentSchedule>(&schedule)) return fragments->Parts(k);
  if (const auto* tiled = std::get_if<TiledSchedule>(&schedule)) return tiled->Parts(k);
  return 1;
}

ProductSchedule ScheduleByRule(const ProductProblem& problem, const DeviceSpec& device) {
  if (device.device_class == DeviceClass::kGpu) return GpuScheduleByRule(problem.shape, true, device);
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
  if (const auto* fragments = std::get_if<FragmentSchedule>(&schedule))
    return WhyNotFragments(*fragments, problem, device);
  if (const auto* panels = std::get_if<PanelSchedule>(&schedule)) return WhyNotPanels(*panels, problem, device);
  if (problem.convolution) return "clblast: it computes no convolutions";
  return device.device_class == DeviceClass::kGpu ? "" : "clblast: products of CPU class are computed by panels";
}

}  // namespace hlorun::opencl
