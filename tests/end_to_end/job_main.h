// What programs that several ranks run have in common: their job, and how errors end them.
#pragma once

#include <functional>
#include <memory>

#include "backends/collectives/job.h"

namespace hlorun::testing_support {

// Places the process, starts its job and runs `body`, whose Error ends the job on all ranks. Returns the job's exit
// code.
int RunInJob(int64_t devices_per_rank, const std::function<int(const std::shared_ptr<collectives::Job>&)>& body);

// What `run` returns; 2 after an Error, which is printed.
int ExitCodeOf(const std::function<int()>& run);

}  // namespace hlorun::testing_support
