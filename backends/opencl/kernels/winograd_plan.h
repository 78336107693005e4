// Convolutions with a 3x3 window by Winograd's algorithm, F(4x4, 3x3), on a CPU-class device: 36 products for a square
// of 4 x 4 outputs instead of 144. A value, computed from shapes and DeviceSpec alone.
//
// Squares of 6 x 6 inputs and the 3 x 3 weights are evaluated at six points a dimension; at each of the 36 pairs of
// points there is one matrix product over the channels; from its results come the 4 x 4 outputs.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/convolution_plan.h"

namespace hlorun::opencl {

struct WinogradPlan {
  static constexpr int64_t kOutputs = 4, kTaps = 3, kPoints = kOutputs + kTaps - 1;
  static constexpr int64_t kProducts = kPoints * kPoints;

  ConvolutionShape shape;
  int64_t lanes = 16, vectors = 2;
  int64_t tile_rows = 14;                      // squares of a register tile
  int64_t squares_high = 1, squares_wide = 1;  // of an image
  int64_t chunk = 28;                          // squares that a work-group handles together
  int64_t panels = 1, panels_per_part = 1;     // and of how many panels: with few squares, not of all
  int64_t groups = 1;

  int64_t width() const { return vectors * lanes; }
  int64_t squares() const { return shape.batch * squares_high * squares_wide; }
  int64_t chunks() const { return CeilDiv(squares(), chunk); }
  int64_t parts() const { return CeilDiv(panels, panels_per_part); }
  int64_t blocks() const { return parts() * chunks(); }
  // Distance of squares in a work-group's arrays; never a power of two, which would put all rows of a tile in one cache
  // set.
  int64_t InputPitch() const { return shape.channels + lanes; }
  int64_t OutputPitch() const { return panels_per_part * width() + lanes; }
  int64_t InputElements() const { return kProducts * chunk * InputPitch(); }    // of one work-group
  int64_t OutputElements() const { return kProducts * chunk * OutputPitch(); }  // of one work-group
  int64_t WeightBytes() const;
  int64_t BufferBytes() const;  // of all work-groups
  int64_t ScratchBytes() const { return WeightBytes() + BufferBytes(); }
};

// nullopt: the window is another, or computing directly costs less (few squares do not pay for transforming the
// weights).
std::optional<WinogradPlan> PlanWinograd(const ConvolutionShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
