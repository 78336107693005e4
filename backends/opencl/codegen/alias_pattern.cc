#include "backends/opencl/codegen/alias_pattern.h"

namespace hlorun::opencl {

AliasPattern AliasesOf(const hlo::Instruction& instruction, const passes::BufferAssignment& buffers) {
  const int64_t leaves = hlo::LeafCount(instruction.shape());
  AliasPattern aliases(static_cast<size_t>(leaves), -1);
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    const passes::Slice& result = buffers.SliceOf(&instruction, leaf);
    if (result.bytes == 0) continue;
    for (int64_t i = 0; i < instruction.operand_count(); ++i) {
      const hlo::Instruction* operand = instruction.operand(i);
      if (!operand->shape().IsArray() || buffers.SliceOf(operand) != result) continue;
      if (aliases[static_cast<size_t>(leaf)] < 0)
        aliases[static_cast<size_t>(leaf)] = i;
      else
        aliases.push_back(i);
    }
  }
  return aliases;
}

}  // namespace hlorun::opencl
