// The other processes of this job on this node, seen from outside: whether one of them was stopped. MPI's messages tell
// of a rank only between its start and its end; this tells before and after.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace hlorun::collectives {

// One thread's. Where /proc is missing, or a wrapper stands between the launcher and its ranks, nobody is seen.
class NodeSiblings {
 public:
  NodeSiblings();

  struct Stopped {
    int rank = 0;
    pid_t process = 0;
    double seconds = 0;
  };
  // The lowest rank that has been stopped at each look for longer than `seconds`. What happened while this process was
  // stopped itself does not count.
  std::optional<Stopped> Look(double seconds);
  // The rank that was there at an earlier Look(), or that the launcher has on this node, and is gone; -1: none, or
  // several.
  int Missing() const;
  // Whether a sibling of a higher rank is still there.
  bool HigherRanksLive() const;
  // How many siblings have a lower rank and run: their word comes first.
  int LowerRanksRunning() const;

 private:
  struct Sibling {
    pid_t process = 0;
    int rank = 0;
    char state = 0;  // as in /proc: R, S, T, Z ...
  };
  std::vector<Sibling> Siblings() const;

  using Clock = std::chrono::steady_clock;
  pid_t launcher_;
  std::string rank_variable_, job_variable_, job_;
  int rank_ = 0;
  Clock::time_point last_look_;
  std::unordered_map<pid_t, Clock::time_point> stopped_since_;
  std::set<int> expected_;  // ranks
};

}  // namespace hlorun::collectives
