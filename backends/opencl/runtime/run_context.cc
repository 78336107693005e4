#include "backends/opencl/runtime/run_context.h"

#include <algorithm>

#include "backends/opencl/runtime/cl_error.h"

namespace hlorun::opencl {
namespace {

PreparedLaunch Prepare(const Plan& plan, const ProgramSet& programs, int32_t kernel, const Grid& grid,
                       int64_t team_size) {
  PreparedLaunch launch;
  if (team_size == 0) launch.kernel = programs.MakeKernel(plan, kernel);
  if (team_size > 0) launch.by_team = MakeTeamLaunch(plan, programs, kernel, grid, team_size);
  for (size_t d = 0; d < 3; ++d) {
    launch.local[d] = static_cast<size_t>(grid.local[d]);
    launch.global[d] = static_cast<size_t>(grid.groups[d]) * launch.local[d];
    if (launch.global[d] > 1) launch.dimensions = static_cast<cl_uint>(d + 1);
    if (launch.global[d] == 0) launch.empty = true;
  }
  return launch;
}

// Kernel objects that were made for it.
int64_t ObjectsOf(const PreparedLaunch& launch) {
  if (launch.kernel() != nullptr) return 1;
  return launch.by_team.function == nullptr ? static_cast<int64_t>(launch.by_team.members.size()) : 0;
}

void SetKernelArgument(const cl::Kernel& kernel, cl_uint number, const DeviceMemory& memory, int64_t offset,
                       int64_t bytes) {
  if (std::byte* host = memory.host()) {
    CheckCl(clSetKernelArgSVMPointer(kernel(), number, host + offset), "setting a kernel's argument");
    return;
  }
  const cl_mem buffer = memory.Sub(offset, bytes).argument();
  CheckCl(clSetKernelArg(kernel(), number, sizeof(buffer), &buffer), "setting a kernel's argument");
}

}  // namespace

TeamLaunch MakeTeamLaunch(const Plan& plan, const ProgramSet& programs, int32_t kernel, const Grid& grid,
                          int64_t members) {
  const auto k = static_cast<size_t>(kernel);
  TeamLaunch launch;
  launch.function = programs.functions[k];
  launch.groups = grid.groups[0];
  for (int64_t i = 0; i < members; ++i) {
    TeamLaunch::Member& member = launch.members.emplace_back();
    member.table = LaunchTable(static_cast<size_t>(plan.kernels[k].parameter_count), programs.entries[k].which);
    if (launch.function != nullptr) continue;
    member.kernel = programs.MakeKernel(plan, kernel);
    CheckCl(clSetKernelArgSVMPointer(member.kernel(), 0, member.table.data()), "setting a kernel's table");
  }
  return launch;
}

void PreparedLaunch::SetArgument(cl_uint number, const DeviceMemory& memory, int64_t offset, int64_t bytes) {
  if (kernel() != nullptr) SetKernelArgument(kernel, number, memory, offset, bytes);
  for (TeamLaunch::Member& member : by_team.members) member.table.SetArray(number, memory.host() + offset);
}

RunContext::RunContext(const Plan& plan, const ProgramSet& programs, const std::vector<const LaunchThunk*>& launches,
                       const Memories& fixed, MemoryPool& pool, const DeviceMemory& placeholder, int64_t team_size)
    : plan_(plan), programs_(programs), team_size_(team_size), placeholder_(placeholder) {
  using Kind = passes::Allocation::Kind;
  for (size_t a = 0; a < plan.allocations.size(); ++a) {
    const Kind kind = plan.allocations[a].kind;
    if (kind == Kind::kArgument || kind == Kind::kResult) of_run_.push_back(a);
    if (kind != Kind::kArena) continue;
    arena_allocation_ = static_cast<int32_t>(a);
    arena_ = pool.Allocate(plan.allocations[a].bytes, "the arena of " + plan.module_name);
  }
  bound_.resize(plan.allocations.size());
  users_.resize(plan.allocations.size());
  launches_.reserve(launches.size());
  for (const LaunchThunk* thunk : launches) {
    PreparedLaunch& launch = launches_.emplace_back(Prepare(plan, programs, thunk->kernel, thunk->grid, team_size));
    creations_ += ObjectsOf(launch);
    for (size_t i = 0; i < thunk->arguments.size(); ++i) {
      const Slice& slice = thunk->arguments[i];
      const auto a = static_cast<size_t>(slice.allocation);
      const PreparedLaunch::Argument argument{static_cast<cl_uint>(i), slice};
      if (slice.allocation == arena_allocation_) {
        launch.SetArgument(argument.number, arena_, slice.offset, slice.bytes);
      } else if (!fixed[a].empty()) {
        launch.SetArgument(argument.number, fixed[a], slice.offset, slice.bytes);
      } else {
        users_[a].emplace_back(&launch, argument);
      }
    }
  }
}

void RunContext::ForgetRun() {
  if (run_.memories.empty()) return;
  for (const size_t a : of_run_) run_.memories[a] = {};
  run_.copies.clear();
  run_.constant.clear();
}

void RunContext::Bind(Memories& memories) {
  BindArena(memories);
  for (size_t a = 0; a < memories.size(); ++a) {
    if (users_[a].empty()) continue;
    // A kernel's null pointer means a warm-up, so an array without elements needs an address too.
    const DeviceMemory& memory = memories[a].bytes() == 0 ? placeholder_ : memories[a];
    const DeviceMemory::Place place = memory.place();
    if (place == bound_[a]) continue;
    bound_[a] = {};
    for (auto& [launch, argument] : users_[a]) {
      launch->SetArgument(argument.number, memory, argument.slice.offset, argument.slice.bytes);
    }
    bound_[a] = place;
  }
}

bool RunContext::Keeps(const std::vector<DeviceMemory>& constant) const {
  return keeps_ && std::equal(constant.begin(), constant.end(), kept_of_.begin(), kept_of_.end(),
                              [](const DeviceMemory& a, const DeviceMemory& b) { return a.place() == b.place(); });
}

void RunContext::Keep(const std::vector<DeviceMemory>& constant) {
  kept_of_ = constant;
  keeps_ = true;
}

PreparedLaunch& RunContext::Reducer(int32_t kernel) {
  const auto found = reducers_.find(kernel);
  if (found != reducers_.end()) return found->second;
  const Grid& grid = plan_.kernels[static_cast<size_t>(kernel)].grids.at(0);
  PreparedLaunch& made = reducers_.emplace(kernel, Prepare(plan_, programs_, kernel, grid, team_size_)).first->second;
  creations_ += ObjectsOf(made);
  return made;
}

}  // namespace hlorun::opencl
