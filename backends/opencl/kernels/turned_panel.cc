#include "backends/opencl/kernels/turned_panel.h"

#include <utility>

#include "backends/opencl/codegen/prefetch_lines.h"
#include "backends/opencl/codegen/transpose_square.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// A panel no larger than this is sent for while the one before is copied; of a larger one, the rows that follow, so
// many elements further.
constexpr int64_t kLargestPanelAhead = 131072, kElementsAhead = 64;

// Columns of the panel lie in as many short runs, which the hardware's prefetcher does not follow.
Stmt SendForSquare(const TurnedPanel& panel, const Expr& corner) {
  if (panel.is_sent_for) return nullptr;
  const int64_t elements = panel.width * panel.k;
  const bool whole_panel = elements * hlo::BytesOf(panel.source->storage) <= kLargestPanelAhead;
  const Expr ahead = corner + (whole_panel ? elements : kElementsAhead);
  std::vector<Stmt> lines;
  for (int64_t column = 0; column < panel.lanes; ++column)
    lines.push_back(PrefetchLines(panel.source, ahead + column * panel.k, panel.lanes, ir::CacheLevel::kSecond));
  return ir::Block(std::move(lines));
}

Stmt StoreTurned(const TurnedPanel& panel, const Expr& index, const Expr& value) {
  const Expr flipped = panel.flip == 0 ? value : ir::Binary(ir::Op::kXor, value, ir::Int(panel.flip, value->type));
  return ir::Store(panel.panels, ir::Ramp(index, value->type.lanes), flipped);
}

// Element by element, columns beyond the matrix too.
Stmt CopyElements(const TurnedPanel& panel, const Expr& begin, const Expr& end) {
  const ir::Var row = ir::MakeIndex("row", 0, panel.k - 1, ir::kIndex),
                column = ir::MakeIndex("column", 0, panel.width - 1, ir::kIndex);
  const bool whole = panel.n % panel.width == 0;
  const Expr inside = whole ? nullptr : panel.number * panel.width + ir::Ref(column) < Index(panel.n);
  const Expr element = ir::Load(panel.source, panel.from + ir::Ref(column) * panel.k + ir::Ref(row), inside);
  const Stmt store =
      StoreTurned(panel, panel.to + ir::Ref(row) * panel.width + ir::Ref(column), ir::Cast(element, panel.type));
  return Loop(row, begin, end, Loop(column, Index(0), Index(panel.width), store));
}

Stmt CopySquares(const TurnedPanel& panel, const Expr& begin, const Expr& end) {
  const ir::Var square = ir::MakeIndex("square", 0, panel.k - 1, ir::kIndex),
                side = ir::MakeIndex("side", 0, panel.width - 1, ir::kIndex);
  const Expr corner = panel.from + ir::Ref(side) * panel.k + ir::Ref(square);
  const auto read = [&](int64_t column, int64_t first, int64_t count) {
    const Expr at = ir::Ramp(corner + (column * panel.k + first), static_cast<int>(count));
    return ir::Cast(ir::Load(panel.source, at), panel.type);
  };
  const auto write = [&](int64_t row, const Expr& elements) {
    return StoreTurned(panel, panel.to + (ir::Ref(square) + row) * panel.width + ir::Ref(side), elements);
  };
  const bool whole_rows = panel.source->storage != panel.type;
  const ir::Type vector{panel.type, static_cast<int>(panel.lanes)};
  const Stmt body = ir::Block({SendForSquare(panel, corner), TransposeSquare(vector, whole_rows, read, write)});
  const auto steps = [&](const ir::Var& var, const Expr& first, const Expr& last, const Stmt& step) {
    return ir::For(ir::LoopRole::kSerial, var, first, last, step, panel.lanes);
  };
  return steps(square, begin, end, steps(side, Index(0), Index(panel.width), body));
}

}  // namespace

Stmt CopyTurned(const TurnedPanel& panel, const Expr& begin, const Expr& end, bool even) {
  if (panel.lanes < 2) return CopyElements(panel, begin, end);
  const Expr squares_end = begin + ir::Binary(ir::Op::kFloorDiv, end - begin, Index(panel.lanes)) * panel.lanes;
  std::vector<Stmt> whole = {CopySquares(panel, begin, squares_end)};
  if (!even) whole.push_back(CopyElements(panel, squares_end, end));
  if (panel.n % panel.width == 0) return ir::Block(std::move(whole));
  return ir::If(panel.number < Index(panel.n / panel.width), ir::Block(std::move(whole)),
                CopyElements(panel, begin, end));
}

std::vector<ir::Helper> TurnedPanelHelpers(hlo::ElementType storage, hlo::ElementType type, int64_t lanes,
                                           bool inline_assembly) {
  if (lanes < 2) return {};
  return TransposeHelpers({type, static_cast<int>(lanes)}, storage != type, inline_assembly);
}

}  // namespace hlorun::opencl
