// Loops of a kernel that end at a size in memory.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/kernels/kernel_draft.h"
#include "passes/dynamic/extents.h"

namespace hlorun::opencl {

// A size in memory, and the bound of what it cuts: extent(size) * scale of `bound`.
struct SizedLoop {
  int64_t bound = 1;
  std::optional<passes::OperandExtent> extent = {};
  int64_t scale = 1;
};

// Ends of loops as expressions of a kernel; declares what they read.
class LoopEnds {
 public:
  explicit LoopEnds(KernelParameters& parameters) : parameters_(parameters) {}
  // s64; the bound itself where nothing cuts it.
  ir::Expr End(const SizedLoop& loop, const std::string& name);
  // How many pieces of `size` reach the end.
  ir::Expr Pieces(const SizedLoop& loop, int64_t size, const std::string& name);
  // Statements that come before the loops.
  ir::Stmt Before(const ir::Stmt& body) const;

 private:
  KernelParameters& parameters_;
  std::vector<std::pair<int64_t, ir::BufferRef>> buffers_;
  std::vector<ir::Stmt> statements_;
};

}  // namespace hlorun::opencl
