// Work that follows the size: which parts of arrays anybody needs, told to the kernels that compute them.
//
// A size that a result has (signature.h) says that nothing beyond it is needed there; a mask, select(iota(d) < size, x,
// c), says the same of x. From these the pass goes back through every op, and gives a fusion whose result is needed in
// part the size as one more operand:
//
//   before: r = f32[1024,64] fusion(x), calls=softmax
//   after:  r = f32[1024,64] fusion(x, n), calls=softmax, frontend_attributes={hlorun.extents="0.0=1*1/1+0"}
//
// so that its loops over dimension 0 of result 0 end at operand 1. What a kernel leaves unwritten nobody reads as a
// value.
#pragma once

#include <optional>
#include <vector>

#include "passes/pass.h"

namespace hlorun::passes {

// ceil(operand * mul / div) + add, within 0 and the bound.
struct OperandExtent {
  int64_t operand = 0;  // a scalar s32[] of the instruction
  int64_t mul = 1, div = 1, add = 0;
  bool operator==(const OperandExtent&) const = default;
};

// How far an executed instruction is needed, as its attribute says.
struct KernelExtents {
  struct OfResult {
    int64_t leaf = 0, dimension = 0;
    OperandExtent extent;
  };
  std::vector<OfResult> results;
  // Of a dot: operands beyond are not even zero. Of a reversed cumulative op: beyond are neutral elements only.
  std::optional<OperandExtent> contraction;

  bool empty() const { return results.empty() && !contraction; }
  std::optional<OperandExtent> Of(int64_t leaf, int64_t dimension) const;
};
KernelExtents ExtentsOf(const hlo::Instruction& instruction);
void SetExtents(hlo::Instruction& instruction, const KernelExtents& extents);

// The scalar `n` where elements of `x` at n and beyond along `dimension` are all the constant `fill`; null where
// nothing says so.
const hlo::Instruction* FilledFrom(const hlo::Instruction& x, int64_t dimension, const hlo::Literal& fill);
// The same where they are the identity of a reduce's computation, for a dimension of its first operand.
const hlo::Instruction* NeutralFrom(const hlo::Instruction& reduce, int64_t dimension);

class BoundWork : public Pass {
 public:
  std::string_view name() const override { return "bound-work"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
