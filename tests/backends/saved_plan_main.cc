// Saves a plan of N kernels in one process and runs it in another:
//   saved_plan_main build FILE CACHE N     builds (from the cache folder where it can), runs, saves
//   saved_plan_main run FILE               loads and runs; fails unless nothing was compiled
// Prints what each took.
#include <chrono>
#include <cstdio>

#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

using Clock = std::chrono::steady_clock;

double Ms(Clock::time_point since) { return std::chrono::duration<double, std::milli>(Clock::now() - since).count(); }

constexpr int64_t kFloats = 4096;

// Each kernel: a loop of ten lines or so over 16 blocks of 256.
Plan ManyKernels(int count) {
  PlanMaker m;
  const int32_t x = m.Parameter(kFloats), y = m.Result(kFloats);
  for (int i = 0; i < count; ++i) {
    const std::string body =
        "x += 255 * get_group_id(0); y += 255 * get_group_id(0);\n  for (int i = 0; i < 256; ++i) {\n"
        "    float v = x[i] * " +
        std::to_string(i + 1) +
        ".0f;\n    float w = exp(-v * v);\n"
        "    if (w > 0.5f) w = tanh(v) + " +
        std::to_string(i) + ";\n    y[i] = w;\n  }";
    m.Add(
        m.Launch(m.Kernel2("k" + std::to_string(i), body, kFloats / 256), m.Floats(x, kFloats), m.Floats(y, kFloats)));
  }
  return m.Take();
}

int RunTwice(Executable& executable, Clock::time_point start, const char* what) {
  const double build = Ms(start);
  const DeviceArray x = Upload(Iota(kFloats));
  double first = 0, best = 1e9;
  std::vector<float> y;
  for (int i = 0; i < 20; ++i) {
    const auto begin = Clock::now();
    auto results = executable.Run({{x}}, {});
    Wait(results[0]);
    if (i == 0) first = Ms(begin);
    best = std::min(best, Ms(begin));
    if (i == 19) y = Download(results[0]);
  }
  const CompileStatistics& s = executable.statistics();
  std::printf("%s: %.0f ms for %lld kernels in %lld programs, %lld compiled; first run %.2f ms, best %.3f ms\n", what,
              build, static_cast<long long>(s.kernels), static_cast<long long>(s.programs),
              static_cast<long long>(s.kernels_compiled), first, best);
  const float expected = static_cast<float>(s.kernels) - 1;  // at x = 0: tanh(0) + i
  if (y[0] != expected) {
    std::printf("wrong: %g, expected %g\n", y[0], expected);
    return 1;
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  TestContext();
  const auto start = Clock::now();
  if (mode == "build" && argc == 5) {
    BuildOptions options;
    options.cache_dir = argv[3];
    const auto executable = BuildExecutable(ManyKernels(std::atoi(argv[4])), TestContext(), options);
    const int status = RunTwice(*executable, start, "built");
    SavePlan(executable->Save(), argv[2]);
    return status;
  }
  if (mode == "run" && argc == 3) {
    const auto executable = BuildExecutable(LoadPlan(argv[2]), TestContext(), {});
    if (executable->statistics().kernels_compiled != 0) return 1;
    return RunTwice(*executable, start, "loaded");
  }
  return 2;
}

}  // namespace
}  // namespace hlorun::opencl

int main(int argc, char** argv) { return hlorun::opencl::Main(argc, argv); }
