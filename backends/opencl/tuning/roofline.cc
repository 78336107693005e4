#include "backends/opencl/tuning/roofline.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/program_build.h"
#include "backends/opencl/runtime/queue_order.h"
#include "backends/opencl/runtime/run_context.h"
#include "backends/opencl/runtime/team.h"
#include "backends/opencl/tuning/peak_kernels.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using Clock = std::chrono::steady_clock;

// Vectors of 64 bytes. On a CPU an item walks through a piece of its own, on a GPU neighbours read side by side. Four
// sums, for an addition's latency is longer than a load from the first cache takes.
constexpr const char* kMemorySource = R"(
__kernel ONE_ITEM void copy(__global const uint16* from, __global uint16* to, ulong vectors, int rounds) {
  const size_t id = get_global_id(0);
  const size_t first = SIDE_BY_SIDE ? id : id * vectors, step = SIDE_BY_SIDE ? get_global_size(0) : 1;
  for (int r = 0; r < rounds; ++r)
    for (size_t i = 0, at = first; i < vectors; ++i, at += step) to[at] = from[at];
}
__kernel ONE_ITEM void read(__global const uint16* from, __global uint16* to, ulong vectors, int rounds) {
  const size_t id = get_global_id(0);
  const size_t first = SIDE_BY_SIDE ? id : id * vectors, step = SIDE_BY_SIDE ? get_global_size(0) : 1;
  uint16 a = 0, b = 0, c = 0, d = 0;
  for (int r = 0; r < rounds; ++r)
    for (size_t i = 0, at = first; i < vectors; i += 4, at += 4 * step) {
      a += from[at];
      b += from[at + step];
      c += from[at + 2 * step];
      d += from[at + 3 * step];
    }
  to[first] = a + b + c + d;
}
)";
constexpr size_t kVector = 64, kTurn = 4;

constexpr const char* kNothing = R"(#ifndef ONE_ITEM
#define ONE_ITEM
#endif
__kernel ONE_ITEM void nothing(__global float* x) { x[0] += 1.0f; }
)";

constexpr int64_t kPeakRounds = 1 << 20;
constexpr int kLaunches = 200;

