// What one run needs for itself: an arena and kernel objects whose fixed arguments are set once.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/host_evaluator.h"
#include "backends/opencl/runtime/program_build.h"
#include "backends/opencl/runtime/steps.h"
#include "backends/opencl/runtime/team.h"

namespace hlorun::opencl {

// The memory of each allocation in one run.
using Memories = std::vector<DeviceMemory>;

// One run's memories, and the copies that come before its first thunk.
struct RunMemories {
  struct EarlyCopy {
    DeviceMemory from, to;
    int64_t bytes;
  };
  Memories memories;  // by allocation; the arena's is the run context's
  std::vector<EarlyCopy> copies;
  std::vector<DeviceMemory> constant;  // the caller's own memory of Plan::constant_parameters
};

// A launch of a kernel whose programs were built for a team of so many; its arrays are still to be set.
TeamLaunch MakeTeamLaunch(const Plan& plan, const ProgramSet& programs, int32_t kernel, const Grid& grid,
                          int64_t members);

struct PreparedLaunch {
  struct Argument {
    cl_uint number;
    Slice slice;
  };
  cl::Kernel kernel;   // of runs through a queue
  TeamLaunch by_team;  // of runs by a team
  cl_uint dimensions = 1;
  size_t global[3] = {1, 1, 1};
  size_t local[3] = {1, 1, 1};
  bool empty = false;  // no groups: nothing to do

  // Points an argument of all its kernel objects at a slice of `memory`.
  void SetArgument(cl_uint number, const DeviceMemory& memory, int64_t offset, int64_t bytes);
};

// Used by one run at a time. In a lane, runs are ordered, so the next may borrow it when the last has been enqueued.
class RunContext {
 public:
  // `fixed` holds the constants' memories; the arena is made here. `team_size`: 0 for runs through a queue.
  RunContext(const Plan& plan, const ProgramSet& programs, const std::vector<const LaunchThunk*>& launches,
             const Memories& fixed, MemoryPool& pool, const DeviceMemory& placeholder, int64_t team_size);

  // The part of Bind for launches that read and write nothing but constants and the arena.
  void BindArena(Memories& memories) const {
    if (arena_allocation_ >= 0) memories[static_cast<size_t>(arena_allocation_)] = arena_;
  }
  // Sets what differs from the last run. `memories` lacks the arena on entry and is complete on return.
  void Bind(Memories& memories);
  // For a run that ends before the context is given back, so that it needs no lists of its own.
  RunMemories& memories() { return run_; }
  // Lets go of what that run was given and made.
  void ForgetRun();
  PreparedLaunch& launch(int32_t number) { return launches_[static_cast<size_t>(number)]; }
  // A reducer's launch, made on first use.
  PreparedLaunch& Reducer(int32_t kernel);
  HostEvaluator& evaluator() { return evaluator_; }

  // Whether the arena holds what Plan::once makes of constant parameters in these pieces of memory. It holds on to
  // them, so that nothing else can come to lie there.
  bool Keeps(const std::vector<DeviceMemory>& constant) const;
  void Keep(const std::vector<DeviceMemory>& constant);
  void ForgetKept() { keeps_ = false; }
  // After an error: nothing that was to last from run to run is known to be there.
  void ForgetMade() { keeps_ = has_constants = false; }
  int64_t creations() const { return creations_; }

  bool has_constants = false;                   // whether the arena holds what Plan::of_constants makes
  int64_t failures = 0;                         // of runs on the device, when those were made
  std::array<uint8_t, 2> predicates = {};       // targets of asynchronous reads
  uint64_t partition_id = 0, replica_id = 0;    // sources of asynchronous writes
  std::vector<std::vector<std::byte>> staging;  // host copies for collectives, kept from run to run

 private:
  const Plan& plan_;
  const ProgramSet& programs_;
  const int64_t team_size_;
  DeviceMemory arena_, placeholder_;
  RunMemories run_;
  std::vector<size_t> of_run_;  // allocations that each run has anew
  int32_t arena_allocation_ = -1;
  std::vector<PreparedLaunch> launches_;
  std::vector<DeviceMemory::Place> bound_;  // by allocation: where it was in the last run
  std::vector<std::vector<std::pair<PreparedLaunch*, PreparedLaunch::Argument>>> users_;  // by allocation
  std::map<int32_t, PreparedLaunch> reducers_;                                            // by kernel
  HostEvaluator evaluator_;
  bool keeps_ = false;
  std::vector<DeviceMemory> kept_of_;
  int64_t creations_ = 0;
};

}  // namespace hlorun::opencl
