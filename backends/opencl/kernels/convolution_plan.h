// How a direct convolution is cut into tiles and work-groups on a CPU-class device. A value.
//
// Each work-group copies the input rows that its output rows need into scratch of its own, with the padding around them
// and the holes of base dilation as zeros, in the type that sums have. So a register tile is the same code for every
// pixel: along a row of the window the elements it needs lie one after another, and a step of the window's rows is a
// constant distance. Where all that holds of the input itself, but for a tap at either end of a row, it is read where
// it lies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/opencl/kernels/word_form.h"
#include "hlo/device_spec.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// One spatial dimension, from the input's size to the output's.
struct ConvolutionDimension {
  int64_t in = 1, out = 1;
  int64_t window = 1, stride = 1, low = 0, dilation = 1, base_dilation = 1;
  // Only every `stride`-th element is ever read: the copy skips the others.
  bool Subsampled() const { return window == 1 && stride > 1 && base_dilation == 1; }
  int64_t copy_stride() const { return Subsampled() ? stride : 1; }
  int64_t tile_stride() const { return Subsampled() ? 1 : stride; }
  // Elements of the input, those between included, from the first to the last that `outputs` outputs meet.
  int64_t Reach(int64_t outputs) const { return (outputs - 1) * stride + (window - 1) * dilation + 1; }
  // Copied elements behind `outputs` outputs; of a window of one element those between are not copied.
  int64_t Span(int64_t outputs) const { return (outputs - 1) * tile_stride() + (window - 1) * dilation + 1; }
  // Whether some output's window reaches beyond the input, of which nothing lies apart.
  bool MayLeave() const { return low > 0 || Reach(out) - low > in; }
};

// Along a spatial dimension of `in` elements, of which `window` makes `out`.
ConvolutionDimension DimensionOf(const hlo::WindowDimension& window, int64_t in, int64_t out);

struct ConvolutionShape {
  int64_t batch = 1;
  int64_t groups = 1;    // of features: each meets channels of its own
  int64_t channels = 1;  // of a group
  int64_t features = 1;  // of all groups
  ConvolutionDimension rows, columns;
  hlo::ElementType input_type = hlo::ElementType::kF32, weight_type = hlo::ElementType::kF32;
  hlo::ElementType compute_type = hlo::ElementType::kF32;
  int64_t spatial_rank = 2;           // 1: `rows` is a single row
  bool weights_are_constant = false;  // what is made of them is kept from run to run

  int64_t group_features() const { return features / groups; }
  int64_t Depth() const { return rows.window * columns.window * channels; }
  // A matrix product of the input's pixels with the weights.
  bool IsProduct() const;
};

// What `convolution` computes, when it is b01f_01io->b01f (or b0f_0io->b0f) with a type that kernels have.
std::optional<ConvolutionShape> ConvolutionShapeOf(const hlo::Instruction& convolution);

struct ConvolutionPlan {
  // Where words are multiplied, channels counts words and the operands are u32; but where pairs overlap.
  ConvolutionShape shape;
  WordForm words;
  // Of an odd number of channels: a copied row holds at each element the pair of it and the next one, of which a row of
  // the window meets every other; the weights' rows end with a zero.
  bool pairs_overlap = false;
  int64_t lanes = 16;
  int64_t tile_rows = 1, tile_columns = 14, vectors = 2;  // output pixels and vectors of features of a register tile
  int64_t rows_per_block = 1;                             // output rows of a work-group's block
  int64_t panels = 1, panels_per_block = 1;
  int64_t groups = 1;           // work-groups; each walks blocks at this distance
  bool result_is_far = false;   // where it is stored, and what it is finished with, is beyond the second cache
  bool reads_in_place = false;  // no rows are copied

  // Of copied rows and packed weights.
  hlo::ElementType CopiedType() const { return words ? hlo::ElementType::kU32 : shape.compute_type; }
  int64_t width() const { return vectors * lanes; }
  // Steps of a row of the window: elements, or pairs.
  int64_t RowDepth() const {
    const int64_t elements = shape.columns.window * shape.channels;
    return pairs_overlap ? (elements + 1) / 2 : elements;
  }
  int64_t row_blocks() const;
  // Blocks are whole tiles, and the last one starts early enough to end with the image.
  bool HasRaggedBlocks() const { return rows_per_block < shape.rows.out && shape.rows.out % tile_rows != 0; }
  int64_t panel_blocks() const;
  int64_t blocks() const { return shape.batch * row_blocks() * panel_blocks(); }
  int64_t BufferRows() const { return shape.rows.Span(rows_per_block); }
  int64_t BufferColumns() const { return shape.columns.Span(shape.columns.out); }
  int64_t BufferElements() const;  // of one work-group; none where rows are read in place
  int64_t WeightBytes() const;
  int64_t BufferBytes() const;  // of all work-groups
  int64_t ScratchBytes() const { return WeightBytes() + BufferBytes(); }
};

// At tap `tap` of a row of the window, the first or the last, the tile that starts at output column `column` has its
// columns `first` .. `end` inside the input, and the others not.
struct EdgeTap {
  int64_t tap, column, first, end;
};
std::vector<EdgeTap> EdgeTaps(const ConvolutionPlan& plan);

// Lanes of a vector of one group's features: half a register where that divides them and a whole register does not. A
// CPU whose multipliers are half a register wide loses nothing by it, any other what zeros in the other half take.
int64_t LanesOfGroup(int64_t group_features, hlo::ElementType compute_type, const DeviceSpec& device);

// Pairs of elements that PlanConvolution's kernels multiply with one instruction; kNone: one by one.
WordForm PairsOf(const ConvolutionShape& shape, const DeviceSpec& device);

ConvolutionPlan PlanConvolution(const ConvolutionShape& shape, const DeviceSpec& device);

}  // namespace hlorun::opencl
