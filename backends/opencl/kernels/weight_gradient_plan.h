// How the gradient of a convolution's weights is cut into tiles and work-groups on a CPU-class device. A value.
//
// result[tap row][tap column][channel][feature] sums, over all pixels of the output's gradient, an input element times
// a gradient's. A register tile is some channels by some features of one tap: both operands lie with the pixels
// outermost, so that a step broadcasts neighbouring channels of one pixel and loads vectors of its features, in place.
// Pixels that a tap does not meet are skipped by the loops' ends.
//
// Of a depthwise convolution, where each feature has a channel of its own, it is the taps of a row of the window by
// vectors of features.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/opencl/kernels/convolution_plan.h"

namespace hlorun::opencl {

struct WeightGradientShape {
  int64_t images = 1;
  int64_t groups = 1;    // of features, each of which meets channels of its own
  int64_t channels = 1;  // of a group
  int64_t features = 1;  // of all groups
  // As the convolution has them: `out` taps `stride` apart, a window of gradient pixels `dilation` apart.
  ConvolutionDimension rows, columns;
  hlo::ElementType input_type = hlo::ElementType::kF32, gradient_type = hlo::ElementType::kF32;
  hlo::ElementType compute_type = hlo::ElementType::kF32;
  int64_t spatial_rank = 2;

  int64_t taps() const { return rows.out * columns.out; }
  int64_t GradientRows() const { return images * rows.window; }
  int64_t InputChannels() const { return groups * channels; }
  int64_t GroupFeatures() const { return features / groups; }
  bool IsDepthwise() const { return channels == 1 && groups > 1 && features == groups; }
};

// What `convolution` computes, when it has one or two spatial dimensions, one group of features and a type that kernels
// have; whatever the order of its dimensions (the kernels' is passes::IsConvolutionOverWindow's). Groups of its batch
// are those of the features of the convolution whose gradient it is.
std::optional<WeightGradientShape> WeightGradientShapeOf(const hlo::Instruction& convolution);

struct WeightGradientPlan {
  WeightGradientShape shape;
  int64_t lanes = 16;
  int64_t rows = 14, vectors = 2;  // channels and vectors of features of a register tile
  int64_t tap_columns = 1;         // and taps, where it is depthwise
  int64_t tiles = 1;               // of a group's channels; the last starts early enough to end with them
  int64_t panels = 1;              // of all features; the last of each group, or of depthwise ones, the same
  int64_t tiles_per_block = 1;     // of a work-group, which has one panel
  // Rows of gradient pixels: of a work-group's part, and walked at a time so that they stay in the second cache.
  int64_t rows_per_part = 1, rows_per_block = 1;
  // Tiles of the input and panels of the gradient are copied, each a pixel after the other: pixels so many lines apart
  // lie at few sets of the caches.
  bool is_packed = false;

  int64_t width() const { return vectors * lanes; }
  int64_t parts() const;
  int64_t tile_blocks() const;
  int64_t tap_blocks() const;  // tiles that cover a row of taps
  // Panels that no group is cut by: of a group, or of all features where each is a group.
  int64_t panels_together() const { return panels / (shape.IsDepthwise() ? 1 : shape.groups); }
  int64_t features_together() const { return shape.IsDepthwise() ? shape.features : shape.GroupFeatures(); }
  // Sums of each part: [part][tap][tile][row][panel][column].
  int64_t SumsOfPart() const { return shape.taps() * tiles * rows * panels * width(); }
  int64_t InputPixels() const { return shape.images * shape.rows.in * shape.columns.in; }
  int64_t GradientPixels() const { return shape.GradientRows() * shape.columns.window; }
  // Bytes of scratch: of sums, then of the copies.
  int64_t SumsBytes() const;
  int64_t PackedGradientBytes() const;
  int64_t PackedInputBytes() const;
  int64_t ScratchBytes() const { return SumsBytes() + PackedGradientBytes() + PackedInputBytes(); }
};

// nullopt: too few features to fill a vector, or a result of groups so large that its input should be read once
// instead.
std::optional<WeightGradientPlan> PlanWeightGradient(const WeightGradientShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