double SecondsOf(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The least of some runs: no fewer than kLeastRuns, more while they are short.
double BestSeconds(const std::function<void()>& work) {
  constexpr int kLeastRuns = 4, kMostRuns = 20;
  constexpr double kEnough = 0.05;
  double best = 1e30, spent = 0;
  for (int i = 0; i < kMostRuns && (i < kLeastRuns || spent < kEnough); ++i) {
    const double seconds = SecondsOf(work);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

class Roofline {
 public:
  explicit Roofline(DeviceContext& context)
      : context_(context),
        spec_(context.spec()),
        // A spec may say that a CPU is to be treated as a GPU; what it can reach stays the same.
        is_gpu_(context.device().spec().device_class == DeviceClass::kGpu),
        queue_(context.context(), context.device().device()),
        second_(context.context(), context.device().device()) {
    if (is_gpu_) items_ = std::min<size_t>(256, static_cast<size_t>(std::max<int64_t>(1, spec_.max_work_group_size)));
    groups_ = static_cast<size_t>(spec_.compute_units) * (is_gpu_ ? 8 : 1);
    options_ = fmt::format("{} -cl-mad-enable -DSIDE_BY_SIDE={}", context.build_options(), is_gpu_ ? 1 : 0);
    options_ += is_gpu_ ? " -DONE_ITEM=" : " -DONE_ITEM=__attribute__((reqd_work_group_size(1,1,1)))";
    MakePeaks();
    MakeMemory();
    MakeLaunches();
  }

  DeviceSpec Measure() {
    // Twice, and the better counts, for what else the machine does comes and goes.
    for (int i = 0; i < 2; ++i) {
      MeasurePeaks();
      MeasureMemory();
      MeasureLaunches();
    }
    DeviceSpec spec = spec_;
    for (const auto& [cost, value] : costs_) spec.SetCost(cost, value);
    return spec;
  }

 private:
  struct PeakMeasurement {
    const char* cost;
    double operations;
    cl::Kernel kernel;
  };
  // The arrays of all cores together are half of what the level holds.
  struct Level {
    const char *copy, *read;
    int64_t bytes;
  };

  cl::Program Build(const DeviceContext& context, const std::string& source) const {
    cl::Program program(context.context(), source);
    try {
      program.build(context.device().device(), options_.c_str());
    } catch (const cl::Error&) {
      Fail(ErrorCode::kInternal, "{} refuses a kernel that measures it: {}", spec_.name,
           program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(context.device().device()));
    }
    return program;
  }

  void MakePeaks() {
    DeviceSpec device = spec_;
    device.device_class = is_gpu_ ? DeviceClass::kGpu : DeviceClass::kCpu;
    std::vector<PeakKernel> kernels;
    for (const Peak& peak : Peaks()) {
      if (!peak.is_there(device)) continue;
      kernels.push_back(peak.make(device, fmt::format("peak_{}", peaks_.size()), kPeakRounds));
      peaks_.push_back({peak.cost, kernels.back().operations, {}});
    }
    const cl::Program program = Build(context_, ProgramOf(kernels));
    std::vector<float> halves(groups_ * kPeakStride, 0.5f);
    const size_t bytes = halves.size() * sizeof(float);
    halves_ = cl::Buffer(context_.context(), CL_MEM_COPY_HOST_PTR, bytes, halves.data());
    sums_ = cl::Buffer(context_.context(), CL_MEM_READ_WRITE, bytes);
    for (size_t i = 0; i < peaks_.size(); ++i) {
      cl::Kernel& kernel = peaks_[i].kernel;
      kernel = cl::Kernel(program, fmt::format("peak_{}", i).c_str());
      kernel.setArg(0, halves_);
      kernel.setArg(1, sums_);
      Launch(kernel);  // compiled for this grid
    }
  }

  void MeasurePeaks() {
    for (const PeakMeasurement& peak : peaks_) {
      const double seconds = BestSeconds([&] { Launch(peak.kernel); });
      AtLeast(peak.cost, static_cast<double>(groups_ * items_) * peak.operations / seconds * 1e-9);
    }
  }

  void MakeMemory() {
    const cl::Program program = Build(context_, kMemorySource);
    copy_ = cl::Kernel(program, "copy");
    read_ = cl::Kernel(program, "read");
    const int64_t units = spec_.compute_units, l3 = std::max<int64_t>(spec_.l3_bytes, spec_.l2_bytes);
    // All items take a turn of each loop; what is smaller than that cannot be measured.
    const auto least = static_cast<int64_t>(groups_ * items_ * kTurn * kVector);
    // Each array of the last level is four times what the caches hold.
    const int64_t memory = std::max(16 * least, std::clamp<int64_t>(8 * l3, int64_t{64} << 20, int64_t{1} << 30));
    const auto array = [&] {
      cl::Buffer buffer(context_.context(), CL_MEM_READ_WRITE, static_cast<size_t>(memory) / 2);
      queue_.enqueueFillBuffer(buffer, cl_uint{1}, 0, static_cast<size_t>(memory) / 2);
      return buffer;
    };
    from_ = array();
    to_ = array();
    const Level levels[] = {{"l1_gbps", "l1_read_gbps", spec_.l1_bytes * units / 2},
                            {"l2_gbps", "l2_read_gbps", spec_.l2_bytes * (is_gpu_ ? 1 : units) / 2},
                            {"l3_gbps", "l3_read_gbps", spec_.l3_bytes / 2},
                            {"bandwidth_gbps", "memory_read_gbps", memory}};
    for (const Level& level : levels) {
      if (level.bytes / 2 >= least) levels_.push_back(level);
    }
  }

  void MeasureMemory() {
    for (const Level& level : levels_) {
      AtLeast(level.copy, Bandwidth(copy_, level.bytes / 2, 2));
      AtLeast(level.read, Bandwidth(read_, level.bytes / 2, 1));
    }
  }

  // GB a second of `kernel`, which touches `bytes` of each of its `arrays`.
  double Bandwidth(cl::Kernel& kernel, int64_t bytes, int arrays) {
    constexpr double kLongEnough = 0.004;  // beside which a launch is nothing
    const size_t all = groups_ * items_;
    const size_t vectors = static_cast<size_t>(bytes) / kVector / all / kTurn * kTurn;
    kernel.setArg(0, from_);
    kernel.setArg(1, to_);
    kernel.setArg(2, static_cast<cl_ulong>(vectors));
    int rounds = 1;
    const auto run = [&] {
      kernel.setArg(3, rounds);
      Launch(kernel);
    };
    run();  // compiled for this grid, and the caches are full
    for (double seconds = SecondsOf(run); seconds < kLongEnough && rounds < 1 << 20; seconds = SecondsOf(run))
      rounds *= seconds * 8 < kLongEnough ? 8 : 2;
    const double moved = static_cast<double>(all * vectors * kVector) * arrays * rounds;
    return moved / BestSeconds(run) * 1e-9;
  }

  void MakeLaunches() {
    nothing_ = cl::Kernel(Build(context_, kNothing), "nothing");
    nothing_.setArg(0, to_);
    team_ = context_.team_context();
    if (team_ == nullptr) return;
    // One member alone, as launches of little work are.
    Plan plan;
    Kernel& kernel = plan.kernels.emplace_back();
    kernel.name = "nothing";
    kernel.source = kNothing;
    kernel.parameter_count = 1;
    kernel.grids = {Grid{}};
    team_programs_ = BuildPrograms(plan, *team_, {});
    by_team_ = MakeTeamLaunch(plan, team_programs_, 0, Grid{}, 1);
    by_team_.members[0].table.SetArray(0, &one_);
  }

  void MeasureLaunches() {
    const auto enqueue = [&] { queue_.enqueueNDRangeKernel(nothing_, cl::NullRange, cl::NDRange(1), cl::NDRange(1)); };
    const auto enqueue_and_finish = [&] {
      enqueue();
      queue_.finish();
    };
    AtMost("launch_us", MicrosecondsOf(enqueue));
    AtMost("launch_and_finish_us", MicrosecondsOf(enqueue_and_finish));
    const auto meet = [&] {
      BeginBehind(second_(), MarkEnd(queue_()));
      BeginBehind(queue_(), MarkEnd(second_()));
    };
    AtMost("queues_meet_us", MicrosecondsOf(meet));
    if (team_ == nullptr) return;
    TeamLaunch* const nothing = &by_team_;
    AtMost("launch_by_team_us", MicrosecondsOf([&] { team_->team()->Run({&nothing, 1}, /*share=*/1); }));
  }

  // Of one of many launches, one after the other.
  double MicrosecondsOf(const std::function<void()>& launch) {
    const auto all = [&] {
      for (int i = 0; i < kLaunches; ++i) launch();
      queue_.finish();
    };
    all();
    return BestSeconds(all) / kLaunches * 1e6;
  }

  void Launch(const cl::Kernel& kernel) {
    queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(groups_ * items_), cl::NDRange(items_));
    queue_.finish();
  }

  void AtLeast(const char* cost, double value) { costs_[cost] = std::max(costs_[cost], value); }
  void AtMost(const char* cost, double value) {
    const auto [known, is_new] = costs_.try_emplace(cost, value);
    if (!is_new) known->second = std::min(known->second, value);
  }

  DeviceContext& context_;
  const DeviceSpec spec_;
  const bool is_gpu_;
  cl::CommandQueue queue_, second_;
  std::string options_;
  size_t groups_ = 1, items_ = 1;  // of a launch that keeps all cores busy
  std::vector<PeakMeasurement> peaks_;
  std::vector<Level> levels_;
  cl::Kernel copy_, read_, nothing_;
  cl::Buffer from_, to_, halves_, sums_;  // kernels do not keep what they are given
  float one_ = 0;
  DeviceContext* team_ = nullptr;  // null: the platform has no device for it
  ProgramSet team_programs_;
  TeamLaunch by_team_;
  std::map<std::string, double> costs_;
};

}  // namespace

DeviceSpec MeasureRoofline(const std::shared_ptr<DeviceContext>& context) {
  try {
    return Roofline(*context).Measure();
  } catch (const cl::Error& e) {
    FailCl(e.err(), "measuring " + context->spec().name);
  }
}

}  // namespace hlorun::opencl
