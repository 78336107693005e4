// Which element of a convolution's input lies at a place along a spatial dimension.
#pragma once

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

struct InputElement {
  ir::Expr is_there;  // neither padding nor a hole of base dilation
  ir::Expr number;    // where it is there
};

// `place` counts from the first element, holes included; negative in the padding.
inline InputElement InputElementAt(const ConvolutionDimension& d, const ir::Expr& place) {
  const ir::Expr inside =
      ir::And(ir::Compare(ir::Op::kGe, place, Index(0)), place < Index((d.in - 1) * d.base_dilation + 1));
  if (d.base_dilation == 1) return {inside, place};
  const ir::Expr rest = ir::Binary(ir::Op::kMod, place, Index(d.base_dilation));
  return {ir::And(inside, ir::Compare(ir::Op::kEq, rest, Index(0))),
          ir::Binary(ir::Op::kDiv, place, Index(d.base_dilation))};
}

}  // namespace hlorun::opencl
