// Winograd's transforms of one dimension, F(outputs, taps): what they do to vectors. `outputs` neighbouring outputs of
// a window of `taps` cost outputs + taps - 1 products, at as many points: four at 0, 1, -1 and infinity, or six at 0,
// a, -a, b, -b and infinity. One point leaves everything as it is.
//
// a = 11/16 and b = 11/8 are exact in binary, and keep the largest error of a convolution of normal data within twice
// that of summing directly (the customary 1 and 2: five times).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

struct WinogradForm {
  int64_t outputs = 1, taps = 1;

  int64_t points() const { return outputs + taps - 1; }  // 1, 4 or 6
};

// Of a window of `taps` elements, most outputs first; none where there are no points for it.
std::vector<WinogradForm> WinogradFormsOf(int64_t taps);

// Each appends statements that name what is used twice, and returns the transformed values. All values have one type.
// form.points() inputs at the points.
std::vector<ir::Expr> InputAtPoints(const WinogradForm& form, const std::vector<ir::Expr>& inputs,
                                    std::vector<ir::Stmt>& statements);
// form.taps weights at the points.
std::vector<ir::Expr> WeightsAtPoints(const WinogradForm& form, const std::vector<ir::Expr>& weights,
                                      std::vector<ir::Stmt>& statements);
// form.outputs outputs from the products at the points.
std::vector<ir::Expr> OutputsFromPoints(const WinogradForm& form, const std::vector<ir::Expr>& products,
                                        std::vector<ir::Stmt>& statements);

}  // namespace hlorun::opencl
