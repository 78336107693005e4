// Lowering of gather and scatter: indices clamp to the size; those that are padding themselves reach nothing.
#include <algorithm>

#include "passes/dynamic/op_lowering.h"

namespace hlorun::passes {

using hlo::Contains;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Sizes of the indices' own dimensions, in order, without the vector's.
std::vector<Instruction*> IndexSizes(const SizedValue& indices, int64_t vector_dimension) {
  std::vector<Instruction*> sizes;
  for (int64_t d = 0; d < static_cast<int64_t>(indices.sizes.size()); ++d) {
    if (d != vector_dimension) sizes.push_back(indices.size(d));
  }
  return sizes;
}

// `changed` in component `k` of each index vector, `indices` in the others.
Instruction* InComponent(OpLowering& at, Instruction* indices, int64_t vector_dimension, int64_t k,
                         Instruction* changed) {
  const hlo::Dims& dimensions = indices->shape().dimensions();
  if (vector_dimension == indices->shape().rank()) return changed;
  Instruction* component = at.build.Iota(hlo::Shape(hlo::ElementType::kS32, dimensions), vector_dimension);
  Instruction* is_k =
      at.build.Compare(component, at.build.Broadcast(at.Int(k), dimensions, {}), hlo::ComparisonDirection::kEq);
  return at.build.Select(is_k, changed, indices);
}

// Component `k` of each index vector at most `last`.
Instruction* ClampComponent(OpLowering& at, Instruction* indices, int64_t vector_dimension, int64_t k,
                            Instruction* last) {
  Instruction* limit = at.build.Broadcast(last, indices->shape().dimensions(), {});
  return InComponent(at, indices, vector_dimension, k, at.build.Binary(Opcode::kMinimum, indices, limit));
}

constexpr int64_t kNowhere = -1;

// Component `k` of each index vector nowhere where it is beyond `last`.
Instruction* SkipBeyond(OpLowering& at, Instruction* indices, int64_t vector_dimension, int64_t k, Instruction* last) {
  Instruction* limit = at.build.Broadcast(last, indices->shape().dimensions(), {});
  Instruction* is_beyond = at.build.Compare(indices, limit, hlo::ComparisonDirection::kGt);
  Instruction* skipped = at.build.Select(is_beyond, at.build.Splat(indices->shape(), kNowhere), indices);
  return InComponent(at, indices, vector_dimension, k, skipped);
}

// The dimension of the updates that each dimension of a scatter's operand has in its windows; -1: none.
std::vector<int64_t> WindowDimensions(const hlo::attr::Scatter& scatter, int64_t rank) {
  std::vector<int64_t> of_operand(static_cast<size_t>(rank), -1);
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (!Contains(scatter.inserted_window_dims, d) && !Contains(scatter.input_batching_dims, d))
      of_operand[static_cast<size_t>(d)] = scatter.update_window_dims[next++];
  }
  return of_operand;
}

}  // namespace

SizedValue LowerGather(OpLowering& at) {
  const auto& gather = at.op.As<hlo::attr::Gather>();
  const SizedValue& x = at.operand(0);
  Instruction *array = x.value, *indices = at.AsS32(at.operand(1).value);
  for (size_t k = 0; k < gather.start_index_map.size(); ++k) {
    const int64_t d = gather.start_index_map[k];
    if (x.size(d) == nullptr) continue;
    const int64_t taken = gather.slice_sizes[static_cast<size_t>(d)];
    Instruction* last = at.AtLeast(at.AddInt(x.size(d), -taken), 0);
    indices = ClampComponent(at, indices, gather.index_vector_dim, static_cast<int64_t>(k), last);
    // What a window has beyond the size is zero.
    if (taken > 1 && taken < at.OperandShape(0).dimension(d))
      array = at.MaskDimension(array, d, x.size(d), at.Zero(array->shape().element_type()));
  }
  std::vector<Instruction*> window;
  for (int64_t d = 0; d < at.OperandShape(0).rank(); ++d) {
    if (Contains(gather.collapsed_slice_dims, d) || Contains(gather.operand_batching_dims, d)) continue;
    const bool whole = gather.slice_sizes[static_cast<size_t>(d)] == at.OperandShape(0).dimension(d);
    window.push_back(whole ? x.size(d) : nullptr);
  }
  const std::vector<Instruction*> batch = IndexSizes(at.operand(1), gather.index_vector_dim);
  SizedValue result = at.Unsized(at.Clone({array, indices}));
  size_t next_window = 0, next_batch = 0;
  for (size_t d = 0; d < result.sizes.size(); ++d) {
    const bool offset = Contains(gather.offset_dims, static_cast<int64_t>(d));
    result.sizes[d] = offset ? window[next_window++] : batch[next_batch++];
  }
  return result;
}

