// Which launches of a plan run beside others by a lane's second queue: found out in the first runs.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/runtime/cl.h"
#include "backends/opencl/runtime/steps.h"

namespace hlorun::opencl {

class Lane;

// How long a kernel of few work-groups takes no count of its operations tells. So the first run goes by one queue, and
// compiles and touches what it needs to; the second one in the same lane times the launches of sections, one by one, by
// a queue that keeps times; from what they took later runs part them between two queues (sections.h). Of what is
// launched in each trip of a loop the first counts, for trips behind a loop's end do nothing; what is not launched in
// that run (a branch not taken) takes no time, and stays. Thread-safe.
class QueueSharing {
 public:
  // `launches`: how many are numbered in `steps`. `by_grid`: see FormSectionsOfQueues.
  QueueSharing(const Plan& plan, StepSequence steps, size_t launches, bool by_grid);

  struct Turn {
    std::shared_ptr<const StepSequence> steps;
    // Where there is one, sections are launched into it, and the run puts there, by number, what became of them.
    cl::CommandQueue timing;
    std::vector<cl::Event> launched;
  };
  // For a run in `lane`. `may_time`: not of a run whose steps are waited for one by one (a profile), which is not
  // counted.
  Turn Next(const Lane& lane, bool may_time = true);
  // Of a turn that timed, once the run has been enqueued. One that failed keeps what it has, and nothing is chosen.
  void GiveBack(Turn turn);

 private:
  // Once all that was launched is done.
  void Choose();

  const double meeting_;  // of two queues, microseconds
  const size_t launches_;
  std::mutex mutex_;
  const Lane* lane_ = nullptr;  // the first that came, whose runs count
  int runs_ = 0;
  // Those to run; and those with all sections, until it is chosen among them.
  std::shared_ptr<const StepSequence> steps_, sections_;
  Turn timed_;
};

}  // namespace hlorun::opencl
