// Which of the gradient's pixels a tap of a convolution's weights meets, and where tiles that cover an array start.
#pragma once

#include <utility>

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

// Neighbouring pixels lie a row of channels apart, which the hardware does not see as a stream: they are sent for so
// many steps ahead. Whole pages apart they share a set of the first cache, which holds a dozen lines.
inline int64_t PixelsAhead(int64_t bytes_apart) {
  constexpr int64_t kPage = 4096;
  return bytes_apart % kPage == 0 ? 6 : 16;
}

// Where a tile or panel of `size` starts: the last one ends with the array, and so overlaps the one before.
inline ir::Expr Start(const ir::Expr& number, int64_t size, int64_t extent) {
  return extent % size == 0 ? number * size : ir::Min(number * size, Index(extent - size));
}

// Which of the groups that no panel cuts a panel of `panels` belongs to, each of so many panels, and which it is of
// that group's.
inline ir::Expr GroupOfPanel(const ir::Expr& panel, int64_t panels, int64_t together) {
  return together == panels ? Index(0) : Quotient(panel, together);
}
inline ir::Expr PanelInGroup(const ir::Expr& panel, int64_t panels, int64_t together) {
  return together == panels ? panel : Remainder(panel, together);
}

// First and end of the gradient's pixels that tap `tap` meets along a dimension. Both fall as taps rise.
inline std::pair<ir::Expr, ir::Expr> PixelsOfTap(const ConvolutionDimension& d, const ir::Expr& tap) {
  const ir::Expr before = Index(d.low) - tap * d.stride;  // input elements before the first one
  const ir::Expr first = ir::Max(Index(0), Quotient(before + (d.dilation - 1), d.dilation));
  return {first, ir::Min(Index(d.window), Quotient(before + (d.in - 1 + d.dilation), d.dilation))};
}

}  // namespace hlorun::opencl
