#include "backends/opencl/kernels/winograd_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/even_groups.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

// Weights are read once a chunk: with this many squares that costs a fraction of the products.
constexpr int64_t kSmallestChunk = 28, kLargestChunk = 56;
constexpr int64_t kGroupsPerUnit = 4;
// Costs in multiply-adds of vectors. Transforming one input or output value of a square; a weight, written to memory.
constexpr int64_t kTransformCost = 4, kWeightCost = 12;
// Below this there are too few chunks to share.
constexpr int64_t kFewestSquares = 64;
// Weights that are transformed once are still read by every core, from the last cache; with less than a register tile
// of squares that takes longer than the products.
constexpr int64_t kKeptWeightCost = 4, kFewestSquaresOfKept = 14;

bool HasForm(const ConvolutionShape& shape, int64_t lanes) {
  const auto three = [](const ConvolutionDimension& d) {
    return d.window == WinogradPlan::kTaps && d.stride == 1 && d.dilation == 1 && d.base_dilation == 1;
  };
  return shape.spatial_rank == 2 && shape.groups == 1 && shape.compute_type == hlo::ElementType::kF32 &&
         three(shape.rows) && three(shape.columns) && shape.channels % lanes == 0 && shape.features >= lanes;
}

bool Pays(const WinogradPlan& plan) {
  const ConvolutionShape& shape = plan.shape;
  const int64_t channels = shape.channels, features = plan.panels * plan.width(), points = WinogradPlan::kProducts;
  const int64_t direct = shape.batch * shape.rows.out * shape.columns.out * shape.Depth() * features;
  const int64_t squares = plan.squares() * points * (channels * features + kTransformCost * (channels + features));
  const bool kept = shape.weights_are_constant;
  const int64_t weights = points * channels * features * (kept ? kKeptWeightCost : kWeightCost);
  return plan.squares() >= (kept ? kFewestSquaresOfKept : kFewestSquares) && squares + weights < direct / 5 * 4;
}

}  // namespace

int64_t WinogradPlan::WeightBytes() const {
  return AlignScratch(kProducts * panels * shape.channels * width() * hlo::BytesOf(shape.compute_type));
}
int64_t WinogradPlan::BufferBytes() const {
  return AlignScratch(groups * (InputElements() + OutputElements()) * hlo::BytesOf(shape.compute_type));
}

std::optional<WinogradPlan> PlanWinograd(const ConvolutionShape& shape, const DeviceSpec& device) {
  WinogradPlan plan;
  plan.shape = shape;
  plan.lanes = RegisterLanes(device, shape.compute_type);
  if (!HasForm(shape, plan.lanes)) return std::nullopt;
  plan.vectors = shape.features <= plan.lanes ? 1 : 2;
  plan.tile_rows = std::min<int64_t>((VectorRegisters(device) - 2 - plan.vectors) / plan.vectors, 14);
  plan.squares_high = CeilDiv(shape.rows.out, WinogradPlan::kOutputs);
  plan.squares_wide = CeilDiv(shape.columns.out, WinogradPlan::kOutputs);
  plan.panels = CeilDiv(shape.features, plan.width());
  if (!Pays(plan)) return std::nullopt;
  // Few squares are shared evenly.
  plan.tile_rows = std::min(plan.tile_rows, CeilDiv(plan.squares(), device.compute_units));
  // A chunk's values stay in the second cache and the core's share of the third.
  const int64_t bytes_of_square =
      WinogradPlan::kProducts * (plan.InputPitch() + plan.OutputPitch()) * hlo::BytesOf(shape.compute_type);
  int64_t chunk = std::clamp(2 * device.l2_bytes / bytes_of_square, kSmallestChunk, kLargestChunk);
  chunk = std::min(chunk, std::max(plan.tile_rows, CeilDiv(plan.squares(), 4 * device.compute_units)));
  plan.chunk = CeilDiv(chunk, plan.tile_rows) * plan.tile_rows;
  plan.groups = EvenGroups(plan.chunks(), kGroupsPerUnit * device.compute_units, device.compute_units);
  return plan;
}

}  // namespace hlorun::opencl
