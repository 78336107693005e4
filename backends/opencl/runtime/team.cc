#include "backends/opencl/runtime/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "backends/collectives/wait.h"
#include "backends/opencl/runtime/cl_error.h"

namespace hlorun::opencl {
namespace {

// How long a helper looks for the next launch before it sleeps: longer than what lies between the launches of one run,
// and far shorter than what a spinning thread would cost others.
constexpr auto kPatience = std::chrono::microseconds(30);

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Where the calling thread may run; empty where that cannot be told.
std::vector<int> AllowedCores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// A thread that is not moved, where that is forbidden, is only slower.
void MoveTo(pthread_t thread, std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  pthread_setaffinity_np(thread, sizeof(set), &set);
}

}  // namespace

uint64_t Team::Range::Packed() const {
  return number << (2 * kBits) | static_cast<uint64_t>(first) << kBits | static_cast<uint64_t>(end);
}

Team::Range Team::Range::Unpack(uint64_t word) {
  return {word >> (2 * kBits), static_cast<int64_t>(word >> kBits) & kMostGroups,
          static_cast<int64_t>(word) & kMostGroups};
}

Team::Team(const cl::Context& context, const cl::Device& device, int64_t size)
    : parts_(static_cast<size_t>(std::max<int64_t>(1, size))) {
  for (size_t i = 0; i < parts_.size(); ++i) queues_.emplace_back(context, device);
}

Team::~Team() {
  stop_ = true;
  {
    std::lock_guard lock(sleep_mutex_);
    woken_.notify_all();
  }
  for (std::thread& helper : helpers_) helper.join();
}

cl_int Team::RunShare(std::span<TeamLaunch* const> launches, size_t member, int64_t first, int64_t count) const {
  cl_int status = CL_SUCCESS;
  for (TeamLaunch* launch : launches) {
    if (count == 0 || status != CL_SUCCESS) break;
    const int64_t here = std::clamp<int64_t>(launch->groups - first, 0, count);
    if (here > 0) status = RunGroups(*launch, member, first, here);
    first = std::max<int64_t>(0, first - launch->groups);
    count -= here;
  }
  return status;
}

cl_int Team::RunGroups(TeamLaunch& launch, size_t member, int64_t first, int64_t count) const {
  TeamLaunch::Member& own = launch.members[member];
  own.table.SetGroups(first, first + count);
  if (launch.function != nullptr) {
    const KernelArithmetic arithmetic;
    launch.function(own.table.data());
    return CL_SUCCESS;
  }
  const cl_command_queue queue = queues_[member]();
  constexpr size_t kOne = 1;
  cl_int status = clEnqueueNDRangeKernel(queue, own.kernel(), 1, nullptr, &kOne, &kOne, 0, nullptr, nullptr);
  if (status == CL_SUCCESS) status = clFinish(queue);
  return status;
}

void Team::Run(std::span<TeamLaunch* const> launches, int64_t share) {
  int64_t groups = 0;
  for (TeamLaunch* launch : launches) groups += launch->groups;
  if (groups == 0) return;
  std::lock_guard lock(run_mutex_);
  if (share >= groups || groups > kMostGroups || queues_.size() == 1) {
    return CheckCl(RunShare(launches, 0, 0, groups), "running a kernel");
  }
  if (helpers_.empty()) cores_ = AllowedCores();
  for (size_t i = helpers_.size() + 1; i < queues_.size(); ++i) helpers_.emplace_back([this, i] { Help(i); });
  launches_ = launches;
  least_share_ = share;
  done_ = 0;
  error_ = CL_SUCCESS;
  upwards_ = launches.size() == 1 && !upwards_;
  number_ = (number_ + 1) & ((uint64_t{1} << (64 - 2 * kBits)) - 1);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto bound = [&](size_t member) { return groups * static_cast<int64_t>(member) / size(); };
    parts_[i].range = Range{number_, bound(i), bound(i + 1)}.Packed();
  }
  if (sleepers_.load() > 0) {
    std::lock_guard awake(sleep_mutex_);
    SpreadSleepers();
    woken_.notify_all();
  }
  Work(0);
  collectives::WaitUntil(
      [&] {
        if (done_.load() == groups) return true;
        Pause();
        return false;
      },
      collectives::Patience::kOwnCore);
  CheckCl(error_, "running a kernel");
}

Team::Range Team::Take(size_t member, size_t of) {
  std::atomic<uint64_t>& word = parts_[of].range;
  for (uint64_t seen = word.load();;) {
    Range range = Range::Unpack(seen), taken = range;
    if (range.left() == 0) return range;
    // Large shares first, so that few are needed, and small ones last, so that all members end at about the same time.
    const int64_t share = std::min(std::max((range.left() + 1) / 2, least_share_.load()), range.left());
    if ((member == of) != upwards_.load()) {
      range.end = taken.first = range.end - share;
    } else {
      range.first = taken.end = range.first + share;
    }
    if (word.compare_exchange_weak(seen, range.Packed())) return taken;
  }
}

void Team::Work(size_t member) {
  for (size_t i = 0; i < parts_.size();) {
    const Range share = Take(member, (member + i) % parts_.size());
    if (share.left() == 0) {
      ++i;
      continue;
    }
    const cl_int status = RunShare(launches_, member, share.first, share.left());
    if (status != CL_SUCCESS) error_ = status;
    done_ += share.left();
  }
}

bool Team::IsOpen() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return Range::Unpack(part.range.load()).left() > 0; });
}

// Else Linux may queue a thread behind the one that wakes it, which then computes for milliseconds: it does not look
// far for an idle core while all were busy of late (SIS_UTIL), and takes a virtual one that sleeps for one that was
// preempted.
void Team::SpreadSleepers() {
  if (cores_.empty()) return;
  std::vector<int> taken = {sched_getcpu()};
  const auto is_taken = [&](int core) { return std::find(taken.begin(), taken.end(), core) != taken.end(); };
  const auto is_free = [&](int core) {
    return !is_taken(core) &&
           std::none_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.asleep_on == core; });
  };
  for (size_t i = 1; i < parts_.size(); ++i) {
    int core = parts_[i].asleep_on;
    if (core < 0) continue;
    if (is_taken(core)) {
      const auto other = std::find_if(cores_.begin(), cores_.end(), is_free);
      if (other == cores_.end()) return;
      core = *other;
    }
    MoveTo(helpers_[i - 1].native_handle(), {&core, 1});
    taken.push_back(core);
  }
}

void Team::Help(size_t member) {
  const auto wanted = [this] { return stop_.load() || IsOpen(); };
  auto last = std::chrono::steady_clock::now();
  while (!stop_.load()) {
    if (wanted()) {
      Work(member);
      last = std::chrono::steady_clock::now();
      continue;
    }
    if (std::chrono::steady_clock::now() - last < kPatience) {
      for (int i = 0; i < 16; ++i) Pause();
      continue;
    }
    std::unique_lock lock(sleep_mutex_);
    Part& own = parts_[member];
    ++sleepers_;
    while (!wanted()) {
      own.asleep_on = sched_getcpu();
      woken_.wait(lock);
      own.asleep_on = -1;
      if (!cores_.empty()) MoveTo(pthread_self(), cores_);
    }
    --sleepers_;
    last = std::chrono::steady_clock::now();
  }
}

}  // namespace hlorun::opencl
