// Factor rules of ops that move elements.
#include <numeric>

#include "passes/spmd/factor_rule_builder.h"

namespace hlorun::passes::spmd {

namespace attr = hlo::attr;

void BroadcastRule(RuleBuilder& r) {
  const std::vector<int64_t>& dims = r.op.dimensions();
  const hlo::Shape& from = r.op.operand(0)->shape();
  for (int64_t to = 0; to < r.op.shape().rank(); ++to) {
    const auto it = std::find(dims.begin(), dims.end(), to);
    const int factor = r.Add(r.op.shape().dimension(to));
    r.Result(0, to, factor);
    const int64_t d = it - dims.begin();
    if (it != dims.end() && from.dimension(d) == r.op.shape().dimension(to)) r.Operand(0, d, factor);
  }
}

void TransposeRule(RuleBuilder& r) {
  const std::vector<int64_t>& permutation = r.op.dimensions();
  for (size_t to = 0; to < permutation.size(); ++to) r.Same(0, permutation[to], static_cast<int64_t>(to));
}

// Walks both shapes from the major side. Where the sizes share a factor it becomes one of both; where they no longer
// divide, the rest is blocked until the products meet again.
void ReshapeRule(RuleBuilder& r) {
  const hlo::Dims& in = r.op.operand(0)->shape().dimensions();
  const hlo::Dims& out = r.op.shape().dimensions();
  if (r.op.shape().ElementCount() == 0) return;
  size_t i = 0, j = 0;
  int64_t a = 1, b = 1;
  const auto next = [&] {
    for (; a == 1 && i < in.size(); ++i) a = in[i];
    for (; b == 1 && j < out.size(); ++j) b = out[j];
  };
  for (next(); a > 1 && b > 1; next()) {
    const int64_t common = std::gcd(a, b);
    const bool aligned = common == a || common == b;
    if (common > 1) {
      const int factor = r.Add(common);
      r.Operand(0, static_cast<int64_t>(i) - 1, factor);
      r.Result(0, static_cast<int64_t>(j) - 1, factor);
      a /= common;
      b /= common;
    }
    if (aligned) continue;
    int64_t in_left = a, out_left = b;
    r.Operand(0, static_cast<int64_t>(i) - 1, r.Add(a, FactorKind::kBlocked));
    r.Result(0, static_cast<int64_t>(j) - 1, r.Add(b, FactorKind::kBlocked));
    while (in_left != out_left) {
      if (in_left < out_left) {
        r.Operand(0, static_cast<int64_t>(i), r.Add(in[i], FactorKind::kBlocked));
        in_left *= in[i++];
      } else {
        r.Result(0, static_cast<int64_t>(j), r.Add(out[j], FactorKind::kBlocked));
        out_left *= out[j++];
      }
    }
    a = b = 1;
  }
}

void PadRule(RuleBuilder& r) {
  const auto& padding = r.op.As<attr::Pad>().padding;
  for (size_t d = 0; d < padding.size(); ++d) {
    const hlo::PaddingDimension& p = padding[d];
    const bool trivial = p.low == 0 && p.high == 0 && p.interior == 0;
    r.Same(0, static_cast<int64_t>(d), static_cast<int64_t>(d),
           trivial          ? FactorKind::kParallel
           : p.interior > 0 ? FactorKind::kBlocked
                            : FactorKind::kWindow);
  }
}

void SliceRule(RuleBuilder& r) {
  const auto& slice = r.op.As<attr::Slice>();
  const hlo::Shape& from = r.op.operand(0)->shape();
  for (size_t d = 0; d < slice.starts.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    const bool whole = from.dimension(dim) == r.op.shape().dimension(dim);
    r.Same(0, dim, dim, whole ? FactorKind::kParallel : FactorKind::kWindow);
  }
}

void ConcatenateRule(RuleBuilder& r) {
  const int64_t along = r.op.dimensions()[0];
  for (int64_t d = 0; d < r.op.shape().rank(); ++d) {
    if (d == along) {
      // Each operand has a length of its own; all are cut by the same axes.
      const int factor = r.Add(r.op.shape().dimension(d), FactorKind::kWindow);
      for (int64_t i = 0; i < r.op.operand_count(); ++i) r.Operand(i, d, factor);
      r.Result(0, d, factor);
      continue;
    }
    const int factor = r.Add(r.op.shape().dimension(d));
    for (int64_t i = 0; i < r.op.operand_count(); ++i) r.Operand(i, d, factor);
    r.Result(0, d, factor);
  }
}

void ReverseRule(RuleBuilder& r) {
  for (int64_t d = 0; d < r.op.shape().rank(); ++d) {
    r.Same(0, d, d, Has(r.op.dimensions(), d) ? FactorKind::kWindow : FactorKind::kParallel);
  }
}

void SortRule(RuleBuilder& r) {
  const int64_t along = r.op.As<attr::Sort>().dimension;
  for (int64_t d = 0; d < r.op.operand(0)->shape().rank(); ++d) {
    if (d == along) continue;
    const int factor = r.Add(r.op.operand(0)->shape().dimension(d));
    for (int64_t i = 0; i < r.op.operand_count(); ++i) r.Operand(i, d, factor);
    r.AllResults(d, factor);
  }
}

void TopKRule(RuleBuilder& r) {
  for (int64_t d = 0; d + 1 < r.op.operand(0)->shape().rank(); ++d) r.Same(0, d, d);
}

// In a manual computation: what is not cut or joined by the collective itself may be cut by other axes.
void CollectiveRule(RuleBuilder& r) {
  const auto* collective = std::get_if<attr::Collective>(&r.op.attributes());
  const bool elementwise = r.op.Is(hlo::Opcode::kAllReduce) || r.op.Is(hlo::Opcode::kCollectivePermute) ||
                           r.op.Is(hlo::Opcode::kCollectiveBroadcast);
  if (r.rule.operands.size() != r.rule.results.size()) return;
  for (int64_t i = 0; i < r.op.operand_count(); ++i) {
    const hlo::Shape& shape = r.op.operand(i)->shape();
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (!elementwise && (collective == nullptr || !collective->dimension || *collective->dimension == d)) continue;
      const int factor = r.Add(shape.dimension(d));
      r.Operand(i, d, factor);
      r.Result(i, d, factor);
    }
  }
}

}  // namespace hlorun::passes::spmd
