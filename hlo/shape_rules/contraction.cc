// Shapes of dot, ragged-dot and convolution.
#include <algorithm>

#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

// Element types of products are given (s8 x s8 -> s32 is common); where they are not, the wider operand's.
ElementType ProductType(const Query& q, const Shape& lhs, const Shape& rhs) {
  if (q.has_declared() && q.declared.IsArray()) return q.declared.element_type();
  if (lhs.element_type() != rhs.element_type() && !SameTypeIgnoringPrecision(lhs.element_type(), rhs.element_type()) &&
      !(IsInteger(lhs.element_type()) && IsInteger(rhs.element_type()))) {
    q.Reject("operands differ in element type: {} and {}", lhs.ToString(false), rhs.ToString(false));
  }
  return HigherPrecision(lhs.element_type(), rhs.element_type());
}

void CheckPairs(const Query& q, std::string_view what, const std::vector<int64_t>& lhs,
                const std::vector<int64_t>& rhs) {
  if (lhs.size() != rhs.size()) {
    q.Reject("{} {} dimensions of the lhs, but {} of the rhs", lhs.size(), what, rhs.size());
  }
  for (size_t i = 0; i < lhs.size(); ++i) {
    const int64_t l = q.operand(0).dimension(lhs[i]);
    const int64_t r = q.operand(1).dimension(rhs[i]);
    if (l != r) {
      q.Reject("{} dimensions differ: lhs dimension {} is {}, rhs dimension {} is {}", what, lhs[i], l, rhs[i], r);
    }
  }
}

void AppendDimension(const Shape& from, int64_t d, Shape* to) {
  to->mutable_dimensions().push_back(from.dimension(d));
  if (from.is_dynamic_dimension(d)) to->set_dynamic_dimension(to->rank() - 1, true);
}

// The dimensions that are in neither list, in order.
std::vector<int64_t> FreeDimensions(int64_t rank, std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> free;
  for (int64_t d = 0; d < rank; ++d) {
    if (!Contains(a, d) && !Contains(b, d)) free.push_back(d);
  }
  return free;
}

void CheckDotNumbers(const Query& q, const attr::Dot& dot) {
  const Shape& lhs = q.Array(0);
  const Shape& rhs = q.Array(1);
  std::vector<int64_t> lhs_used = dot.lhs_batch;
  lhs_used.insert(lhs_used.end(), dot.lhs_contracting.begin(), dot.lhs_contracting.end());
  std::vector<int64_t> rhs_used = dot.rhs_batch;
  rhs_used.insert(rhs_used.end(), dot.rhs_contracting.begin(), dot.rhs_contracting.end());
  CheckDimensionNumbers(q, "batch and contracting dimensions of the lhs", lhs_used, lhs.rank());
  CheckDimensionNumbers(q, "batch and contracting dimensions of the rhs", rhs_used, rhs.rank());
  CheckPairs(q, "batch", dot.lhs_batch, dot.rhs_batch);
}

struct DimensionCounts {
  int64_t input_feature, output_feature;
};

void CheckGroups(const Query& q, const attr::Convolution& c, const DimensionCounts& n) {
  if (c.feature_group_count < 1 || c.batch_group_count < 1) {
    q.Reject("feature_group_count {} and batch_group_count {} must be positive", c.feature_group_count,
             c.batch_group_count);
  }
  if (c.feature_group_count > 1 && c.batch_group_count > 1) {
    q.Reject("feature_group_count {} and batch_group_count {} cannot both exceed 1", c.feature_group_count,
             c.batch_group_count);
  }
  const int64_t kernel_input = q.operand(1).dimension(c.dimensions.kernel_input_feature);
  if (n.input_feature % c.feature_group_count != 0 || n.input_feature / c.feature_group_count != kernel_input) {
    q.Reject("the kernel {} must take {} / {} input features, but takes {}", q.operand(1).ToString(false),
             n.input_feature, c.feature_group_count, kernel_input);
  }
  if (n.output_feature % c.feature_group_count != 0 || n.output_feature % c.batch_group_count != 0) {
    q.Reject("{} output features do not divide into {} group(s)", n.output_feature,
             c.feature_group_count * c.batch_group_count);
  }
}

