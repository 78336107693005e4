// How the gradient of a convolution's weights is cut for the CPU's matrix unit (codegen/matrix_unit.h). A value.
//
// For each tap it is a product: channels by pixels of the input, times pixels of the gradient by features. Both are
// copied with the gradient's rows at one pitch, which is wide enough for what the farthest tap meets, zeros where there
// is no pixel: a tap's input is then that of the first one, a distance further on, wherever the pixel is. A strided
// convolution's taps meet every `dilation`-th pixel of the input: each such phase is copied apart. Of few channels, the
// taps of a row of the window are copied as channels: those of neighbouring pixels lie side by side in the input.
// f32 is copied as three parts of bf16 (matrix_unit_plan.h).
#pragma once

#include <cstdint>
#include <optional>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/weight_gradient_plan.h"

namespace hlorun::opencl {

struct MatrixUnitGradientPlan {
  static constexpr int64_t kBlock = MatrixUnitPlan::kBlock;  // of channels and of features
  static constexpr int64_t kStepPixels = MatrixUnitPlan::kStepBytes / 2;
  static constexpr int64_t kSumsOfBlock = MatrixUnitPlan::kSumsOfBlock;

  WeightGradientShape shape;
  bool inline_assembly = false;  // DeviceSpec::has_inline_assembly
  int64_t parts = 1;             // of bf16 that an element is cut into
  int64_t taps_together = 1;     // whose channels are copied as those of one tap: 1, or all of a row of the window
  int64_t channel_blocks = 1, feature_blocks = 1;
  int64_t steps_of_image = 1;
  // A chunk of pixels meets all sums of a work-group before the next: some of an image, or several images.
  int64_t steps_of_chunk = 1, images_of_chunk = 1;
  int64_t chunks_of_sum = 1;  // that are summed apart from others
  int64_t channel_blocks_per_group = 1, feature_blocks_per_group = 1;

  int64_t RunChannels() const { return taps_together * shape.channels; }
  ConvolutionDimension Columns() const;  // of taps that are copied as one
  int64_t TapRuns() const { return shape.taps() / taps_together; }
  int64_t StepWords() const { return parts * MatrixUnitPlan::kPartWords; }  // of a block of features
  // Of what is copied, a row of pixels and an image of a channel, in pixels.
  int64_t RowPitch() const;
  int64_t ImagePitch() const;
  int64_t Phases() const;
  int64_t ChunksOfImage() const;  // 1: chunks have whole images
  int64_t Chunks() const;
  int64_t SumsApart() const;
  // Of the copied input, elements of a part and of all parts of an image's block of channels.
  int64_t PartOfBlock() const { return kBlock * ImagePitch(); }
  int64_t ImageBlock() const { return parts * PartOfBlock(); }
  int64_t ChannelGroups() const;
  int64_t FeatureGroups() const;
  int64_t Sums() const { return TapRuns() * channel_blocks * feature_blocks * kSumsOfBlock; }
  // Bytes of scratch: sums, [apart][tap][block of channels][block of features][channel][feature]; behind the gradient's
  // tiles and the input, [phase][block of channels][image][part][channel][pixel].
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
