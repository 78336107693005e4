// The last kernel of a weight gradient: the sums of all parts of its pixels, and what is fused behind them.
#pragma once

#include <functional>

#include "backends/opencl/kernels/weight_gradient.h"

namespace hlorun::opencl {

// Where the sums of parts are: panels of features, each `vectors` * `lanes` wide.
struct GradientSums {
  ArgumentRef argument;
  int64_t parts = 1, of_part = 0;  // and how many sums a part has
  int64_t lanes = 16, vectors = 2;
  // Of all features; those that no group cuts, of so many features.
  int64_t panels = 1, panels_together = 1, features_together = 1;
  // The last panel of a group ends with it, and so overlaps the one before; else what is behind the group is unused.
  bool last_overlaps = false;
  std::function<ir::Expr(const ir::Expr& tap, const ir::Expr& channel, const ir::Expr& panel)> place;  // in a part

  int64_t width() const { return vectors * lanes; }
};

KernelDraft CombineParts(const WeightGradientTask& task, const WeightGradientShape& shape, const GradientSums& sums);

}  // namespace hlorun::opencl
