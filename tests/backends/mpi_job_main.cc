// Run under mpirun by ctest: the job's collectives over MPI, several devices a rank, and how jobs end.
//   mpi_job_main DEVICES_PER_RANK [fail|stop|kill]
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

#include "backends/collectives/job.h"
#include "hlo/error.h"

namespace {

using namespace hlorun;  // NOLINT: a test's main file
using collectives::Job;

void Expect(bool holds, const char* what) {
  if (!holds) Fail(ErrorCode::kInternal, "{} is wrong", what);
}

int64_t SumOverDevices(Job& job) {
  const int64_t n = job.device_count();
  std::vector<int64_t> group(static_cast<size_t>(n));
  std::iota(group.begin(), group.end(), 0);
  const auto sums = job.OnEachLocalDevice<int64_t>([&](int64_t, const auto& communicator) {
    const int64_t device = communicator->device();
    std::vector<int64_t> values(3000, device), all(static_cast<size_t>(n));
    communicator->AllReduce(group, std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(values)),
                            {hlo::Opcode::kAdd, hlo::ElementType::kS64, nullptr}, 0);
    communicator->AllGather(group, std::as_bytes(std::span(&device, 1)), std::as_writable_bytes(std::span(all)), 1);
    Expect(all == group, "all-gather");
    std::vector<std::pair<int64_t, int64_t>> ring;
    for (int64_t d = 0; d < n; ++d) ring.emplace_back(d, (d + 1) % n);
    int64_t from = -1;
    communicator->Permute(ring, std::as_bytes(std::span(&device, 1)), std::as_writable_bytes(std::span(&from, 1)), 2);
    Expect(from == (device + n - 1) % n, "permute");
    return values[2999];
  });
  return sums.front();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[2] : "";
  const std::shared_ptr<Job> job = Job::Start(argc > 1 ? std::atoi(argv[1]) : 1, 3);
  try {
    const bool last = job->rank() == job->rank_count() - 1;
    if (last && mode == "fail") Invalid("the last rank fails on purpose");
    if (last && mode == "stop") raise(SIGSTOP);
    if (last && mode == "kill") raise(SIGKILL);
    Expect(job->BroadcastFromFirst([] { return std::string("from rank 0"); }) == "from rank 0", "broadcast");
    job->CheckSame("same", "the module");
    const int64_t n = job->device_count();
    Expect(SumOverDevices(*job) == n * (n - 1) / 2, "all-reduce");
    if (mode == "differ") job->CheckSame("name m\nbytes " + std::to_string(job->rank()), "the module");
    if (job->rank() == 0) std::printf("%d devices agree\n", static_cast<int>(n));
    return job->Finish(0);
  } catch (const Error& e) {
    job->Abort(e);
  }
}
