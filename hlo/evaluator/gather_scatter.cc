// gather and scatter: boxes of an array at starts that an index array gives.
#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/reducer.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun::hlo {
namespace {

// The index array read as a grid (its dimensions without index_vector_dim) of start vectors.
class StartIndices {
 public:
  // index_map[i]: the array dimension that component i of a vector indexes. Batching dimensions of the array take the
  // grid position along the paired dimension of the index array.
  StartIndices(const Literal& indices, int64_t index_vector_dim, const std::vector<int64_t>& index_map,
               const std::vector<int64_t>& array_batching, const std::vector<int64_t>& index_batching, int64_t rank)
      : indices_(indices), vector_dim_(index_vector_dim), index_map_(index_map), rank_(rank) {
    strides_ = indices.shape().Strides();
    for (int64_t d = 0; d < indices.shape().rank(); ++d) {
      if (d == index_vector_dim) continue;
      for (size_t i = 0; i < index_batching.size(); ++i) {
        if (index_batching[i] == d) batching_.emplace_back(grid_.size(), array_batching[i]);
      }
      grid_strides_.push_back(strides_[static_cast<size_t>(d)]);
      grid_.push_back(indices.shape().dimension(d));
    }
  }

  const Dims& grid() const { return grid_; }

  Dims At(const Dims& position) const {
    Dims start(static_cast<size_t>(rank_), 0);
    int64_t offset = 0;
    for (size_t d = 0; d < grid_.size(); ++d) offset += position[d] * grid_strides_[d];
    const bool scalar = vector_dim_ >= indices_.shape().rank();
    for (size_t i = 0; i < index_map_.size(); ++i) {
      const int64_t step = scalar ? 0 : strides_[static_cast<size_t>(vector_dim_)] * static_cast<int64_t>(i);
      int64_t value = indices_.GetInt(offset + step);
      // A u64 beyond the signed range is large, not negative.
      if (indices_.element_type() == ElementType::kU64 && value < 0) value = std::numeric_limits<int64_t>::max();
      start[static_cast<size_t>(index_map_[i])] = value;
    }
    for (const auto& [grid_dimension, array_dimension] : batching_) {
      start[static_cast<size_t>(array_dimension)] = position[grid_dimension];
    }
    return start;
  }

 private:
  const Literal& indices_;
  int64_t vector_dim_;
  const std::vector<int64_t>& index_map_;
  int64_t rank_;
  Dims strides_, grid_, grid_strides_;
  std::vector<std::pair<size_t, int64_t>> batching_;
};

// Strides of the result (or updates): those of the window by array dimension (0 where the dimension is dropped), and
// those of the grid.
struct WindowedStrides {
  Dims window;
  Dims grid;
};

WindowedStrides SplitStrides(const Shape& shape, const std::vector<int64_t>& window_dims, int64_t array_rank,
                             const std::vector<int64_t>& dropped, const std::vector<int64_t>& batching) {
  WindowedStrides split;
  const Dims strides = shape.Strides();
  size_t next = 0;
  for (int64_t d = 0; d < array_rank; ++d) {
    const bool absent = Contains(dropped, d) || Contains(batching, d);
    split.window.push_back(absent ? 0 : strides[static_cast<size_t>(window_dims[next++])]);
  }
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!Contains(window_dims, d)) split.grid.push_back(strides[static_cast<size_t>(d)]);
  }
  return split;
}

int64_t OffsetOf(const Dims& position, const Dims& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < position.size(); ++d) offset += position[d] * strides[d];
  return offset;
}

}  // namespace

// Starts are clamped so that the box lies inside the operand.
Literal EvaluateGather(OpCall& call) {
  const auto& gather = call.As<attr::Gather>();
  const Literal& operand = call.operand(0);
  const Shape& array = operand.shape();
  const StartIndices starts(call.operand(1), gather.index_vector_dim, gather.start_index_map,
                            gather.operand_batching_dims, gather.start_indices_batching_dims, array.rank());
  Literal result(call.shape);
  const WindowedStrides to = SplitStrides(call.shape, gather.offset_dims, array.rank(), gather.collapsed_slice_dims,
                                          gather.operand_batching_dims);
  const Dims from = array.Strides();
  Dims position(starts.grid().size(), 0);
  if (call.shape.ElementCount() == 0) return result;
  std::byte* out = result.mutable_data();
  do {
    Dims start = starts.At(position);
    for (size_t d = 0; d < start.size(); ++d) {
      start[d] = std::clamp<int64_t>(start[d], 0, array.dimensions()[d] - gather.slice_sizes[d]);
    }
    CopyStrided(operand.data(), {OffsetOf(start, from), from}, out, {OffsetOf(position, to.grid), to.window},
                gather.slice_sizes, BytesOf(operand.element_type()));
  } while (NextIndex(position, starts.grid()));
  return result;
}

