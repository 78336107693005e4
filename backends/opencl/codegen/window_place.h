// Where an element of a window lies.
#pragma once

#include "backends/opencl/codegen/index_math.h"
#include "hlo/attributes.h"

namespace hlorun::opencl {

// One dimension of a window: the base index, and whether there is an element.
struct WindowPlace {
  Index index;
  ir::Expr inside;
};

// At output index `out` and window index `at`, of a base of `base_size` elements.
inline WindowPlace PlaceInWindow(IndexMath& math, const hlo::WindowDimension& w, const Index& out, const Index& at,
                                 int64_t base_size) {
  const Index position = math.Add(math.Add(math.Mul(out, w.stride), math.Mul(at, w.window_dilation)), -w.padding_low);
  WindowPlace place{math.FloorDiv(position, w.base_dilation),
                    math.Within(position, 0, (base_size - 1) * w.base_dilation + 1)};
  const Index rest = math.Mod(position, w.base_dilation);
  if (rest == Index(0)) return place;
  const ir::Expr is_element = ir::Compare(ir::Op::kEq, math.ToExpr(rest), ir::Int(0, math.type()));
  place.inside = ir::And(place.inside, is_element);
  return place;
}

}  // namespace hlorun::opencl
