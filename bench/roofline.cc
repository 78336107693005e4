// roofline: measures a device's cost table and prints its DeviceSpec as JSON (for --device_spec, and for cost models).
//
//   roofline [DEVICE]      DEVICE as hlorun's --device; under mpirun the collectives' cost is measured too
//
// What is measured: backends/opencl/tuning/roofline.h; and the cost of an all-reduce by size.
#include <chrono>
#include <cstdio>
#include <numeric>

#include "backends/collectives/job.h"
#include "backends/opencl/runtime/executable.h"
#include "backends/opencl/tuning/roofline.h"
#include "hlo/error.h"

namespace hlorun {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// Microseconds of an all-reduce of f32 over all devices, by bytes.
std::map<std::string, double> AllReduceCosts(collectives::Job& job) {
  std::vector<int64_t> group(static_cast<size_t>(job.device_count()));
  std::iota(group.begin(), group.end(), 0);
  std::map<std::string, double> costs;
  for (int64_t bytes = 1 << 10; bytes <= 1 << 26; bytes *= 16) {
    const auto times = job.OnEachLocalDevice<double>([&](int64_t, const auto& communicator) {
      std::vector<float> values(static_cast<size_t>(bytes) / 4, 1.0f);
      const auto in = std::as_bytes(std::span(values));
      return Seconds([&] {
        communicator->AllReduce(group, in, std::as_writable_bytes(std::span(values)),
                                {hlo::Opcode::kMaximum, hlo::ElementType::kF32, nullptr}, bytes);
      });
    });
    costs[fmt::format("all_reduce_{}_us", bytes)] = times.front() * 1e6;
  }
  return costs;
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  using namespace hlorun;  // NOLINT: a program's main file
  try {
    const auto job = collectives::Job::Start(1, 10);
    const auto device = opencl::FindDevice(argc > 1 ? argv[1] : "");
    DeviceSpec spec = device->spec();
    if (job->rank() == 0) spec = opencl::MeasureRoofline(opencl::OpenDevice(device, spec));
    job->CheckSame("measured", "the device");
    if (job->device_count() > 1) spec.cost_table.merge(AllReduceCosts(*job));
    if (job->rank() == 0) std::fputs(spec.ToJson().c_str(), stdout);
    return job->Finish(0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "roofline: %s\n", e.what());
    return 2;
  }
}