namespace {

// One box of updates onto the results, line by line along the last dimension.
class BoxScatter {
 public:
  BoxScatter(Reducer& reducer, std::vector<Literal>& results, const std::vector<Literal>& updates, Dims box)
      : reducer_(reducer), updates_(updates), box_(std::move(box)) {
    for (Literal& result : results) {
      bytes_.push_back(BytesOf(result.element_type()));
      targets_.push_back(result.mutable_data());
    }
    for (const Literal& update : updates) update_bytes_.push_back(BytesOf(update.element_type()));
  }

  void Run(int64_t result_offset, const Dims& result_strides, int64_t update_offset, const Dims& update_strides) {
    const size_t outer = box_.empty() ? 0 : box_.size() - 1;
    const bool contiguous = !box_.empty() && result_strides[outer] == 1 && update_strides[outer] == 1;
    const Dims lines(box_.begin(), box_.begin() + static_cast<std::ptrdiff_t>(contiguous ? outer : box_.size()));
    const int64_t lanes = contiguous ? box_[outer] : 1;
    Dims index(lines.size(), 0);
    std::vector<void*> targets(bytes_.size());
    std::vector<const void*> sources(bytes_.size());
    do {
      const int64_t to = result_offset + OffsetOf(index, result_strides);
      const int64_t from = update_offset + OffsetOf(index, update_strides);
      for (size_t i = 0; i < bytes_.size(); ++i) {
        targets[i] = targets_[i] + to * bytes_[i];
        sources[i] = updates_[i].data() + from * update_bytes_[i];
      }
      reducer_.Run(targets, sources, lanes);
    } while (NextIndex(index, lines));
  }

 private:
  Reducer& reducer_;
  const std::vector<Literal>& updates_;
  Dims box_;
  std::vector<int64_t> bytes_, update_bytes_;
  std::vector<std::byte*> targets_;
};

}  // namespace

// A box that does not lie wholly inside the operand is skipped. Boxes are combined in the order of the index array.
Literal EvaluateScatter(OpCall& call) {
  const auto& scatter = call.As<attr::Scatter>();
  const size_t count = call.operands.size() / 2;
  const Shape array = call.operand(0).shape();
  Reducer reducer(call.evaluation, *call.instruction.called(), Reducer::Rounding::kAtEachStep);
  std::vector<Literal> results;
  std::vector<Literal> updates;
  std::vector<ElementType> types;
  for (size_t i = 0; i < count; ++i) {
    const auto leaf = static_cast<int64_t>(i);
    types.push_back(FlattenShape(call.shape)[i].element_type());
    results.push_back(reducer.AsAccumulator(leaf, call.operands[i]));
    call.operands[i] = Literal();
    updates.push_back(reducer.AsValue(leaf, call.operands[count + 1 + i]));
  }
  const StartIndices starts(call.operand(static_cast<int64_t>(count)), scatter.index_vector_dim,
                            scatter.scatter_dims_to_operand_dims, scatter.input_batching_dims,
                            scatter.scatter_indices_batching_dims, array.rank());
  const Shape& update_shape = updates[0].shape();
  const WindowedStrides from = SplitStrides(update_shape, scatter.update_window_dims, array.rank(),
                                            scatter.inserted_window_dims, scatter.input_batching_dims);
  Dims box;
  size_t next = 0;
  for (int64_t d = 0; d < array.rank(); ++d) {
    const bool absent = Contains(scatter.inserted_window_dims, d) || Contains(scatter.input_batching_dims, d);
    box.push_back(absent ? 1 : update_shape.dimension(scatter.update_window_dims[next++]));
  }
  const Dims to = array.Strides();
  if (update_shape.ElementCount() > 0) {
    BoxScatter run(reducer, results, updates, box);
    Dims position(starts.grid().size(), 0);
    do {
      const Dims start = starts.At(position);
      bool inside = true;
      for (size_t d = 0; d < start.size(); ++d) {
        inside = inside && start[d] >= 0 && start[d] <= array.dimensions()[d] - box[d];
      }
      if (inside) run.Run(OffsetOf(start, to), to, OffsetOf(position, from.grid), from.window);
    } while (NextIndex(position, starts.grid()));
  }
  for (size_t i = 0; i < count; ++i) results[i] = ConvertedTo(results[i], types[i]);
  return call.shape.IsTuple() ? Literal::Tuple(std::move(results)) : std::move(results[0]);
}

}  // namespace hlorun::hlo
