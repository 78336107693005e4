// Several kernels as the text of one program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// What a device's programs look like.
struct ProgramForm {
  bool guarded = false;        // kernels return at once when their first argument is null
  bool shares_groups = false;  // a launch gives the first group and the one after the last (team.h); all IsFunction
  // A kernel that shares groups also says where its function lies, which the host calls itself: see native_call.h.
  bool native_calls = false;
  bool kernels_call = false;  // ... and calls it, see Quirks::drops_functions
  // Kernels of one work-item become functions behind a switch in one kernel; see Quirks::joins_kernels.
  bool joined = false;
  int64_t large_grid_groups = 0;  // Quirks::large_grid_groups
};

// How a launch reaches a kernel of the plan: the OpenCL kernel, which takes `pointers` pointers, of which the kernel's
// own come first and the others are null, and where `which` >= 0 that number; or, `by_table`, one pointer to a table of
// all that (launch_table.h).
struct KernelEntry {
  std::string symbol;
  int32_t which = -1;
  uint32_t pointers = 0;
  bool by_table = false;
};

struct ProgramText {
  std::string source;
  std::vector<KernelEntry> entries;  // one for each member
};

// The same for the same kernels: saved plans rely on it.
ProgramText TextOf(const std::vector<Kernel>& kernels, std::span<const int32_t> members, const ProgramForm& form);

// A kernel's name with a hash of its source, unlike any other kernel's.
std::string SymbolOf(const Kernel& kernel);
bool IsLargeGrid(const Grid& grid, int64_t large_grid_groups);

}  // namespace hlorun::opencl
