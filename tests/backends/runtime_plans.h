// Plans made by hand for the runtime's tests, and the few lines that run them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/executable.h"
#include "backends/opencl/runtime/steps.h"
#include "gtest/gtest.h"
#include "hlo/error.h"
#include "hlo/reader.h"

namespace hlorun::opencl {

using passes::Allocation;
using Kind = Allocation::Kind;

inline hlo::Shape F32(int64_t n) { return hlo::Shape(hlo::ElementType::kF32, {n}); }

// Builds a plan allocation by allocation.
class PlanMaker {
 public:
  PlanMaker() { plan_.module_name = "hand_made"; }

  int32_t Parameter(int64_t floats, bool donated = false) {
    ArrayInfo info;
    info.name = "p" + std::to_string(plan_.parameters.size());
    info.shape = F32(floats);
    info.donated = donated;
    plan_.parameters.push_back(info);
    return Allocate(Kind::kArgument, static_cast<int64_t>(plan_.parameters.size()) - 1, floats * 4);
  }
  int32_t Result(int64_t floats, int64_t aliased_argument = -1) {
    const auto index = static_cast<int64_t>(plan_.results.size());
    const int32_t a = Allocate(Kind::kResult, index, floats * 4);
    plan_.allocations.back().aliased_argument = aliased_argument;
    ResultIn(a, floats);
    return a;
  }
  // A result that lies in an allocation that exists.
  void ResultIn(int32_t allocation, int64_t floats) {
    ArrayInfo info;
    info.name = std::to_string(plan_.results.size());
    info.shape = F32(floats);
    plan_.results.push_back(info);
    plan_.result_slices.push_back({allocation, 0, floats * 4});
  }
  int32_t Arena(int64_t bytes) { return Allocate(Kind::kArena, 0, bytes); }
  int32_t Constant(const std::vector<float>& values) {
    hlo::Literal literal(F32(static_cast<int64_t>(values.size())));
    std::copy(values.begin(), values.end(), literal.mutable_values<float>().begin());
    plan_.constants.push_back(literal);
    return Allocate(Kind::kConstant, static_cast<int64_t>(plan_.constants.size()) - 1, literal.ByteSize());
  }

  // `body` computes one element: x and y are pointers to element i of the two arguments; "*y = *x * *x;".
  int32_t Kernel2(const std::string& name, const std::string& body, int64_t groups) {
    const std::string source =
        "__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void " + name +
        "(__global const float* from, __global float* to) {\n"
        "  __global const float* x = from + get_group_id(0);\n  __global float* y = to + get_group_id(0);\n  " +
        body + "\n}\n";
    Grid grid;
    grid.groups[0] = groups;
    return WholeKernel(name, 2, source, grid);
  }
  int32_t WholeKernel(const std::string& name, int parameters, const std::string& source, const Grid& grid) {
    Kernel kernel;
    kernel.name = name;
    kernel.parameter_count = parameters;
    kernel.source = source;
    kernel.grids = {grid};
    plan_.kernels.push_back(kernel);
    return static_cast<int32_t>(plan_.kernels.size()) - 1;
  }
  Thunk Launch(int32_t kernel, Slice x, Slice y) {
    Thunk thunk;
    const Kernel& k = plan_.kernels[static_cast<size_t>(kernel)];
    thunk.work = LaunchThunk{kernel, k.grids[0], {x, y}, {false, true}};
    thunk.label = "launch." + k.name;
    return thunk;
  }
  static Slice Floats(int32_t allocation, int64_t count, int64_t offset = 0) {
    return {allocation, offset * 4, count * 4};
  }
  static Slice Bytes(int32_t allocation, int64_t offset, int64_t bytes) { return {allocation, offset, bytes}; }
  static Thunk Make(decltype(Thunk::work) work, const std::string& label) {
    Thunk thunk;
    thunk.work = std::move(work);
    thunk.label = label;
    return thunk;
  }
  static std::shared_ptr<Sequence> Seq(std::vector<Thunk> thunks) {
    return std::make_shared<Sequence>(Sequence{std::move(thunks)});
  }
  void Add(Thunk thunk) { plan_.entry.thunks.push_back(std::move(thunk)); }
  Plan Take() { return std::move(plan_); }
  Plan& plan() { return plan_; }

