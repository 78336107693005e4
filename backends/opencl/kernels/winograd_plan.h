// Convolutions by Winograd's algorithm on a CPU-class device: with a 3x3 window 36 products for a square of 4 x 4
// outputs instead of 144. A value, computed from shapes and DeviceSpec alone.
//
// Squares of, say, 6 x 6 inputs and the 3 x 3 weights are evaluated at six points a dimension; at each of the 36 pairs
// of points there is one matrix product over the channels; from its results come the 4 x 4 outputs. Each dimension has
// a form of its own (winograd_points.h): a window of one element leaves it alone. What a dilated window sees is an
// image for each remainder of the position by the dilation; a square lies in one of them.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/winograd_points.h"

namespace hlorun::opencl {

struct WinogradPlan {
  ConvolutionShape shape;
  WinogradForm rows, columns;
  int64_t lanes = 16, vectors = 2;
  int64_t tile_rows = 14;                      // squares of a register tile
  int64_t squares_high = 1, squares_wide = 1;  // of an image
  int64_t chunk = 28;                          // squares that a work-group handles together
  int64_t panels = 1, panels_per_part = 1;     // and of how many panels: with few squares, not of all
  int64_t groups = 1;
  bool is_far = false;  // image and result are beyond the second cache

  int64_t products() const { return rows.points() * columns.points(); }  // of a square, for each channel and feature
  int64_t width() const { return vectors * lanes; }
  int64_t squares() const { return shape.batch * squares_high * squares_wide; }
  int64_t chunks() const { return CeilDiv(squares(), chunk); }
  int64_t parts() const { return CeilDiv(panels, panels_per_part); }
  int64_t blocks() const { return parts() * chunks(); }
  // Distance of squares in a work-group's arrays; never a power of two, which would put all rows of a tile in one cache
  // set.
  int64_t InputPitch() const { return shape.channels + lanes; }
  int64_t OutputPitch() const { return panels_per_part * width() + lanes; }
  int64_t InputElements() const { return products() * chunk * InputPitch(); }    // of one work-group
  int64_t OutputElements() const { return products() * chunk * OutputPitch(); }  // of one work-group
  int64_t WeightBytes() const;
  int64_t BufferBytes() const;  // of all work-groups
  int64_t ScratchBytes() const { return WeightBytes() + BufferBytes(); }
};

// nullopt: the window has no form, or computing directly costs less (few squares do not pay for transforming the
// weights).
std::optional<WinogradPlan> PlanWinograd(const ConvolutionShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
