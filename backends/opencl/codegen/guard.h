// What a kernel of a branch or a loop asks before it does anything.
#pragma once

#include "backends/opencl/codegen/emit.h"

namespace hlorun::opencl {

// One branch of a conditional, or the body of a loop.
struct Guard {
  Slice selector;            // pred[] or s32[]
  bool is_predicate = true;  // branch 0 is taken when true
  int64_t branch = 0;
  int64_t branches = 2;  // an index out of range takes the last
};

// The same launch, with one more argument a guard (not among `arguments`: they follow those). Inner guards come last:
// their selectors hold nothing where an outer branch is not taken.
EmittedLaunch Guarded(EmittedLaunch launch, const std::vector<Guard>& guards);

}  // namespace hlorun::opencl
