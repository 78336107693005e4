#include "backends/opencl/kernels/matrix_unit_gradient_plan.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/scratch.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

constexpr int64_t kStepPixels = MatrixUnitGradientPlan::kStepPixels;
// Both operands of a chunk stay in the first cache.
constexpr int64_t kChunkSteps = 8;
// Some of the pixels are summed apart where there are few blocks. By the shape alone, not by cores or caches: results
// are the same on all machines.
constexpr int64_t kWantedBlocks = 32, kMostSumsApart = 32, kBytesOfSums = int64_t{8} << 20;
// The unit is so many times as fast as register tiles.
constexpr int64_t kLeastUse = 6;
constexpr int64_t kFewestPixels = 256;

bool IsWorthIt(const MatrixUnitGradientPlan& plan) {
  // Of f32, in multiplications by register tiles: one of the unit, an element that is copied.
  constexpr double kOfUnit = 0.7, kOfCopy = 90;
  // Of a run of pixels, which is a call.
  constexpr int64_t kFewestSteps = 4;
  const WeightGradientShape& shape = plan.shape;
  const int64_t pixels = shape.GradientRows() * shape.columns.window;
  const int64_t wanted = shape.taps() * shape.channels * shape.features * pixels;
  const int64_t multiplied = plan.TapRuns() * plan.channel_blocks * plan.feature_blocks * plan.kSumsOfBlock *
                             shape.images * plan.steps_of_image * kStepPixels;
  if (plan.parts == 1) return pixels >= kFewestPixels && multiplied <= kLeastUse * wanted;
  const int64_t copied = shape.images * (plan.Phases() * plan.channel_blocks * plan.kBlock * plan.ImagePitch() +
                                         plan.feature_blocks * plan.kBlock * plan.steps_of_image * kStepPixels);
  return plan.steps_of_image >= kFewestSteps &&
         static_cast<double>(wanted) >
             kOfUnit * static_cast<double>(multiplied) + kOfCopy * static_cast<double>(copied);
}

// Types, and parts of them; 0: there is no unit for them.
int64_t PartsOf(const WeightGradientShape& shape, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu || !device.has_bf16_tiles) return 0;
  if (shape.input_type != shape.gradient_type || shape.compute_type != ElementType::kF32) return 0;
  if (shape.input_type == ElementType::kBF16) return 1;
  return shape.input_type == ElementType::kF32 ? MatrixUnitPlan::kPartsOfF32 : 0;
}

// Where blocks of one tap's channels would be empty for the most part.
bool JoinsTaps(const WeightGradientShape& shape) {
  const ConvolutionDimension& columns = shape.columns;
  const int64_t together = CeilDiv(columns.out * shape.channels, MatrixUnitGradientPlan::kBlock);
  const int64_t apart = columns.out * CeilDiv(shape.channels, MatrixUnitGradientPlan::kBlock);
  // Long windows are copied again for each of their taps.
  constexpr int64_t kMostGrowth = 4;
  const bool grows =
      together > kMostGrowth * PhasesOf(columns) * CeilDiv(shape.channels, MatrixUnitGradientPlan::kBlock);
  return columns.stride == 1 && 4 * together < 3 * apart && !grows;
}

void ChooseChunks(MatrixUnitGradientPlan& plan) {
  if (plan.steps_of_image >= kChunkSteps) {
    plan.steps_of_chunk = CeilDiv(plan.steps_of_image, CeilDiv(plan.steps_of_image, kChunkSteps));
  } else {
    plan.steps_of_chunk = plan.steps_of_image;
    plan.images_of_chunk = std::min(plan.shape.images, CeilDiv(kChunkSteps, plan.steps_of_image));
  }
}

// Sums of a group stay in the second cache.
void ChooseGroups(MatrixUnitGradientPlan& plan, const DeviceSpec& device) {
  constexpr int64_t kSquare = 8;  // blocks of features, which read a block of channels together
  const int64_t bytes_of_taps = plan.TapRuns() * plan.kSumsOfBlock * 4;
  const int64_t room = std::max<int64_t>(device.l2_bytes / 4 / bytes_of_taps, 1);
  const auto even = [](int64_t blocks, int64_t most) { return CeilDiv(blocks, CeilDiv(blocks, most)); };
  plan.feature_blocks_per_group = even(plan.feature_blocks, std::min(room, kSquare));
  plan.channel_blocks_per_group = even(plan.channel_blocks, std::max<int64_t>(room / plan.feature_blocks_per_group, 1));
}

