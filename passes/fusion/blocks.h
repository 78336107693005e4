// Blocks: kernels that read one large array after another, each block of it (an image) for itself, become one kernel
// that does all of their work on a block while the caches hold it. Group and instance norms, above all.
//
//   before: s = reduce_fusion(x)  m = fusion(s)  v = reduce_fusion(x, m)  y = loop_fusion(x, m, v)
//   after:  y = fusion(x), kind=kCustom, calls={ the four }, backend_config={"region":"blocks"}
//
// Runs after Fusion, so that its members are kernels: sums over columns of the array, what is made of them (small), and
// loops over the array that need it. A block is one index of the major dimension. CPU class only, and where there are
// blocks for all cores, each larger than a cache is quick to read again and small enough to stay in one.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class FormBlocks : public Pass {
 public:
  std::string_view name() const override { return "blocks"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// The reduce of a kernel that sums up columns of an array block by block: f32[N,..,C] to f32[N,..,C], first and last
// dimension kept. Null for other kernels.
const hlo::Instruction* ColumnReduceOf(const hlo::Instruction& kernel);

// What `value` only reinterprets.
const hlo::Instruction* BehindBitcasts(const hlo::Instruction* value);

// Whether block n of the result of a kernel of blocks needs no other block of `operand`.
bool ReadsByBlock(const hlo::Instruction& blocks, int64_t operand);

}  // namespace hlorun::passes