SizedValue LowerScatter(OpLowering& at) {
  const auto& scatter = at.op.As<hlo::attr::Scatter>();
  const int64_t count = (at.operand_count() - 1) / 2;
  std::vector<Instruction*> operands = at.Values();
  const SizedValue &x = at.operand(0), &updates = at.operand(count + 1);
  // An index that lies outside updates nothing.
  Instruction*& indices = operands[static_cast<size_t>(count)];
  indices = at.AsS32(indices);
  const std::vector<int64_t> windows = WindowDimensions(scatter, x.value->shape().rank());
  std::vector<std::pair<int64_t, Instruction*>> smaller;  // dimensions, and how much of them windows have
  for (int64_t d = 0; d < x.value->shape().rank(); ++d) {
    const int64_t window = windows[static_cast<size_t>(d)];
    const auto k =
        std::find(scatter.scatter_dims_to_operand_dims.begin(), scatter.scatter_dims_to_operand_dims.end(), d);
    const bool is_placed = k != scatter.scatter_dims_to_operand_dims.end();
    Instruction* taken = window < 0 ? nullptr : updates.size(window);
    if (taken != nullptr && x.size(d) == nullptr)
      at.Refuse("of updates whose window is dynamic, into a dimension that is not, has no rule");
    if (taken != nullptr && is_placed)
      at.Refuse("of updates whose window is dynamic, at places that vary, has no rule");
    if (taken != nullptr && taken != x.size(d)) smaller.emplace_back(d, taken);
    if (x.size(d) == nullptr || !is_placed) continue;
    Instruction* last = at.AddInt(x.size(d), window < 0 ? -1 : -at.OperandShape(count + 1).dimension(window));
    indices = SkipBeyond(at, indices, scatter.index_vector_dim, k - scatter.scatter_dims_to_operand_dims.begin(), last);
  }
  std::vector<Instruction*> given = IndexSizes(at.operand(count), scatter.index_vector_dim);
  size_t next = 0;
  for (int64_t d = 0; d < at.OperandShape(count + 1).rank(); ++d) {
    if (Contains(scatter.update_window_dims, d)) continue;
    given[next] = at.Unify(given[next], updates.size(d));
    ++next;
  }
  next = 0;
  for (int64_t d = 0; d < indices->shape().rank(); ++d) {
    if (d == scatter.index_vector_dim) continue;
    if (given[next] != nullptr) indices = at.MaskDimension(indices, d, given[next], at.Int(kNowhere));
    ++next;
  }
  std::vector<std::vector<Instruction*>> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(at.operand(i).sizes);
  SizedValue result = at.FromLeaves(at.Clone(std::move(operands)), sizes);
  if (smaller.empty()) return result;
  // Beyond their windows the operands stay what they are.
  for (int64_t i = 0; i < count; ++i) {
    SizedValue& leaf = result.elements.empty() ? result : result.elements[static_cast<size_t>(i)];
    for (const auto& [d, taken] : smaller) {
      Instruction* is_taken = at.Inside(leaf.value->shape().dimensions(), d, taken);
      leaf.value = at.build.Select(is_taken, leaf.value, at.operand(i).value);
    }
  }
  if (!result.elements.empty()) result.value = nullptr;
  return result;
}

}  // namespace hlorun::passes
