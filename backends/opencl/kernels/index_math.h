// Indices in kernels: numbers, variables, division and loops over them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

inline ir::Expr Index(int64_t value) { return ir::Int(value, ir::kIndex); }
// From 0 to `end`, exclusive.
inline ir::Var IndexVar(const std::string& name, int64_t end) { return ir::MakeIndex(name, 0, end - 1, ir::kIndex); }
// Towards minus infinity, and what is left: at least 0.
inline ir::Expr Quotient(const ir::Expr& x, int64_t by) { return ir::Binary(ir::Op::kFloorDiv, x, Index(by)); }
inline ir::Expr Remainder(const ir::Expr& x, int64_t by) { return ir::Binary(ir::Op::kFloorMod, x, Index(by)); }
inline ir::Stmt Loop(const ir::Var& var, const ir::Expr& begin, const ir::Expr& end, const ir::Stmt& body,
                     int64_t step = 1) {
  return ir::For(ir::LoopRole::kSerial, var, begin, end, body, step);
}
// Where a run of `count` ends that begins at `first`, a multiple of it, and has nothing behind `limit`.
inline ir::Expr EndOfRun(const ir::Expr& first, int64_t count, int64_t limit) {
  return limit % count == 0 ? first + count : ir::Min(first + count, Index(limit));
}
// The first of `count`, the last, the second, the last but one ...: work that grows from one to the next is spread
// evenly over any run of turns.
inline ir::Expr FromBothEnds(const ir::Expr& turn, int64_t count) {
  const ir::Expr pair = Quotient(turn, 2);
  return ir::Select(ir::Compare(ir::Op::kEq, Remainder(turn, 2), Index(0)), pair, Index(count - 1) - pair);
}
// A perfect nest of parallel loops from 0, outermost first.
inline ir::Stmt ParallelNest(const std::vector<std::pair<ir::Var, ir::Expr>>& loops, ir::Stmt body) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    body = ir::For(ir::LoopRole::kParallel, loop->first, Index(0), loop->second, body);
  return body;
}

}  // namespace hlorun::opencl
