// How a convolution of few channels and features (a blur, an edge filter, a signal's filter, a head of one channel) is
// cut into tiles and work-groups on a CPU-class device. A value, computed from shapes and DeviceSpec alone.
//
// Features would fill a few lanes of a vector: lanes are neighbouring pixels of a row instead. Each work-group copies
// the input that its block of outputs meets into scratch of its own, padding and holes as zeros, channel by channel, so
// that the pixels that a tap meets lie side by side: those of one remainder by the stride together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "backends/opencl/kernels/convolution_plan.h"

namespace hlorun::opencl {

struct PixelConvolutionPlan {
  ConvolutionShape shape;
  bool is_column = false;  // images of one column, as one dimension has them: its rows are `shape.columns`
  int64_t lanes = 16;
  int64_t vectors = 8;                                // of pixels, of a register tile: a row of them for each feature
  int64_t rows_per_block = 1, columns_per_block = 1;  // outputs; columns are whole tiles
  int64_t groups = 1;                                 // work-groups; each walks blocks at this distance

  int64_t tile() const { return vectors * lanes; }
  int64_t row_blocks() const;
  int64_t column_blocks() const;
  int64_t blocks() const { return shape.batch * row_blocks() * column_blocks(); }
  // Of the input: the channels of all groups.
  int64_t channels() const { return shape.groups * shape.channels; }
  // Remainders by the stride: those that the first taps meet, or all where taps lie apart.
  int64_t phases() const {
    const ConvolutionDimension& d = shape.columns;
    return d.dilation == 1 || d.window == 1 ? std::min(d.stride, d.window) : d.stride;
  }
  // Elements of the buffer: of one phase, of a row of one channel, of all, of a work-group.
  int64_t PhaseElements() const;
  int64_t ChannelElements() const { return phases() * PhaseElements(); }
  int64_t RowElements() const { return channels() * ChannelElements(); }
  int64_t BufferRows() const { return shape.rows.Span(rows_per_block); }
  int64_t BufferElements() const { return BufferRows() * RowElements(); }
  int64_t ScratchBytes() const;  // of all work-groups
};

// Whether lanes are better pixels than features: of the shape's groups, channels and features alone.
bool HasFewChannels(const ConvolutionShape& shape, const DeviceSpec& device);

// nullopt: rows are too short, or features or channels so many that vectors of them are worth more.
std::optional<PixelConvolutionPlan> PlanPixelConvolution(const ConvolutionShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
