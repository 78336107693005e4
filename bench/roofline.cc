// roofline: measures a device's cost table and prints its DeviceSpec as JSON (for --device_spec, and for cost models).
//
//   roofline [DEVICE]      DEVICE as hlorun's --device; under mpirun the collectives' cost is measured too
//
// Measured: multiply-add peak for f32 and f64, copy bandwidth in L1, L2, L3 and memory, the cost of a launch (queued,
// and run to finish), and of an all-reduce by size. Best of several repetitions: a cost table describes an undisturbed
// machine.
#include <chrono>
#include <cstdio>
#include <numeric>

#include "backends/collectives/job.h"
#include "backends/opencl/kernels/register_tile.h"
#include "backends/opencl/runtime/cl.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/error.h"

namespace hlorun {
namespace {

using Clock = std::chrono::steady_clock;

// Multiply-add chains of whole registers, enough of them to hide the unit's latency; `rounds` keeps the compiler from
// folding them.
constexpr const char* kSource = R"(
#define PEAK(name, type)                                                             \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1), min_vector_width(512)))     \
  void name(__global type* out, int rounds) {                                        \
    type a[12];                                                                      \
    for (int i = 0; i < 12; ++i) a[i] = (type)(i + 1);                               \
    type x = (type)(0.999f), y = (type)(rounds * 1e-9f);                             \
    for (int r = 0; r < rounds; ++r) {                                               \
      _Pragma("unroll") for (int i = 0; i < 12; ++i) a[i] = fma(a[i], x, y);         \
    }                                                                                \
    type s = a[0];                                                                   \
    for (int i = 1; i < 12; ++i) s += a[i];                                          \
    out[get_group_id(0)] = s;                                                        \
  }
#define JOIN(type, lanes) type##lanes
#define VECTOR(type, lanes) JOIN(type, lanes)
PEAK(peak_f32, VECTOR(float, F32_LANES))
#ifdef cl_khr_fp64
PEAK(peak_f64, VECTOR(double, F64_LANES))
#endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1), min_vector_width(512)))
void copy(__global const float16* from, __global float16* to, ulong vectors, int rounds) {
  ulong begin = get_group_id(0) * vectors;
  for (int r = 0; r < rounds; ++r)
    for (ulong i = begin; i < begin + vectors; ++i) to[i] = from[i];
}
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void nothing(__global float* x) { x[0] += 1; }
)";

double Seconds(const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

class Roofline {
 public:
  explicit Roofline(const opencl::Device& device)
      : spec_(device.spec()),
        context_(device.device()),
        queue_(context_, device.device()),
        program_(context_, kSource) {
    program_.build(fmt::format("-cl-std=CL1.2 -cl-mad-enable -w -DF32_LANES={} -DF64_LANES={}",
                               Lanes(hlo::ElementType::kF32), Lanes(hlo::ElementType::kF64))
                       .c_str());
    units_ = static_cast<size_t>(spec_.compute_units);
  }

  DeviceSpec Measure() {
    spec_.f32_gflops = Peak("peak_f32", Lanes(hlo::ElementType::kF32));
    if (spec_.has_f64) spec_.cost_table["f64_gflops"] = Peak("peak_f64", Lanes(hlo::ElementType::kF64));
    spec_.cost_table["l1_gbps"] = Bandwidth(spec_.l1_bytes / 2);
    spec_.cost_table["l2_gbps"] = Bandwidth(spec_.l2_bytes / 2);
    spec_.cost_table["l3_gbps"] = Bandwidth(spec_.l3_bytes / 2 / spec_.compute_units);
    spec_.bandwidth_gbps = Bandwidth(int64_t{256} << 20);
    MeasureLaunch();
    return spec_;
  }

 private:
  // Of a register, at least the smallest vector's.
  int64_t Lanes(hlo::ElementType type) const { return std::max<int64_t>(2, opencl::RegisterLanes(spec_, type)); }

  double Peak(const char* name, int64_t lanes) {
    constexpr int kRounds = 2'000'000;
    cl::Kernel kernel(program_, name);
    const cl::Buffer out(context_, CL_MEM_READ_WRITE, units_ * 128);
    kernel.setArg(0, out);
    kernel.setArg(1, kRounds);
    const double seconds = Seconds([&] { Launch(kernel, units_); });
    return static_cast<double>(units_) * 2.0 * 12 * static_cast<double>(lanes) * kRounds / seconds / 1e9;
  }

  // Read plus written bytes a second, each core copying its own `bytes` (half read, half written).
  double Bandwidth(int64_t bytes) {
    const auto half = std::max<size_t>(static_cast<size_t>(bytes) / 2 / 64, 16);
    const int rounds = static_cast<int>(std::max<size_t>(1, (size_t{64} << 20) / (half * 64)));
    cl::Kernel kernel(program_, "copy");
    const cl::Buffer from(context_, CL_MEM_READ_WRITE, units_ * half * 64);
    const cl::Buffer to(context_, CL_MEM_READ_WRITE, units_ * half * 64);
    queue_.enqueueFillBuffer(from, 0.0f, 0, units_ * half * 64);
    kernel.setArg(0, from);
    kernel.setArg(1, to);
    kernel.setArg(2, static_cast<cl_ulong>(half));
    kernel.setArg(3, rounds);
    Launch(kernel, units_);
    const double seconds = Seconds([&] { Launch(kernel, units_); });
    return static_cast<double>(units_ * half) * 128.0 * rounds / seconds / 1e9;
  }

  void MeasureLaunch() {
    constexpr int kLaunches = 200;
    cl::Kernel kernel(program_, "nothing");
    const cl::Buffer x(context_, CL_MEM_READ_WRITE, 64);
    kernel.setArg(0, x);
    Launch(kernel, 1);
    const double queued = Seconds([&] {
      for (int i = 0; i < kLaunches; ++i)
        queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NDRange(1));
      queue_.finish();
    });
    spec_.launch_us = queued / kLaunches * 1e6;
    spec_.cost_table["launch_and_finish_us"] = Seconds([&] {
                                                 for (int i = 0; i < kLaunches; ++i) Launch(kernel, 1);
                                               }) /
                                               kLaunches * 1e6;
  }

  void Launch(cl::Kernel& kernel, size_t groups) {
    queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(groups), cl::NDRange(1));
    queue_.finish();
  }

  DeviceSpec spec_;
  cl::Context context_;
  cl::CommandQueue queue_;
  cl::Program program_;
  size_t units_ = 1;
};

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
    DeviceSpec spec = job->rank() == 0 ? Roofline(*device).Measure() : device->spec();
    job->CheckSame("measured", "the device");
    if (job->device_count() > 1) spec.cost_table.merge(AllReduceCosts(*job));
    if (job->rank() == 0) std::fputs(spec.ToJson().c_str(), stdout);
    return job->Finish(0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "roofline: %s\n", e.what());
    return 2;
  }
}
