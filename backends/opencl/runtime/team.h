// A team: the calling thread and helpers that share a launch's work-groups. They call the kernels' functions, or, where
// those cannot be had, launch them on a device that runs kernels in the thread that enqueues them. A launch begins at
// once, in the caller, and costs no wake-up unless helpers are worth one.
#pragma once

#include <atomic>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "backends/opencl/runtime/cl.h"
#include "backends/opencl/runtime/launch_table.h"
#include "backends/opencl/runtime/native_call.h"

namespace hlorun::opencl {

// A kernel's groups as a team runs them: a table for each member, and a kernel object where there is no function, that
// says among other things which groups are a share's (launch_table.h). So every launch is of one group: PoCL 3.1 keeps
// a loaded kernel for each width of grid and gives back another than it took when two widths run at once, until it
// asserts.
struct TeamLaunch {
  struct Member {
    cl::Kernel kernel;  // its argument is the table; none where `function` is called
    LaunchTable table;
  };
  std::vector<Member> members;        // the caller is member 0
  NativeFunction function = nullptr;  // native_call.h
  int64_t groups = 0;
};

// Thread-safe: one call of Run at a time, others wait for it. Which member runs a group is left to chance, so a
// kernel's groups must not depend on each other.
class Team {
 public:
  // Groups that one launch may have; launches that run side by side and have more go to one member.
  static constexpr int64_t kMostGroups = (int64_t{1} << 20) - 1;

  // Queues are made on `device` in `context`; `size` members, this thread among them. Threads start when first needed.
  Team(const cl::Context& context, const cl::Device& device, int64_t size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int64_t size() const { return static_cast<int64_t>(queues_.size()); }
  // Returns when all groups of all launches have run, side by side and in any order. A member takes at least `share`
  // groups at once, and where those are all, the work is too short to wake anyone. Each member begins with its own part
  // of the groups, and then takes from the others': what it made in the launch before is still in its caches. Of what
  // the second cache cannot hold all that is the half where it ended, so one launch goes up and the next one down;
  // several side by side begin at the end, where large groups are. Throws Error when the device refuses a launch.
  void Run(std::span<TeamLaunch* const> launches, int64_t share);

 private:
  static constexpr int kBits = std::bit_width(static_cast<uint64_t>(kMostGroups));

  // The groups of a member that nobody has taken yet, as [first, end), and the number of the open launches: whoever
  // changes it owns what he took, and with it launches_, until he adds it to done_. One word, so that a helper who was
  // late for a launch takes nothing of the next one.
  struct Range {
    uint64_t number = 0;
    int64_t first = 0, end = 0;

    int64_t left() const { return end - first; }
    uint64_t Packed() const;
    static Range Unpack(uint64_t word);
  };
  struct alignas(64) Part {
    std::atomic<uint64_t> range{0};
    int asleep_on = -1;  // of a helper, under sleep_mutex_: the core on which it fell asleep
  };

  void Help(size_t member);
  // Holding sleep_mutex_: sends each helper that sleeps to a core of its own, which is not this thread's.
  void SpreadSleepers();
  // Takes shares of the launches that are open until none is left.
  void Work(size_t member);
  // A share of what `of` has left, from where he begins if it is his own, else from where he ends. Nothing: none is
  // left.
  Range Take(size_t member, size_t of);
  bool IsOpen() const;
  // Groups of all launches counted one after the other.
  cl_int RunShare(std::span<TeamLaunch* const> launches, size_t member, int64_t first, int64_t count) const;
  cl_int RunGroups(TeamLaunch& launch, size_t member, int64_t first, int64_t count) const;

  std::vector<cl::CommandQueue> queues_;
  std::mutex run_mutex_;  // held while launches are open
  std::vector<std::thread> helpers_;
  std::vector<int> cores_;  // on which helpers may run
  std::span<TeamLaunch* const> launches_;
  std::atomic<int64_t> least_share_{1};  // a helper who was late for a launch still reads it
  std::atomic<bool> upwards_{false};     // the same
  std::vector<Part> parts_;              // of each member
  uint64_t number_ = 0;
  std::atomic<int64_t> done_{0};
  std::atomic<cl_int> error_{CL_SUCCESS};
  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace hlorun::opencl
