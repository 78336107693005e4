// Sends for whole cache lines.
#pragma once

#include <utility>
#include <vector>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Those of `elements` elements from `at` on.
inline ir::Stmt PrefetchLines(const ir::BufferRef& buffer, const ir::Expr& at, int64_t elements,
                              ir::CacheLevel level = ir::CacheLevel::kFirst) {
  const int64_t line = kLineBytes / hlo::BytesOf(buffer->storage);
  std::vector<ir::Stmt> lines;
  for (int64_t first = 0; first < elements; first += line) lines.push_back(ir::Prefetch(buffer, at + first, level));
  return ir::Block(std::move(lines));
}

}  // namespace hlorun::opencl
