// Lowering of gather and scatter: indices clamp to the size; those that are padding themselves reach nothing.

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

// Component `k` of each index vector at most `last`.
Instruction* ClampComponent(OpLowering& at, Instruction* indices, int64_t vector_dimension, int64_t k,
                            Instruction* last) {
  const hlo::Dims& dimensions = indices->shape().dimensions();
  Instruction* limit = at.build.Broadcast(at.build.Convert(last, indices->shape().element_type()), dimensions, {});
  Instruction* clamped = at.build.Binary(Opcode::kMinimum, indices, limit);
  if (vector_dimension == indices->shape().rank()) return clamped;
  Instruction* component = at.build.Iota(hlo::Shape(hlo::ElementType::kS32, dimensions), vector_dimension);
  Instruction* is_k =
      at.build.Compare(component, at.build.Broadcast(at.Int(k), dimensions, {}), hlo::ComparisonDirection::kEq);
  return at.build.Select(is_k, clamped, indices);
}

}  // namespace

SizedValue LowerGather(OpLowering& at) {
  const auto& gather = at.op.As<hlo::attr::Gather>();
  const SizedValue& x = at.operand(0);
  Instruction* indices = at.operand(1).value;
  for (size_t k = 0; k < gather.start_index_map.size(); ++k) {
    const int64_t d = gather.start_index_map[k];
    if (x.size(d) == nullptr) continue;
    Instruction* last = at.AtLeast(at.AddInt(x.size(d), -gather.slice_sizes[static_cast<size_t>(d)]), 0);
    indices = ClampComponent(at, indices, gather.index_vector_dim, static_cast<int64_t>(k), last);
  }
  std::vector<Instruction*> window;
  for (int64_t d = 0; d < at.OperandShape(0).rank(); ++d) {
    if (Contains(gather.collapsed_slice_dims, d) || Contains(gather.operand_batching_dims, d)) continue;
    const bool whole = gather.slice_sizes[static_cast<size_t>(d)] == at.OperandShape(0).dimension(d);
    window.push_back(whole ? x.size(d) : nullptr);
  }
  const std::vector<Instruction*> batch = IndexSizes(at.operand(1), gather.index_vector_dim);
  SizedValue result = at.Unsized(at.Clone({x.value, indices}));
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
  const SizedValue& updates = at.operand(count + 1);
  // An index that lies outside updates nothing.
  Instruction*& indices = operands[static_cast<size_t>(count)];
  const hlo::ElementType type = indices->shape().element_type();
  Instruction* nowhere = at.build.ScalarConstant(type, int64_t{-1});
  std::vector<Instruction*> given = IndexSizes(at.operand(count), scatter.index_vector_dim);
  size_t next = 0;
  int64_t window = 0;
  for (int64_t d = 0; d < at.OperandShape(count + 1).rank(); ++d) {
    if (!Contains(scatter.update_window_dims, d)) {
      given[next] = at.Unify(given[next], updates.size(d));
      ++next;
      continue;
    }
    int64_t target = 0;
    for (int64_t seen = -1; target < at.OperandShape(0).rank(); ++target) {
      const bool skipped =
          Contains(scatter.inserted_window_dims, target) || Contains(scatter.input_batching_dims, target);
      if (!skipped && ++seen == window) break;
    }
    ++window;
    if (updates.size(d) != nullptr && at.operand(0).size(target) == nullptr) {
      at.Refuse("of updates whose window is dynamic, into a dimension that is not, has no rule");
    }
  }
  next = 0;
  for (int64_t d = 0; d < indices->shape().rank(); ++d) {
    if (d == scatter.index_vector_dim) continue;
    if (given[next] != nullptr) indices = at.MaskDimension(indices, d, given[next], nowhere);
    ++next;
  }
  std::vector<std::vector<Instruction*>> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(at.operand(i).sizes);
  return at.FromLeaves(at.Clone(std::move(operands)), sizes);
}

}  // namespace hlorun::passes
