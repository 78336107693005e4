#include "backends/opencl/kernels/pixel_convolution_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/depthwise_plan.h"
#include "backends/opencl/kernels/even_groups.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

// Beyond, vectors of features do no more in vain than copying channel by channel costs.
constexpr int64_t kMostFeatures = 8, kMostChannels = 16;
// Depthwise channels that make vectors of their own: so many at least, of whole quarters where they have no tiles.
constexpr int64_t kDepthwiseChannels = 8, kDepthwiseLanes = 4;
constexpr int64_t kLongFilter = 16;
// Elements copied, beside the products of a tap, a feature and a pixel: taps far apart copy all that lies between.
constexpr int64_t kMostCopies = 2;
// All sums of a tile of pixels wait for each other.
constexpr int64_t kMostResults = 64;
// As many sums as keep the multipliers busy.
constexpr int64_t kMostVectors = 8;
// Outputs of a row of a block, about.
constexpr int64_t kBlockColumns = 1024;
constexpr int64_t kBlocksOfUnit = 4, kGroupsOfUnit = 8;

void ChooseBlocks(PixelConvolutionPlan& plan, const DeviceSpec& device) {
  const ConvolutionDimension &rows = plan.shape.rows, &columns = plan.shape.columns;
  const int64_t element = hlo::BytesOf(plan.shape.compute_type);
  const auto fits = [&] { return plan.BufferElements() * element <= device.l2_bytes / 4; };
  const int64_t wanted = kBlocksOfUnit * device.compute_units;
  const int64_t tiles = CeilDiv(columns.out, plan.tile());
  const auto in_parts = [&](int64_t parts) { plan.columns_per_block = CeilDiv(tiles, parts) * plan.tile(); };
  int64_t parts = std::min(tiles, CeilDiv(columns.out, kBlockColumns));
  plan.rows_per_block = 1;
  for (in_parts(parts); parts < tiles && (!fits() || (rows.out == 1 && plan.blocks() < wanted));) in_parts(++parts);
  // Borders are copied again for each block: it has more rows than the window, where there are as many.
  while (plan.rows_per_block < rows.out) {
    PixelConvolutionPlan more = plan;
    more.rows_per_block = std::min(rows.out, plan.rows_per_block * 2);
    std::swap(plan, more);
    const bool is_low = more.rows_per_block < 2 * rows.window;
    if (fits() && (is_low || plan.blocks() >= wanted)) continue;
    std::swap(plan, more);
    break;
  }
  plan.groups = EvenGroups(plan.blocks(), kGroupsOfUnit * device.compute_units, device.compute_units);
}

bool HasFewFeatures(const ConvolutionShape& shape, const DeviceSpec& device) {
  const int64_t lanes = RegisterLanes(device, shape.compute_type);
  return shape.group_features() <= std::min(kMostFeatures, lanes / 2) && shape.features <= kMostResults;
}

bool IsDepthwise(const ConvolutionShape& shape) { return shape.channels == 1 && shape.groups > 1; }

// Depthwise channels that vectors of them serve badly: windows wider than the registers, and long signals' filters, of
// which a tile of one column has one sum at a time.
bool HasNoTiles(const ConvolutionShape& shape, const DeviceSpec& device) {
  if (!IsDepthwise(shape) || shape.groups % kDepthwiseLanes == 0 || !HasFewFeatures(shape, device)) return false;
  return !HoldsDepthwiseRow(shape.columns, device) || (shape.columns.out == 1 && shape.rows.window >= kLongFilter);
}

}  // namespace

bool HasFewChannels(const ConvolutionShape& shape, const DeviceSpec& device) {
  const int64_t channels = shape.groups * shape.channels;
  return HasFewFeatures(shape, device) &&
         (IsDepthwise(shape) ? channels < kDepthwiseChannels : channels <= kMostChannels);
}

int64_t PixelConvolutionPlan::row_blocks() const { return CeilDiv(shape.rows.out, rows_per_block); }
int64_t PixelConvolutionPlan::column_blocks() const { return CeilDiv(shape.columns.out, columns_per_block); }
int64_t PixelConvolutionPlan::PhaseElements() const {
  const ConvolutionDimension& d = shape.columns;
  return CeilDiv(columns_per_block + (d.window - 1) * d.dilation / d.stride, lanes) * lanes;
}
int64_t PixelConvolutionPlan::ScratchBytes() const {
  return AlignScratch(groups * BufferElements() * hlo::BytesOf(shape.compute_type));
}

std::optional<PixelConvolutionPlan> PlanPixelConvolution(const ConvolutionShape& shape, const DeviceSpec& device) {
  PixelConvolutionPlan plan;
  plan.shape = shape;
  plan.lanes = RegisterLanes(device, shape.compute_type);
  ConvolutionDimension &columns = plan.shape.columns, &rows = plan.shape.rows;
  plan.is_column = columns.in == 1 && columns.out == 1 && columns.window == 1 && rows.out > 1;
  if (plan.is_column) std::swap(rows, columns);
  const bool has_strided_holes = columns.base_dilation > 1 && columns.stride > 1;
  if (plan.lanes < 4 || columns.out < plan.lanes || has_strided_holes || shape.IsProduct() ||
      (!HasFewChannels(shape, device) && !HasNoTiles(shape, device)))
    return std::nullopt;
  // Beside the sums, a vector of pixels for each column of them and a weight.
  const int64_t most = (VectorRegisters(device) - 3) / (shape.group_features() + 1);
  plan.vectors = std::clamp<int64_t>(std::min(most, CeilDiv(columns.out, plan.lanes)), 1, kMostVectors);
  ChooseBlocks(plan, device);
  const int64_t products = shape.batch * shape.rows.out * shape.columns.out * shape.features * shape.Depth();
  if (plan.blocks() * plan.BufferElements() > kMostCopies * products) return std::nullopt;
  return plan;
}

}  // namespace hlorun::opencl
