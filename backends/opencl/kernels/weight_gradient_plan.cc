#include "backends/opencl/kernels/weight_gradient_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

// Parts of the pixels are summed apart and then together: as many as this memory holds. Never by the number of cores:
// results are the same on all machines.
constexpr int64_t kBytesOfParts = int64_t{8} << 20;
constexpr int64_t kMostParts = 32;
constexpr int64_t kWantedGroups = 64;
// A part worth a work-group of its own.
constexpr int64_t kPixelsOfPart = 512;
// Of groups, whatever the size of the window.
constexpr int64_t kMostTaps = 1024;

void ChooseTile(WeightGradientPlan& plan, const DeviceSpec& device) {
  const int64_t registers = VectorRegisters(device), channels = plan.shape.channels;
  const int64_t most = plan.shape.GroupFeatures() / plan.lanes;
  plan.vectors = std::min<int64_t>(most, 2);
  // Few channels leave registers for more features.
  if (channels * 4 <= registers - 4)
    plan.vectors = std::clamp<int64_t>((registers - 2) / (channels + 1), plan.vectors, most);
  plan.rows = EvenTileRows(channels, MostTileRows(device, plan.vectors));
  plan.tiles = CeilDiv(channels, plan.rows);
  plan.panels = plan.shape.groups * CeilDiv(plan.shape.GroupFeatures(), plan.width());
}

// As many taps as there are, by what registers are left; a pixel of the gradient takes one.
void ChooseDepthwiseTile(WeightGradientPlan& plan, const DeviceSpec& device) {
  constexpr int64_t kMostVectors = 4;
  const int64_t registers = VectorRegisters(device) - 4, features = CeilDiv(plan.shape.features, plan.lanes);
  plan.rows = 1;
  plan.tap_columns = EvenTileRows(plan.shape.columns.out, registers);
  plan.vectors = EvenTileRows(features, std::clamp<int64_t>(registers / plan.tap_columns, 1, kMostVectors));
  if (plan.width() > plan.shape.features) --plan.vectors;
  plan.panels = CeilDiv(plan.shape.features, plan.width());
}

void ChooseParts(WeightGradientPlan& plan, const DeviceSpec& device) {
  const WeightGradientShape& shape = plan.shape;
  const int64_t element = hlo::BytesOf(shape.compute_type), all = shape.GradientRows();
  const int64_t pixels = all * shape.columns.window;
  int64_t parts = std::clamp<int64_t>(kBytesOfParts / (plan.SumsOfPart() * element), 1, kMostParts);
  parts = std::clamp<int64_t>(std::min(parts, pixels / kPixelsOfPart), 1, all);
  plan.rows_per_part = CeilDiv(all, parts);
  const int64_t bytes_of_pixel =
      plan.width() * element + (shape.IsDepthwise() ? plan.width() * element : 2 * kLineBytes);
  plan.rows_per_block =
      std::clamp<int64_t>(device.l2_bytes / 2 / bytes_of_pixel / shape.columns.window, 1, plan.rows_per_part);
  // The last tile of a row of taps shares sums with the one before: it must not add to them.
  if (shape.columns.out % plan.tap_columns != 0) plan.rows_per_block = plan.rows_per_part;
  const int64_t groups = plan.parts() * plan.panels;
  plan.tiles_per_block = CeilDiv(plan.tiles, std::clamp<int64_t>(kWantedGroups / groups, 1, plan.tiles));
}

// Each tap of each tile walks the pixels once more.
bool PaysToPack(const WeightGradientPlan& plan) {
  constexpr int64_t kFewestWalks = 32, kFewestPixels = 256;
  const WeightGradientShape& shape = plan.shape;
  const auto conflicts = [](int64_t elements, hlo::ElementType type) {
    return FallsIntoFewSets(elements * hlo::BytesOf(type));
  };
  return shape.groups == 1 &&
         (conflicts(shape.features, shape.gradient_type) || conflicts(shape.channels, shape.input_type)) &&
         plan.tiles * shape.taps() >= kFewestWalks && plan.GradientPixels() >= kFewestPixels;
}

}  // namespace

std::optional<WeightGradientShape> WeightGradientShapeOf(const hlo::Instruction& convolution) {
  const auto& attributes = convolution.As<hlo::attr::Convolution>();
  const hlo::attr::ConvolutionDimensions& labels = attributes.dimensions;
  const hlo::Shape &input = convolution.operand(0)->shape(), &gradient = convolution.operand(1)->shape();
  const hlo::Shape& output = convolution.shape();
  const size_t spatial = attributes.window.size();
  if (spatial < 1 || spatial > 2 || attributes.feature_group_count != 1) return std::nullopt;
  if (!input.IsStatic() || !gradient.IsStatic()) return std::nullopt;
  WeightGradientShape shape;
  shape.spatial_rank = static_cast<int64_t>(spatial);
  shape.images = input.dimension(labels.input_feature);
  shape.channels = input.dimension(labels.input_batch);
  shape.features = output.dimension(labels.output_feature);
  shape.groups = attributes.batch_group_count;
  shape.channels /= shape.groups;
  for (size_t d = 0; d < spatial; ++d) {
    const hlo::WindowDimension& window = attributes.window[d];
    if (window.base_dilation != 1) return std::nullopt;
    ConvolutionDimension& to = d + 1 == spatial ? shape.columns : shape.rows;
    to = DimensionOf(window, input.dimension(labels.input_spatial[d]), output.dimension(labels.output_spatial[d]));
  }
  shape.input_type = input.element_type();
  shape.gradient_type = gradient.element_type();
  const std::optional<hlo::ElementType> sums = SumType(shape.input_type, shape.gradient_type, output.element_type());
  if (!sums || output.ElementCount() == 0 || gradient.ElementCount() == 0 || input.ElementCount() == 0)
    return std::nullopt;
  shape.compute_type = *sums;
  return shape;
}

int64_t WeightGradientPlan::parts() const { return CeilDiv(shape.GradientRows(), rows_per_part); }
int64_t WeightGradientPlan::tile_blocks() const { return CeilDiv(tiles, tiles_per_block); }
int64_t WeightGradientPlan::tap_blocks() const { return CeilDiv(shape.columns.out, tap_columns); }
int64_t WeightGradientPlan::SumsBytes() const {
  return AlignScratch(parts() * SumsOfPart() * hlo::BytesOf(shape.compute_type));
}
int64_t WeightGradientPlan::PackedGradientBytes() const {
  return is_packed ? AlignScratch(panels * GradientPixels() * width() * hlo::BytesOf(shape.compute_type)) : 0;
}
int64_t WeightGradientPlan::PackedInputBytes() const {
  return is_packed ? AlignScratch(tiles * InputPixels() * rows * hlo::BytesOf(shape.compute_type)) : 0;
}

std::optional<WeightGradientPlan> PlanWeightGradient(const WeightGradientShape& shape, const DeviceSpec& device) {
  WeightGradientPlan plan;
  plan.shape = shape;
  plan.lanes = RegisterLanes(device, shape.compute_type);
  if (plan.features_together() < plan.lanes) return std::nullopt;
  if (shape.groups > 1 && shape.taps() > kMostTaps) return std::nullopt;
  shape.IsDepthwise() ? ChooseDepthwiseTile(plan, device) : ChooseTile(plan, device);
  ChooseParts(plan, device);
  plan.is_packed = PaysToPack(plan);
  return plan;
}

}  // namespace hlorun::opencl
