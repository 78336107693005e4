// Which launches of a plan run beside others by a lane's second queue: found out in the first runs.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/runtime/cl.h"
#include "backends/opencl/runtime/steps.h"

namespace hlorun::opencl {

// How long a kernel of few work-groups takes no count of its operations tells. So the first run goes by one queue, and
// compiles and touches what it needs to; the second one times the launches of sections one by one; from what they took
// later ones part them between two queues (sections.h). Thread-safe: lanes ask independently.
class QueueSharing {
 public:
  // `launches`: how many are numbered in `steps`. `by_grid`: see PartSections.
  QueueSharing(const Plan& plan, StepSequence steps, size_t launches, bool by_grid);

  struct Turn {
    std::shared_ptr<const StepSequence> steps;
    // Where it is not empty, the run puts there, by number, what became of each launch of a section, and gives it back.
    std::vector<cl::Event> launched;
  };
  // `may_time`: not of a run whose steps are waited for one by one (a profile), which is not counted.
  Turn Next(bool may_time = true);
  // Of a run that has been enqueued. One that failed keeps what it has, and nothing is chosen.
  void GiveBack(std::vector<cl::Event> launched);

 private:
  // Once all that was launched is done.
  void Choose();

  const double meeting_;  // of two queues, microseconds
  const size_t launches_;
  const bool by_grid_;
  std::mutex mutex_;
  int runs_ = 0;
  // Those to run; and those with all sections, until it is chosen among them.
  std::shared_ptr<const StepSequence> steps_, sections_;
  std::vector<cl::Event> launched_;
};

}  // namespace hlorun::opencl
