#include "backends/opencl/kernels/depthwise_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

constexpr int64_t kFewestLanes = 4;
constexpr int64_t kMostColumns = 14, kFewestColumns = 4;
// Vectors of channels side by side that one work-group takes: few, when the first cache then keeps the window's rows
// from one row of outputs to the next; else long runs, as prefetching likes them.
constexpr int64_t kFewVectors = 4;
constexpr int64_t kRunBytes = 768;
constexpr int64_t kBlocksOfUnit = 8;

// Whether `count` outputs from `first` on read nothing outside of the input.
bool IsInside(const ConvolutionDimension& d, int64_t first, int64_t count) {
  return first * d.stride >= d.low && (first + count - 1) * d.stride - d.low + (d.window - 1) * d.dilation < d.in;
}

// Sums of a tile: beside them, a row of the window and two vectors of the input.
int64_t MostColumns(const ConvolutionDimension& columns, const DeviceSpec& device) {
  return std::min(VectorRegisters(device) - columns.window - 2, kMostColumns);
}

// Whole registers, or halves where that is less to do (some CPUs multiply two of them in the time of one); less than
// half a register is for channels that do not fill that.
int64_t LanesOfChannels(int64_t channels, int64_t whole) {
  const int64_t half = std::max(kFewestLanes, whole / 2);
  if (channels < half) return whole / 4;
  return channels >= whole && CeilDiv(channels, whole) * whole <= CeilDiv(channels, half) * half ? whole : half;
}

int64_t VectorsOfBlock(const DepthwisePlan& plan, const DeviceSpec& device) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t vector_bytes = plan.lanes * hlo::BytesOf(shape.compute_type);
  const int64_t rows_bytes = shape.rows.window * shape.columns.in * vector_bytes;
  const bool stays = kFewVectors * rows_bytes <= device.l1_bytes;
  const int64_t most = stays ? kFewVectors : std::max(kFewVectors, kRunBytes / vector_bytes);
  return CeilDiv(plan.vectors(), CeilDiv(plan.vectors(), most));
}

// From three quarters of the last cache on, where the two ways take the same time (docs/convolutions.md); a result that
// is small beside it, of a strided window, is what was written last and may still be found.
bool PassesCaches(const DepthwisePlan& plan, const DeviceSpec& device) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t elements = shape.batch * shape.channels;
  const int64_t read = elements * shape.rows.in * shape.columns.in * hlo::BytesOf(shape.input_type);
  const int64_t written = elements * shape.rows.out * shape.columns.out * hlo::BytesOf(shape.compute_type);
  const bool has_lines = plan.lanes * hlo::BytesOf(shape.compute_type) % kLineBytes == 0;
  return has_lines && device.l3_bytes > 0 && 3 * written > device.l3_bytes &&
         4 * (read + written) > 3 * device.l3_bytes;
}

}  // namespace

std::vector<DepthwisePlan::Tile> DepthwisePlan::Tiles() const {
  std::vector<Tile> tiles;
  const ConvolutionDimension& d = shape.columns;
  for (int64_t first = 0; first < d.out; first += tile_columns) {
    const Tile tile{first, std::min(tile_columns, d.out - first), 1};
    const auto repeats = [&](const Tile& t) {
      return t.columns == tile_columns && IsInside(d, t.first, t.count * t.columns);
    };
    if (!tiles.empty() && repeats(tiles.back()) && repeats(tile)) {
      ++tiles.back().count;
    } else {
      tiles.push_back(tile);
    }
  }
  return tiles;
}

std::optional<ConvolutionShape> DepthwiseShapeOf(const hlo::Instruction& convolution) {
  const auto& attributes = convolution.As<hlo::attr::Convolution>();
  const hlo::Shape &input = convolution.operand(0)->shape(), &weights = convolution.operand(1)->shape();
  const hlo::Shape& output = convolution.shape();
  constexpr int64_t kSpatial = 2, kRank = kSpatial + 2;
  static const hlo::attr::ConvolutionDimensions kForm{0,      kRank - 1, {1, 2},    kSpatial, kRank - 1,
                                                      {0, 1}, 0,         kRank - 1, {1, 2}};
  const bool has_form = attributes.window.size() == kSpatial && attributes.dimensions == kForm &&
                        attributes.batch_group_count == 1 && input.IsStatic() && weights.IsStatic();
  if (!has_form) return std::nullopt;
  const int64_t channels = input.dimension(kRank - 1);
  if (attributes.feature_group_count != channels || output.dimension(kRank - 1) != channels) return std::nullopt;
  ConvolutionShape shape;
  shape.batch = input.dimension(0);
  shape.channels = shape.features = channels;
  for (int64_t d = 0; d < kSpatial; ++d) {
    const hlo::WindowDimension& window = attributes.window[static_cast<size_t>(d)];
    if (window.window_reversal || window.base_dilation != 1) return std::nullopt;
    (d == 0 ? shape.rows : shape.columns) = DimensionOf(window, input.dimension(d + 1), output.dimension(d + 1));
  }
  shape.input_type = input.element_type();
  shape.weight_type = weights.element_type();
  const std::optional<hlo::ElementType> sums = SumType(shape.input_type, shape.weight_type, output.element_type());
  if (!sums || output.ElementCount() == 0 || shape.rows.window * shape.columns.window == 0) return std::nullopt;
  shape.compute_type = *sums;
  return shape;
}

bool HoldsDepthwiseRow(const ConvolutionDimension& columns, const DeviceSpec& device) {
  return MostColumns(columns, device) >= kFewestColumns;
}

std::optional<DepthwisePlan> PlanDepthwise(const ConvolutionShape& shape, const DeviceSpec& device) {
  DepthwisePlan plan;
  plan.shape = shape;
  plan.lanes = LanesOfChannels(shape.channels, RegisterLanes(device, shape.compute_type));
  const int64_t limit = MostColumns(shape.columns, device);
  if (plan.lanes < kFewestLanes || plan.vectors() == 0 || limit < kFewestColumns) return std::nullopt;
  plan.tile_columns = EvenTileRows(shape.columns.out, limit);
  const int64_t wanted = kBlocksOfUnit * device.compute_units;
  plan.vectors_per_block = VectorsOfBlock(plan, device);
  plan.rows_per_block = shape.rows.out;
  // Blocks of rows read their borders twice, so they have some rows more than the window.
  while (plan.blocks() < wanted && plan.rows_per_block > 2 * shape.rows.window)
    plan.rows_per_block = CeilDiv(plan.rows_per_block, 2);
  while (plan.blocks() < wanted && plan.vectors_per_block > 1) plan.vectors_per_block /= 2;
  plan.passes_caches = PassesCaches(plan, device);
  return plan;
}

}  // namespace hlorun::opencl
