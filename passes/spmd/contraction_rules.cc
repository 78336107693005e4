// Factor rules of products, reductions and windows.
#include "hlo/builder.h"
#include "passes/spmd/factor_rule_builder.h"

namespace hlorun::passes::spmd {

namespace attr = hlo::attr;

void DotRule(RuleBuilder& r) {
  const auto& dot = r.op.As<attr::Dot>();
  const hlo::Shape& lhs = r.op.operand(0)->shape();
  const hlo::Shape& rhs = r.op.operand(1)->shape();
  int64_t out = 0;
  for (size_t i = 0; i < dot.lhs_batch.size(); ++i) {
    const int factor = r.Add(lhs.dimension(dot.lhs_batch[i]));
    r.Operand(0, dot.lhs_batch[i], factor);
    r.Operand(1, dot.rhs_batch[i], factor);
    r.Result(0, out++, factor);
  }
  for (size_t i = 0; i < dot.lhs_contracting.size(); ++i) {
    const int factor = r.Add(lhs.dimension(dot.lhs_contracting[i]), FactorKind::kReduced);
    r.Operand(0, dot.lhs_contracting[i], factor);
    r.Operand(1, dot.rhs_contracting[i], factor);
  }
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (!Has(dot.lhs_batch, d) && !Has(dot.lhs_contracting, d)) r.Same(0, d, out++);
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (!Has(dot.rhs_batch, d) && !Has(dot.rhs_contracting, d)) r.Same(1, d, out++);
  }
}

// Groups are the major part of the feature dimensions; a part of them is a smaller grouped convolution.
void ConvolutionRule(RuleBuilder& r) {
  const auto& conv = r.op.As<attr::Convolution>();
  const auto& n = conv.dimensions;
  const hlo::Shape& input = r.op.operand(0)->shape();
  const hlo::Shape& kernel = r.op.operand(1)->shape();
  const hlo::Shape& result = r.op.shape();
  const int64_t features = kernel.dimension(n.kernel_output_feature);
  const int64_t groups = conv.feature_group_count * conv.batch_group_count;
  if (groups > 1) {
    const int group = r.Add(groups);
    r.Operand(0, conv.feature_group_count > 1 ? n.input_feature : n.input_batch, group);
    r.Operand(1, n.kernel_output_feature, group);
    r.Result(0, n.output_feature, group);
  }
  const int output_feature = r.Add(features / groups);
  r.Operand(1, n.kernel_output_feature, output_feature);
  r.Result(0, n.output_feature, output_feature);
  const int batch = r.Add(result.dimension(n.output_batch));
  r.Operand(0, n.input_batch, batch);
  r.Result(0, n.output_batch, batch);
  const int reduced = r.Add(kernel.dimension(n.kernel_input_feature), FactorKind::kReduced);
  r.Operand(0, n.input_feature, reduced);
  r.Operand(1, n.kernel_input_feature, reduced);
  for (size_t i = 0; i < conv.window.size(); ++i) {
    const hlo::WindowDimension& w = conv.window[i];
    const int64_t in = input.dimension(n.input_spatial[i]), out = result.dimension(n.output_spatial[i]);
    const bool trivial =
        w.size == 1 && w.stride == 1 && w.base_dilation == 1 && w.padding_low == 0 && w.padding_high == 0;
    const bool whole = w.base_dilation > 1;
    const int factor = r.Add(out, trivial ? FactorKind::kParallel : whole ? FactorKind::kBlocked : FactorKind::kWindow);
    // A window about as large as the array (a gradient's) touches everything: no part is cheaper than the whole.
    if (2 * w.size > in && !trivial) r.rule.factors.back().kind = FactorKind::kBlocked;
    r.Operand(0, n.input_spatial[i], factor);
    r.Result(0, n.output_spatial[i], factor);
  }
}

void ReduceRule(RuleBuilder& r) {
  const int64_t arrays = r.op.operand_count() / 2;
  const hlo::Shape& shape = r.op.operand(0)->shape();
  int64_t out = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool reduced = Has(r.op.dimensions(), d);
    const int factor = r.Add(shape.dimension(d), reduced ? FactorKind::kReduced : FactorKind::kParallel);
    for (int64_t i = 0; i < arrays; ++i) r.Operand(i, d, factor);
    if (!reduced) r.AllResults(out++, factor);
  }
}

void ReduceWindowRule(RuleBuilder& r) {
  const auto& window = r.op.As<attr::Windowed>().window;
  const int64_t arrays = r.op.operand_count() / 2;
  for (size_t d = 0; d < window.size(); ++d) {
    const hlo::WindowDimension& w = window[d];
    const bool trivial =
        w.size == 1 && w.stride == 1 && w.base_dilation == 1 && w.padding_low == 0 && w.padding_high == 0;
    const int factor = r.Add(hlo::FlattenShape(r.op.shape())[0].dimension(static_cast<int64_t>(d)),
                             trivial                              ? FactorKind::kParallel
                             : w.base_dilation > 1 || arrays != 1 ? FactorKind::kBlocked
                                                                  : FactorKind::kWindow);
    for (int64_t i = 0; i < arrays; ++i) r.Operand(i, static_cast<int64_t>(d), factor);
    r.AllResults(static_cast<int64_t>(d), factor);
  }
}

void SelectAndScatterRule(RuleBuilder& r) {
  const auto& window = r.op.As<attr::Windowed>().window;
  for (size_t d = 0; d < window.size(); ++d) {
    const hlo::WindowDimension& w = window[d];
    if (w.size != 1 || w.stride != 1 || w.padding_low != 0 || w.padding_high != 0) continue;
    const int factor = r.Add(r.op.shape().dimension(static_cast<int64_t>(d)));
    r.Operand(0, static_cast<int64_t>(d), factor);
    r.Operand(1, static_cast<int64_t>(d), factor);
    r.Result(0, static_cast<int64_t>(d), factor);
  }
}

void CholeskyRule(RuleBuilder& r) {
  for (int64_t d = 0; d + 2 < r.op.shape().rank(); ++d) r.Same(0, d, d);
}

// Columns of the right-hand side (rows, when it stands left) are independent.
void TriangularSolveRule(RuleBuilder& r) {
  const int64_t rank = r.op.shape().rank();
  for (int64_t d = 0; d + 2 < rank; ++d) {
    r.Same(0, d, d);
    r.Operand(1, d, static_cast<int>(r.rule.factors.size()) - 1);
  }
  const int64_t free = r.op.As<attr::TriangularSolve>().left_side ? rank - 1 : rank - 2;
  r.Same(1, free, free);
}

void FftRule(RuleBuilder& r) {
  const auto transformed = static_cast<int64_t>(r.op.As<attr::Fft>().length.size());
  for (int64_t d = 0; d < r.op.shape().rank() - transformed; ++d) r.Same(0, d, d);
}

}  // namespace hlorun::passes::spmd
