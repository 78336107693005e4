// A team: the calling thread and helpers that share a launch's work-groups, on a device that runs kernels in the thread
// that enqueues them. A launch begins at once, in the caller, and costs no wake-up unless helpers are worth one.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// A kernel's groups as a team runs them: a kernel object for each member, whose last two arguments are the first group
// of a share and the one after its last (WithGroupLoop). So every launch is of one group: PoCL 3.1 keeps a loaded
// kernel for each width of grid and gives back another than it took when two widths run at once, until it asserts.
struct TeamLaunch {
  struct Member {
    cl::Kernel kernel;
    std::array<cl_int, 2> share = {-1, -1};  // as it was last told
  };
  std::vector<Member> members;  // the caller is member 0
  cl_uint first_argument = 0;
  int64_t groups = 0;
};

// Thread-safe: one call of Run at a time, others wait for it. Which member runs a group is left to chance, so a
// kernel's groups must not depend on each other.
class Team {
 public:
  // Queues are made on `device` in `context`; `size` members, this thread among them. Threads start when first needed.
  Team(const cl::Context& context, const cl::Device& device, int64_t size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int64_t size() const { return static_cast<int64_t>(queues_.size()); }
  // Returns when all groups of all launches have run, side by side and in any order; `alone`: in this thread, for work
  // too short to wake anyone. Large groups are best last. Throws Error when the device refuses a launch.
  void Run(std::span<TeamLaunch* const> launches, bool alone);

 private:
  static constexpr int64_t kRemaining = (int64_t{1} << 32) - 1;

  void Help(size_t member);
  // Takes shares of the launches that are open until none is left.
  void Work(size_t member);
  // Groups of all launches counted one after the other.
  cl_int RunShare(std::span<TeamLaunch* const> launches, size_t member, int64_t first, int64_t count) const;
  cl_int RunGroups(TeamLaunch& launch, size_t member, int64_t first, int64_t count) const;

  std::vector<cl::CommandQueue> queues_;
  std::mutex run_mutex_;  // held while launches are open
  std::vector<std::thread> helpers_;
  std::span<TeamLaunch* const> launches_;
  // Number of the open launches above, groups that nobody has taken yet below: whoever lowers it owns what he took, and
  // with it launches_, until he adds it to done_.
  std::atomic<int64_t> ticket_{0};
  std::atomic<int64_t> done_{0};
  std::atomic<cl_int> error_{CL_SUCCESS};
  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace hlorun::opencl