void ChooseSumsApart(MatrixUnitGradientPlan& plan) {
  const int64_t blocks = plan.channel_blocks * plan.feature_blocks;
  const int64_t most = std::clamp<int64_t>(kBytesOfSums / (plan.Sums() * 4), 1, kMostSumsApart);
  plan.chunks_of_sum = CeilDiv(plan.Chunks(), std::min({CeilDiv(kWantedBlocks, blocks), most, plan.Chunks()}));
}

}  // namespace

int64_t PhasesOf(const ConvolutionDimension& d) { return std::min(d.dilation, d.stride * (d.out - 1) + 1); }
int64_t FarthestTap(const ConvolutionDimension& d) { return d.stride * (d.out - 1) / d.dilation; }

ConvolutionDimension MatrixUnitGradientPlan::Columns() const {
  ConvolutionDimension columns = shape.columns;
  columns.out /= taps_together;
  return columns;
}
int64_t MatrixUnitGradientPlan::RowPitch() const { return shape.columns.window + FarthestTap(Columns()); }
int64_t MatrixUnitGradientPlan::ImagePitch() const {
  // Steps read past the last row; channels do not fall into few sets of the caches.
  const int64_t pixels = FarthestTap(shape.rows) * RowPitch() + FarthestTap(Columns()) + steps_of_image * kStepPixels;
  return (CeilDiv(pixels, kStepPixels) | 1) * kStepPixels;
}
int64_t MatrixUnitGradientPlan::Phases() const { return PhasesOf(shape.rows) * PhasesOf(Columns()); }
int64_t MatrixUnitGradientPlan::ChunksOfImage() const { return CeilDiv(steps_of_image, steps_of_chunk); }
int64_t MatrixUnitGradientPlan::Chunks() const { return CeilDiv(shape.images, images_of_chunk) * ChunksOfImage(); }
int64_t MatrixUnitGradientPlan::SumsApart() const { return CeilDiv(Chunks(), chunks_of_sum); }
int64_t MatrixUnitGradientPlan::ChannelGroups() const { return CeilDiv(channel_blocks, channel_blocks_per_group); }
int64_t MatrixUnitGradientPlan::FeatureGroups() const { return CeilDiv(feature_blocks, feature_blocks_per_group); }
int64_t MatrixUnitGradientPlan::SumsBytes() const { return AlignScratch(SumsApart() * Sums() * 4); }
int64_t MatrixUnitGradientPlan::GradientBytes() const {
  return AlignScratch(feature_blocks * shape.images * steps_of_image * StepWords() * 4);
}
int64_t MatrixUnitGradientPlan::InputBytes() const {
  return AlignScratch(Phases() * channel_blocks * shape.images * ImageBlock() * 2);
}

std::optional<MatrixUnitGradientPlan> PlanMatrixUnitGradient(const WeightGradientShape& shape,
                                                             const DeviceSpec& device) {
  const int64_t parts = PartsOf(shape, device);
  if (parts == 0 || shape.groups != 1) return std::nullopt;
  MatrixUnitGradientPlan plan;
  plan.shape = shape;
  plan.parts = parts;
  plan.inline_assembly = device.has_inline_assembly;
  if (JoinsTaps(shape)) plan.taps_together = shape.columns.out;
  plan.channel_blocks = CeilDiv(plan.RunChannels(), plan.kBlock);
  plan.feature_blocks = CeilDiv(shape.features, plan.kBlock);
  const int64_t pixels = (shape.rows.window - 1) * plan.RowPitch() + shape.columns.window;
  plan.steps_of_image = CeilDiv(pixels, kStepPixels);
  if (!IsWorthIt(plan)) return std::nullopt;
  ChooseChunks(plan);
  ChooseGroups(plan, device);
  ChooseSumsApart(plan);
  return plan;
}

}  // namespace hlorun::opencl
