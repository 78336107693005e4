// Launches that need nothing of each other as one.
//
//   before: k(a, b) of 8 groups   k(c, d) of 8 groups   l(e) of 3 groups
//   after:  one kernel of 19 groups and (a, b, c, d, e): the first 8 are k's with a and b, the next 8 k's with c and d,
//           the last 3 those of l
//
// Equal kernels are one body, with the pointers of whichever group it is: forty of them take no longer to compile than
// one. A whole work-group does one thing, so that barriers stay; the arrays of a group are parts of one. (Bodies as
// functions: LLVM 15, PoCL's, crashed where it inlined them.)
#pragma once

#include <vector>

#include "backends/opencl/codegen/emit.h"

namespace hlorun::opencl {

// Whether a launch can be part of another: work-groups in a line, of sub-groups as the device likes them.
bool MayJoin(const EmittedLaunch& launch);

// `launches`, whose arguments are seen from one instruction, as few: those that may join and have groups of as many
// work-items are one. What two of them are given is one argument.
std::vector<EmittedLaunch> JoinLaunches(const std::vector<EmittedLaunch>& launches, const DeviceSpec& device);

}  // namespace hlorun::opencl