 private:
  int32_t Allocate(Kind kind, int64_t index, int64_t bytes) {
    Allocation allocation;
    allocation.kind = kind;
    allocation.index = index;
    allocation.bytes = bytes;
    plan_.allocations.push_back(allocation);
    return static_cast<int32_t>(plan_.allocations.size()) - 1;
  }
  Plan plan_;
};

// y = x * x over n floats.
inline Plan SquarePlan(int64_t n) {
  PlanMaker m;
  const int32_t x = m.Parameter(n), y = m.Result(n);
  const int32_t square = m.Kernel2("square", "*y = *x * *x;", n);
  m.Add(m.Launch(square, m.Floats(x, n), m.Floats(y, n)));
  return m.Take();
}

// What queues run, and no team.
inline void MakeForeign(Plan& plan) {
  for (Kernel& kernel : plan.kernels) kernel.source += "// barrier(";
}

// Labels of launches, those of a section in brackets, in it those of the second queue in front of a bar.
inline std::string TextOf(const StepSequence& steps) {
  constexpr size_t kLaunch = 7;  // "launch."
  std::string text;
  for (size_t i = 0; i < steps.size();) {
    const auto section = static_cast<size_t>(steps[i].section);
    text += section > 1 ? "[" : "";
    for (size_t j = 0; j < section; ++j) {
      if (j > 0) text += steps[i + j].aside == steps[i + j - 1].aside ? " " : " | ";
      text += steps[i + j].thunk->label.substr(kLaunch);
    }
    text += section > 1 ? "]" : " ";
    i += section;
  }
  return text;
}

// A folder of its own for caches and files, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hlorun-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One device with its context for all tests of a process. $HLORUN_TEST_DEVICE selects it; with $HLORUN_TEST_BUFFERS
// set, arrays are cl_mem objects even where plain pointers work; $HLORUN_TEST_SPEC names a DeviceSpec that takes more
// away.
inline const std::shared_ptr<DeviceContext>& TestContext() {
  static const std::shared_ptr<DeviceContext> context = [] {
    const char* selector = std::getenv("HLORUN_TEST_DEVICE");
    const auto device = FindDevice(selector != nullptr ? selector : "");
    DeviceSpec spec = device->spec();
    if (std::getenv("HLORUN_TEST_BUFFERS") != nullptr) spec.raw_pointers = false;
    if (const char* path = std::getenv("HLORUN_TEST_SPEC"))
      spec = DeviceSpec::FromJson(hlo::ReadFileOrStdin(path), spec);
    return OpenDevice(device, spec);
  }();
  return context;
}

// With the kernels that are in `cache`; by default, in one that this process keeps.
inline std::unique_ptr<Executable> Build(Plan plan, const std::string& cache, int64_t threads = 2) {
  BuildOptions options;
  options.threads = threads;
  options.cache_dir = cache;
  return BuildExecutable(std::move(plan), TestContext(), options);
}
inline std::unique_ptr<Executable> Build(Plan plan) {
  static const ScratchFolder cache;
  return Build(std::move(plan), cache.path());
}

inline DeviceArray Upload(const std::vector<float>& values) {
  const auto bytes = static_cast<int64_t>(values.size() * 4);
  DeviceArray array{F32(static_cast<int64_t>(values.size())), PoolOf(TestContext())->Allocate(bytes, "a test's input"),
                    nullptr};
  CopyToDevice(TestContext(), values.data(), array.memory, bytes);
  return array;
}

inline void Wait(const DeviceArray& array) {
  if (array.ready != nullptr) array.ready->Wait();
}

inline std::vector<float> Download(const DeviceArray& array) {
  Wait(array);
  std::vector<float> values(static_cast<size_t>(array.memory.bytes() / 4));
  CopyToHost(TestContext(), array.memory, values.data(), array.memory.bytes());
  return values;
}

// The first result for one argument.
inline std::vector<float> RunOne(Executable& executable, const std::vector<float>& x) {
  return Download(executable.Run({{Upload(x)}}, {}).at(0));
}

inline std::vector<float> Iota(int64_t n, float start = 0) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), start);
  return values;
}

}  // namespace hlorun::opencl
