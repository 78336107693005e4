// Which arrays of a kernel must not be `restrict` although nothing else overlaps them.
#pragma once

#include <set>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// LLVM 15 (PoCL 3.1), when it inlines a kernel, says of each load and store of several addresses at once
// (masked.gather, masked.scatter) that it touches none of the restricted pointers, the one it goes through among them
// (InlineFunction.cpp looks at pointers, not at vectors of them), and then moves stores across it. So these are arrays
// that are both stored to and loaded from, and those that a loop stores to one element at a time, not side by side.
// (An array that is only stored to side by side stays restricted: what a loop carries is in registers for that.)
std::set<const ir::Buffer*> Unrestricted(const ir::Stmt& body);

}  // namespace hlorun::opencl