// Each of batch, feature and the spatial dimensions of one operand names a different dimension.
void CheckRoles(const Query& q, std::string_view what, int64_t first, int64_t second,
                const std::vector<int64_t>& spatial, int64_t rank, size_t spatial_rank) {
  std::vector<int64_t> all = {first, second};
  all.insert(all.end(), spatial.begin(), spatial.end());
  if (spatial.size() != spatial_rank || static_cast<int64_t>(all.size()) != rank) {
    q.Reject("dim_labels name {} dimensions of the {}, which has {}; the window has {}", all.size(), what, rank,
             spatial_rank);
  }
  CheckDimensionNumbers(q, fmt::format("dim_labels of the {}", what), all, rank);
}

}  // namespace

namespace {

Shape DotShape(const Query& q) {
  const auto& dot = q.As<attr::Dot>();
  CheckDotNumbers(q, dot);
  CheckPairs(q, "contracting", dot.lhs_contracting, dot.rhs_contracting);
  const Shape& lhs = q.operand(0);
  const Shape& rhs = q.operand(1);
  Shape result(ProductType(q, lhs, rhs), {});
  for (int64_t d : dot.lhs_batch) AppendDimension(lhs, d, &result);
  for (int64_t d : FreeDimensions(lhs.rank(), dot.lhs_batch, dot.lhs_contracting)) AppendDimension(lhs, d, &result);
  for (int64_t d : FreeDimensions(rhs.rank(), dot.rhs_batch, dot.rhs_contracting)) AppendDimension(rhs, d, &result);
  return result;
}

}  // namespace

Shape Dot(const Query& q) {
  q.RequireOperands(2);
  return DotShape(q);
}

// (lhs, rhs, lhs_scale, rhs_scale): a scale has its operand's rank, each dimension divides the operand's; a scalar is
// none.
Shape ScaledDot(const Query& q) {
  q.RequireOperands(4);
  for (int64_t i = 0; i < 2; ++i) {
    const Shape& operand = q.Array(i);
    const Shape& scale = q.Array(i + 2);
    if (scale.rank() == 0) continue;
    if (scale.rank() != operand.rank()) {
      q.Reject("the scale {} of operand {} must be a scalar or have the operand's rank", scale.ToString(false),
               operand.ToString(false));
    }
    for (int64_t d = 0; d < scale.rank(); ++d) {
      if (scale.dimension(d) < 1 || operand.dimension(d) % scale.dimension(d) != 0) {
        q.Reject("dimension {} of the scale {} must divide that of {}", d, scale.ToString(false),
                 operand.ToString(false));
      }
    }
  }
  return DotShape(q);
}

