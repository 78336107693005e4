// Matrix products on GPU-class devices: a work-group computes a tile of the result from blocks of both operands that
// its work-items copy to local memory; each work-item keeps a small tile of sums in registers. Convolutions come as
// products whose lhs is gathered from the input (pixels x window), so that padding and dilation are predicates of its
// loads.
#pragma once

#include <functional>

#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/kernel_draft.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// An element of an operand: where it lies, and whether it is there at all (null: it is; otherwise it counts as zero).
struct ElementPlace {
  ir::Expr index;  // s64
  ir::Expr inside;
};

struct TiledOperand {
  ArgumentRef argument;
  hlo::ElementType storage = hlo::ElementType::kF32;
  int64_t elements = 0;
  // At a batch, a row (lhs) or column (rhs) and a k, all s64 and within bounds.
  std::function<ElementPlace(const ir::Expr& batch, const ir::Expr& outer, const ir::Expr& k)> place;
  bool k_is_fastest = false;  // neighbours in memory are neighbours in k
  // Elements, from a multiple of as many on along the fastest of k and outer, that lie side by side in memory, from
  // such a multiple on, and of which all are there or none. A power of two.
  int64_t run = 1;
};

struct TiledProduct {
  const hlo::Instruction& instruction;
  const hlo::Instruction& hero;
  const AliasPattern& aliases;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  hlo::ElementType compute_type = hlo::ElementType::kF32;
  TiledOperand lhs, rhs;
  // The hero's result index.
  std::function<RunIndex(const ir::Expr& batch, const ir::Expr& row, const ir::Expr& column)> result;
};

// Where the schedule cuts k into parts, their sums go to the instruction's scratch, [part][batch][m][n]. Four integers
// of 8 bits are multiplied at once where `device` has an instruction for that.
KernelDraft TiledProductKernel(const TiledProduct& product, const TiledSchedule& schedule, const DeviceSpec& device);

}  // namespace hlorun::opencl
