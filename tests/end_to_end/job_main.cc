#include "tests/end_to_end/job_main.h"

#include <cstdio>

#include "backends/topology/placement.h"

namespace hlorun::testing_support {

int RunInJob(int64_t devices_per_rank, const std::function<int(const std::shared_ptr<collectives::Job>&)>& body) {
  topology::PlaceProcess();
  constexpr double kHeartbeat = 20;
  const auto job = collectives::Job::Start(devices_per_rank, kHeartbeat);
  int exit_code = 0;
  try {
    exit_code = body(job);
  } catch (const Error& e) {
    job->Abort(e);
  }
  return job->Finish(exit_code);
}

int ExitCodeOf(const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

}  // namespace hlorun::testing_support