// The lhs's ragged dimension is cut into groups by the sizes in operand 2. It is free (mode 1: each group of rows meets
// its own matrix of the rhs), contracted (mode 2: a result for each group) or batch (mode 3: a plain dot).
Shape RaggedDot(const Query& q) {
  q.RequireOperands(3);
  const auto& dot = q.As<attr::Dot>();
  CheckDotNumbers(q, dot);
  CheckPairs(q, "contracting", dot.lhs_contracting, dot.rhs_contracting);
  const Shape& lhs = q.operand(0);
  const Shape& rhs = q.operand(1);
  const Shape& sizes = q.Array(2);
  if (!IsInteger(sizes.element_type()) || sizes.rank() < 1) {
    q.Reject("the group sizes must be an integer array, but are {}", sizes.ToString(false));
  }
  if (dot.lhs_ragged.size() != 1) q.Reject("needs one ragged dimension of the lhs, but has {}", dot.lhs_ragged.size());
  CheckDimensionNumbers(q, "lhs_ragged_dims", dot.lhs_ragged, lhs.rank());
  CheckDimensionNumbers(q, "rhs_group_dims", dot.rhs_group, rhs.rank());
  const int64_t groups = sizes.dimension(sizes.rank() - 1);
  const bool contracted = Contains(dot.lhs_contracting, dot.lhs_ragged[0]);
  const bool batch = Contains(dot.lhs_batch, dot.lhs_ragged[0]);
  if (contracted || batch) {
    if (!dot.rhs_group.empty()) q.Reject("a contracted or batch ragged dimension takes no rhs_group_dims");
  } else {
    if (dot.rhs_group.size() != 1) q.Reject("a free ragged dimension needs one of rhs_group_dims");
    if (rhs.dimension(dot.rhs_group[0]) != groups) {
      q.Reject("group dimension {} of the rhs {} must be {}, the number of group sizes", dot.rhs_group[0],
               rhs.ToString(false), groups);
    }
  }
  Shape result(ProductType(q, lhs, rhs), {});
  if (contracted) result.mutable_dimensions().push_back(groups);
  for (int64_t d : dot.lhs_batch) AppendDimension(lhs, d, &result);
  for (int64_t d : FreeDimensions(lhs.rank(), dot.lhs_batch, dot.lhs_contracting)) AppendDimension(lhs, d, &result);
  for (int64_t d : FreeDimensions(rhs.rank(), dot.rhs_batch, dot.rhs_contracting)) {
    if (!Contains(dot.rhs_group, d)) AppendDimension(rhs, d, &result);
  }
  return result;
}

Shape Convolution(const Query& q) {
  const Shape& input = q.Array(0);
  const Shape& kernel = q.Array(1);
  const auto& c = q.As<attr::Convolution>();
  const auto& n = c.dimensions;
  const size_t spatial = c.window.size();
  CheckRoles(q, "input", n.input_batch, n.input_feature, n.input_spatial, input.rank(), spatial);
  CheckRoles(q, "kernel", n.kernel_input_feature, n.kernel_output_feature, n.kernel_spatial, kernel.rank(), spatial);
  CheckRoles(q, "result", n.output_batch, n.output_feature, n.output_spatial, input.rank(), spatial);
  const int64_t output_features = kernel.dimension(n.kernel_output_feature);
  CheckGroups(q, c, {input.dimension(n.input_feature), output_features});

  Shape base(input.element_type(), {});
  for (size_t i = 0; i < spatial; ++i) {
    AppendDimension(input, n.input_spatial[i], &base);
    if (c.window[i].size != kernel.dimension(n.kernel_spatial[i])) {
      q.Reject("window dimension {} has size {}, but the kernel {} has {} there", i, c.window[i].size,
               kernel.ToString(false), kernel.dimension(n.kernel_spatial[i]));
    }
  }
  const Shape windows = WindowedShape(q, base, c.window);
  const int64_t batch = input.dimension(n.input_batch);
  if (batch % c.batch_group_count != 0) q.Reject("{} batches do not divide into {} groups", batch, c.batch_group_count);

  Shape result(ProductType(q, input, kernel), Dims(static_cast<size_t>(input.rank())));
  const auto set = [&](int64_t d, int64_t size, bool dynamic) {
    result.mutable_dimensions()[static_cast<size_t>(d)] = size;
    result.set_dynamic_dimension(d, dynamic);
  };
  set(n.output_batch, batch / c.batch_group_count, input.is_dynamic_dimension(n.input_batch));
  set(n.output_feature, output_features, kernel.is_dynamic_dimension(n.kernel_output_feature));
  for (size_t i = 0; i < spatial; ++i) {
    const auto d = static_cast<int64_t>(i);
    set(n.output_spatial[i], windows.dimension(d), windows.is_dynamic_dimension(d));
  }
  return result;
}

}  // namespace hlorun::hlo::shape_rules
