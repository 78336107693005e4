// How the gradient of a convolution's weights is cut for the CPU's matrix unit (codegen/matrix_unit.h). A value.
//
// For each tap it is a product: channels by pixels of the input, times pixels of the gradient by features. Both are
// copied with the gradient's rows at one pitch, which is wide enough for what the farthest tap meets, zeros where there
// is no pixel: a tap's input is then that of the first one, a distance further on, wherever the pixel is. A strided
// convolution's taps meet every `dilation`-th pixel of the input: each such phase is copied apart. Of few channels, the
// taps of a row of the window are copied as channels: those of neighbouring pixels lie side by side in the input.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/weight_gradient_plan.h"

namespace hlorun::opencl {

struct MatrixUnitGradientPlan {
  static constexpr int64_t kBlock = MatrixUnitPlan::kBlock;  // of channels and of features
  static constexpr int64_t kStepPixels = MatrixUnitPlan::kStepBytes / 2;
  static constexpr int64_t kStepWords = 2 * MatrixUnitPlan::kTileWords;  // of a block of features
  static constexpr int64_t kSumsOfBlock = kBlock * kBlock;

  WeightGradientShape shape;
  bool inline_assembly = false;  // DeviceSpec::has_inline_assembly
  int64_t taps_together = 1;     // whose channels are copied as those of one tap: 1, or all of a row of the window
  int64_t channel_blocks = 1, feature_blocks = 1;
  int64_t steps_of_image = 1;
  // A chunk of pixels meets all sums of a work-group before the next: some of an image, or several images.
  int64_t steps_of_chunk = 1, images_of_chunk = 1;
  int64_t chunks_of_part = 1;
  int64_t channel_blocks_per_group = 1, feature_blocks_per_group = 1;

  int64_t RunChannels() const { return taps_together * shape.channels; }
  ConvolutionDimension Columns() const;  // of taps that are copied as one
  int64_t TapRuns() const { return shape.taps() / taps_together; }
  // Of what is copied, a row of pixels and an image of a channel, in pixels.
  int64_t RowPitch() const;
  int64_t ImagePitch() const;
  int64_t Phases() const;
  int64_t ChunksOfImage() const;  // 1: chunks have whole images
  int64_t Chunks() const;
  int64_t Parts() const;
  int64_t ChannelGroups() const;
  int64_t FeatureGroups() const;
  int64_t SumsOfPart() const { return TapRuns() * channel_blocks * feature_blocks * kSumsOfBlock; }
  // Bytes of scratch: sums of the parts, [part][tap][block of channels][block of features][channel][feature]; the
  // gradient's tiles; the input, [phase][block of channels][image][channel][pixel].
  int64_t SumsBytes() const;
  int64_t GradientBytes() const;
  int64_t InputBytes() const;
  int64_t ScratchBytes() const { return SumsBytes() + GradientBytes() + InputBytes(); }
};

// Pixels of the input that taps meet along a dimension, `dilation` apart: how many such phases there are, and how many
// of a phase lie between the first tap and the last.
int64_t PhasesOf(const ConvolutionDimension& dimension);
int64_t FarthestTap(const ConvolutionDimension& dimension);

// nullopt: the device has no such unit, or most of what it would multiply are zeros.
std::optional<MatrixUnitGradientPlan> PlanMatrixUnitGradient(const WeightGradientShape& shape,
                                                             const DeviceSpec& device);

}  // namespace hlorun::opencl
