// Ends the process when a call that cannot be interrupted takes too long.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "backends/collectives/mpi/node_siblings.h"

namespace hlorun::collectives {

// While it lives, `seconds` may pass, and no other rank of the node may be stopped for `heartbeat` seconds; then it
// prints what happened, calls `cleanup` and exits with 2. A heartbeat of 0: all is well for ever.
class Watchdog {
 public:
  struct Limits {
    double heartbeat = 0;
    double seconds = 0;
    // No rank leaves meanwhile, unless something is wrong: when the launcher ends the job, the rank that is gone is
    // named, which Open MPI does not always do. One such watchdog a process.
    bool all_stay = false;
  };
  // `doing`: "MPI does not start".
  Watchdog(Limits limits, std::string doing, void (*cleanup)() = nullptr);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch(Limits limits, const std::string& doing, void (*cleanup)());
  bool DoneAfter(double seconds);
  [[noreturn]] void LeaveAsTold(const NodeSiblings& siblings, void (*cleanup)());

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace hlorun::collectives
