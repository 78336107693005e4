// Changes to the text of a kernel that the runtime needs: an early return, a loop over groups, a function to call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// Of kernels whose groups have one work-item, as codegen prints it.
inline constexpr std::string_view kOneItem = "__attribute__((reqd_work_group_size(1, 1, 1)))";

bool HasBarrier(const Kernel& kernel);
// The kernel's source with a first statement that returns when its first argument is null. So a warm-up neither needs
// memory nor can loop on what it would read there. Kernels with barriers stay as they are: an early return changes how
// work-items are serialised around them.
std::string WithEntryGuard(const Kernel& kernel);
// `source` of a kernel called `name` whose one group does the work of many: two more parameters, the first of them and
// the one after the last. Its body neither returns nor changes its parameters, as all that codegen prints.
std::string WithGroupLoop(const std::string& source, const std::string& name);

// Whether a kernel can be a function behind another kernel: not one of several work-items, of the user, or launched on
// a grid of more than one dimension.
bool IsFunction(const Kernel& kernel);

// A kernel's body as a function that is never inlined. After the kernel's own parameters it takes its group's number,
// or the first of a share's groups and the one after the last.
struct KernelFunction {
  std::string text;                // with helpers; called as the kernel is
  std::vector<std::string> types;  // of the kernel's own parameters: pointers to global memory
};
// Of a kernel for which IsFunction holds.
KernelFunction AsFunction(const Kernel& kernel, bool shares_groups);

}  // namespace hlorun::opencl
