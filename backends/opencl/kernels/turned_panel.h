// Copies panels of columns out of a matrix that is stored transposed.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Panel `number` of `width` columns of a matrix [k][n] that lies as [n][k]: panels[to + i * width + j] is column
// number * width + j of row i, and zero (before `flip`) beyond n.
struct TurnedPanel {
  ir::BufferRef source, panels;
  hlo::ElementType type = hlo::ElementType::kF32;  // of what is stored
  uint32_t flip = 0;                               // every element is combined with it by exclusive or
  int64_t n = 1, k = 1, width = 1;
  int64_t lanes = 1;  // of the squares that are transposed in registers; width is a multiple of them
  bool is_sent_for = false;  // by others: the copy need not send for what it reads next
  ir::Expr number = {}, from = {}, to = {};  // from: index of column number * width, row 0, in `source`
};

// Rows begin .. end. `even`: they are always a multiple of `lanes`.
ir::Stmt CopyTurned(const TurnedPanel& panel, const ir::Expr& begin, const ir::Expr& end, bool even);

// Functions that the statement calls. `inline_assembly`: DeviceSpec::has_inline_assembly.
std::vector<ir::Helper> TurnedPanelHelpers(hlo::ElementType storage, hlo::ElementType type, int64_t lanes,
                                           bool inline_assembly);

}  // namespace hlorun::opencl
