// How a depthwise convolution (each channel meets a window of its own) along channels is cut into tiles and work-groups
// on a CPU-class device. A value, computed from shapes and DeviceSpec alone.
//
// Vectors hold neighbouring channels, a register tile some pixels of a row of them. Nothing is copied or packed: where
// tiles lie in a row is known, so taps outside of the image are left out of the code of the tiles at its ends. Channels
// that fill no whole number of vectors have one more, which begins in the vector before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/opencl/kernels/convolution_plan.h"

namespace hlorun::opencl {

struct DepthwisePlan {
  ConvolutionShape shape;  // one group; channels == features, all of them
  int64_t lanes = 16;
  int64_t tile_columns = 14;      // output pixels of a register tile, along a row
  int64_t vectors_per_block = 4;  // of channels
  int64_t rows_per_block = 1;     // output rows
  // Whole lines of the result go past the caches: input and result are more than the last one keeps, so the next kernel
  // would not find them there, and an ordinary store reads each line before (docs/convolutions.md).
  bool passes_caches = false;

  // A place of tiles in a row: `columns` pixels from `first` on, repeated at this distance `count` times.
  struct Tile {
    int64_t first = 0, columns = 1, count = 1;
  };
  // All of a row, from left to right. Tiles that repeat meet no end of the image.
  std::vector<Tile> Tiles() const;

  int64_t vectors() const { return shape.channels / lanes; }  // whole ones
  // Channels behind those; the last block has them.
  int64_t channels_left() const { return shape.channels % lanes; }
  int64_t vector_blocks() const { return (vectors() + vectors_per_block - 1) / vectors_per_block; }
  int64_t row_blocks() const { return (shape.rows.out + rows_per_block - 1) / rows_per_block; }
  int64_t blocks() const { return shape.batch * row_blocks() * vector_blocks(); }
};

// What `convolution` computes, when it is b01f_01io->b01f with one channel and one feature a group, of a type that
// kernels have.
std::optional<ConvolutionShape> DepthwiseShapeOf(const hlo::Instruction& convolution);

// Whether the registers hold the sums of a tile beside a row of the window.
bool HoldsDepthwiseRow(const ConvolutionDimension& columns, const DeviceSpec& device);

// nullopt: vectors of channels would be too short, or windows too wide for the registers.
std::optional<DepthwisePlan> PlanDepthwise(const ConvolutionShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
