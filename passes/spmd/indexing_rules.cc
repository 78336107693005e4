// Factor rules of ops with run-time indices.
#include "passes/spmd/factor_rule_builder.h"

namespace hlorun::passes::spmd {

namespace attr = hlo::attr;

void DynamicSliceRule(RuleBuilder& r) {
  const auto& sizes = r.op.As<attr::DynamicSlice>().sizes;
  const hlo::Shape& from = r.op.operand(0)->shape();
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (sizes[static_cast<size_t>(d)] == from.dimension(d)) {
      r.Same(0, d, d);
    } else {
      r.Operand(0, d, r.Add(from.dimension(d), FactorKind::kSelected));
    }
  }
}

void DynamicUpdateSliceRule(RuleBuilder& r) {
  const hlo::Shape& into = r.op.shape();
  const hlo::Shape& update = r.op.operand(1)->shape();
  for (int64_t d = 0; d < into.rank(); ++d) {
    const bool whole = update.dimension(d) == into.dimension(d);
    r.Same(0, d, d, whole ? FactorKind::kParallel : FactorKind::kUpdated);
    if (whole) r.Operand(1, d, static_cast<int>(r.rule.factors.size()) - 1);
  }
}

void GatherRule(RuleBuilder& r) {
  const auto& g = r.op.As<attr::Gather>();
  const hlo::Shape& from = r.op.operand(0)->shape();
  const hlo::Shape& indices = r.op.operand(1)->shape();
  // Dimensions of the result that come from the indices, in order.
  std::vector<int64_t> batch_dims;
  for (int64_t d = 0; d < r.op.shape().rank(); ++d) {
    if (!Has(g.offset_dims, d)) batch_dims.push_back(d);
  }
  std::vector<int> factor_of_index(static_cast<size_t>(indices.rank()), -1);
  size_t at = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == g.index_vector_dim) continue;
    const int factor = r.Add(indices.dimension(d));
    factor_of_index[static_cast<size_t>(d)] = factor;
    r.Operand(1, d, factor);
    r.Result(0, batch_dims[at++], factor);
  }
  for (size_t i = 0; i < g.operand_batching_dims.size(); ++i) {
    r.Operand(0, g.operand_batching_dims[i], factor_of_index[static_cast<size_t>(g.start_indices_batching_dims[i])]);
  }
  size_t offset = 0;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (Has(g.operand_batching_dims, d)) continue;
    const int64_t size = g.slice_sizes[static_cast<size_t>(d)];
    const bool collapsed = Has(g.collapsed_slice_dims, d);
    const int64_t result_dim = collapsed ? -1 : g.offset_dims[offset++];
    if (size == from.dimension(d) && !collapsed) {
      r.Same(0, d, result_dim);
    } else if (size == 1 && Has(g.start_index_map, d)) {
      r.Operand(0, d, r.Add(from.dimension(d), FactorKind::kSelected));
    }
  }
}

void ScatterRule(RuleBuilder& r) {
  const auto& s = r.op.As<attr::Scatter>();
  const int64_t arrays = (r.op.operand_count() - 1) / 2;
  const hlo::Shape& into = r.op.operand(0)->shape();
  const hlo::Shape& indices = r.op.operand(arrays)->shape();
  const hlo::Shape& updates = r.op.operand(arrays + 1)->shape();
  const auto tie_arrays = [&](int64_t d, int factor) {
    for (int64_t i = 0; i < arrays; ++i) r.Operand(i, d, factor);
    r.AllResults(d, factor);
  };
  std::vector<int64_t> scatter_dims;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (!Has(s.update_window_dims, d)) scatter_dims.push_back(d);
  }
  size_t at = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == s.index_vector_dim) continue;
    const auto batching = std::find(s.scatter_indices_batching_dims.begin(), s.scatter_indices_batching_dims.end(), d);
    const bool parallel = batching != s.scatter_indices_batching_dims.end();
    // Updates of different parts meet in the same elements: their results are combined.
    const int factor = r.Add(indices.dimension(d), parallel ? FactorKind::kParallel : FactorKind::kReduced);
    r.Operand(arrays, d, factor);
    for (int64_t i = 0; i < arrays; ++i) r.Operand(arrays + 1 + i, scatter_dims[at], factor);
    ++at;
    if (parallel) {
      tie_arrays(s.input_batching_dims[static_cast<size_t>(batching - s.scatter_indices_batching_dims.begin())],
                 factor);
    }
  }
  size_t window = 0;
  for (int64_t d = 0; d < into.rank(); ++d) {
    if (Has(s.input_batching_dims, d)) continue;
    const bool inserted = Has(s.inserted_window_dims, d);
    const int64_t update_dim = inserted ? -1 : s.update_window_dims[window++];
    const bool indexed = Has(s.scatter_dims_to_operand_dims, d);
    if (!inserted && !indexed && updates.dimension(update_dim) == into.dimension(d)) {
      const int factor = r.Add(into.dimension(d));
      tie_arrays(d, factor);
      for (int64_t i = 0; i < arrays; ++i) r.Operand(arrays + 1 + i, update_dim, factor);
    } else if (indexed && (inserted || updates.dimension(update_dim) == 1)) {
      tie_arrays(d, r.Add(into.dimension(d), FactorKind::kUpdated));
    }
  }
}

}  // namespace hlorun::passes::spmd
