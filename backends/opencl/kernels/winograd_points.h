// Winograd's transforms of one dimension, F(4, 3), at the points 0, a, -a, b, -b and infinity: what they do to vectors.
//
// a = 11/16 and b = 11/8 are exact in binary, and keep the largest error of a convolution of normal data within twice
// that of summing directly (the customary 1 and 2: five times).
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Each appends statements that name what is used twice, and returns the transformed values. All values have one type.
// Six inputs at the six points.
std::vector<ir::Expr> InputAtPoints(const std::vector<ir::Expr>& inputs, std::vector<ir::Stmt>& statements);
// Three weights at the six points.
std::vector<ir::Expr> WeightsAtPoints(const std::vector<ir::Expr>& weights, std::vector<ir::Stmt>& statements);
// Four outputs from the products at the six points.
std::vector<ir::Expr> OutputsFromPoints(const std::vector<ir::Expr>& products, std::vector<ir::Stmt>& statements);

}  // namespace hlorun::opencl
