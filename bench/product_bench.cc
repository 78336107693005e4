// GFLOP/s of the product kernels, beside the multiply-add peak of the same run.
//
//   product_bench [--device_spec=FILE] [m,k,n[,batch[,forms[,type]]]] ...
//                 [conv:images,size,channels,features,window,stride,low,high] ...
//
// --device_spec: what FILE says goes before what is found, tests/device_specs/no_tiles.json for one.
// forms: "t" for transposed, "n" for plain, of lhs and rhs ("nt"). type: of operands; s8 is summed in s32.
#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "backends/opencl/kernels/convolution.h"
#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/runtime/host_cpu.h"
#include "backends/opencl/runtime/quirks.h"
#include "backends/opencl/tuning/peak_kernels.h"
#include "hlo/module.h"
#include "hlo/reader.h"
#include "hlo/text/parser.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {
namespace {

struct Timing {
  double wall = 1e9, cpu = 1e9;  // seconds
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The least of several runs. Processor time says what a kernel is worth where the machine is shared.
template <typename Run>
Timing Best(const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();
  Timing best;
  double spent = 0;
  for (int i = 0; i < 200 && spent < 0.4; ++i) {
    const auto start = Clock::now();
    const double cpu = CpuSeconds();
    run();
    best.cpu = std::min(best.cpu, CpuSeconds() - cpu);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best.wall = std::min(best.wall, seconds);
    spent += seconds;
  }
  return best;
}

// What is measured: a module whose root is a dot or a convolution, and the multiply-adds that it stands for.
struct Work {
  std::string label;
  std::unique_ptr<hlo::Module> module;
  double multiply_adds = 0;
};

void CheckRead(bool whole, const std::string& text, const char* wanted) {
  if (!whole) Invalid("'{}': wanted {}", text, wanted);
}

// "m,k,n[,batch[,forms[,type]]]"
Work ParseProduct(const std::string& text) {
  int64_t m = 1, k = 1, n = 1, batch = 0;
  char forms[3] = "nn", type[8] = "f32";
  int end = 0;
  const int found = std::sscanf(text.c_str(), "%ld,%ld,%ld%n,%ld%n,%2[nt]%n,%7s%n", &m, &k, &n, &end, &batch, &end,
                                forms, &end, type, &end);
  CheckRead(found >= 3 && static_cast<size_t>(end) == text.size(), text, "m,k,n[,batch[,forms[,type]]]");
  const std::string operand = type, result = operand == "s8" ? "s32" : operand;
  const std::string b = batch > 0 ? fmt::format("{},", batch) : "";
  const int64_t first = batch > 0 ? 1 : 0;
  const bool lhs_t = forms[0] == 't', rhs_t = forms[1] == 't';
  const std::string lhs =
      lhs_t ? fmt::format("{}[{}{},{}]", operand, b, k, m) : fmt::format("{}[{}{},{}]", operand, b, m, k);
  const std::string rhs =
      rhs_t ? fmt::format("{}[{}{},{}]", operand, b, n, k) : fmt::format("{}[{}{},{}]", operand, b, k, n);
  const std::string batches = batch > 0 ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "";
  Work work;
  work.label = fmt::format("{} x {} x {} batch {} {} {}", m, k, n, batch, forms, operand);
  work.module = hlo::ParseModule(fmt::format(
      "HloModule m\nENTRY main {{\n  x = {} parameter(0)\n  y = {} parameter(1)\n  ROOT out = {}[{}{},{}] dot(x, y), {}"
      "lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}\n}}\n",
      lhs, rhs, result, b, m, n, batches, first + (lhs_t ? 0 : 1), first + (rhs_t ? 1 : 0)));
  work.multiply_adds = static_cast<double>(m * k * n * std::max<int64_t>(batch, 1));
  return work;
}

// "conv:images,size,channels,features,window,stride,low,high"
Work ParseConvolution(const std::string& text) {
  int64_t n = 1, size = 1, c = 1, o = 1, window = 1, stride = 1, low = 0, high = 0;
  int end = 0;
  const int found = std::sscanf(text.c_str(), "conv:%ld,%ld,%ld,%ld,%ld,%ld,%ld,%ld%n", &n, &size, &c, &o, &window,
                                &stride, &low, &high, &end);
  CheckRead(found == 8 && static_cast<size_t>(end) == text.size(), text,
            "conv:images,size,channels,features,window,stride,low,high");
  const int64_t out = (size + low + high - window) / stride + 1;
  Work work;
  work.label = fmt::format("conv {}x{}x{}x{} {}x{}/{} -> {}", n, size, size, c, window, window, stride, o);
  work.module = hlo::ParseModule(fmt::format(
      "HloModule m\nENTRY main {{\n  x = f32[{0},{1},{1},{2}] parameter(0)\n  w = f32[{3},{3},{2},{4}] parameter(1)\n"
      "  ROOT out = f32[{0},{5},{5},{4}] convolution(x, w), window={{size={3}x{3} stride={6}x{6} pad={7}_{8}x{7}_{8}}}, "
      "dim_labels=b01f_01io->b01f\n}}\n",
      n, size, c, window, o, out, stride, low, high));
  work.multiply_adds = static_cast<double>(n * out * out * o * c * window * window);
  return work;
}

// An array of 0.5 as the runtime's are: at the start of a page.
class Block {
 public:
  explicit Block(int64_t bytes) : storage_(static_cast<size_t>(bytes) / 4 + kPage, 0.5f) {}
  void* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return reinterpret_cast<std::byte*>(storage_.data()) + (kPage - address % kPage) % kPage;
  }

 private:
  static constexpr size_t kPage = 4096;
  std::vector<float> storage_;
};

// Multiply-add peak, GFLOP per second of one core's processor time.
double PeakOfACore(LaunchRunner& runner, const DeviceSpec& device) {
  constexpr int64_t kRounds = 200000;
  const PeakKernel peak = PeakOf(kF32Peak).make(device, kKernelName, kRounds);
  EmittedLaunch launch;
  launch.source = ProgramOf({&peak, 1});
  launch.grid.groups[0] = device.compute_units;
  launch.arguments = {{.kind = ArgumentRef::Kind::kOperand}, {.kind = ArgumentRef::Kind::kResult, .written = true}};
  const int64_t bytes = device.compute_units * kPeakStride * 4;
  Block x(bytes), out(bytes);
  const Timing time = Best([&] { runner.Run({launch}, {x.data()}, {out.data()}, nullptr); });
  return static_cast<double>(device.compute_units) * peak.operations / time.cpu * 1e-9;
}

void Report(LaunchRunner& runner, const DeviceSpec& device, const Work& work, double peak) {
  const hlo::Instruction& root = *work.module->entry()->root();
  const CompileOptions options;
  const EmitContext context{device, options};
  const bool is_dot = root.Is(hlo::Opcode::kDot);
  const auto launches = is_dot ? EmitDot(root, {-1}, context) : EmitConvolution(root, {-1}, context);
  if (!launches) return void(fmt::print("{}: no kernel\n", work.label));
  Block x(root.operand(0)->shape().ByteSize()), y(root.operand(1)->shape().ByteSize()), out(root.shape().ByteSize());
  Block scratch(is_dot ? DotScratchBytes(root, context) : ConvolutionScratchBytes(root, context));
  const auto run = [&](const std::vector<EmittedLaunch>& what) {
    runner.Run(what, {x.data(), y.data()}, {out.data()}, scratch.data());
  };
  const auto start = std::chrono::steady_clock::now();
  run(*launches);
  const double first = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Timing time = Best([&] { run(*launches); });
  std::string parts;
  if (launches->size() > 1) {
    for (const EmittedLaunch& launch : *launches)
      parts += fmt::format(" {:.3f}", Best([&] { run({launch}); }).cpu * 1e3);
  }
  const double gflop = 2.0 * work.multiply_adds * 1e-9;
  fmt::print("{:<40} wall {:>8.3f} ms {:>6.1f} GFLOP/s; cpu {:>8.3f} ms, {:>4.2f} of peak; first {:.2f} s{}{}\n",
             work.label, time.wall * 1e3, gflop / time.wall, time.cpu * 1e3, gflop / time.cpu / peak, first,
             parts.empty() ? "" : "; launches", parts);
  std::fflush(stdout);
}

// This CPU's caches and instructions. Those for words and tiles are not probed for: what the platform may have is
// taken.
DeviceSpec OfThisCpu(const LaunchRunner& runner) {
  DeviceSpec device = runner.WithMatrixUnit().value_or(runner.spec());
  FillFromCpu(device);
  const Quirks quirks = QuirksOf(device.platform, CL_DEVICE_TYPE_CPU);
  const auto choose = [&](const char* feature, const char* form) {
    return form != nullptr && ThisCpu().Has(feature) ? form : "";
  };
  device.bf16_dot = choose("avx512bf16", quirks.bf16_dot);
  device.s8_dot = choose("avx512vnni", quirks.s8_dot);
  return device;
}

int Main(int argc, char** argv) {
  LaunchRunner runner;
  DeviceSpec device = OfThisCpu(runner);
  std::vector<std::string> cases(argv + 1, argv + argc);
  const std::string option = "--device_spec=";
  if (!cases.empty() && cases[0].starts_with(option)) {
    device = DeviceSpec::FromJson(hlo::ReadFileOrStdin(cases[0].substr(option.size())), device);
    cases.erase(cases.begin());
  }
  const double peak = PeakOfACore(runner, device);
  fmt::print("multiply-add peak of a core: {:.1f} GFLOP/s; shares below are by processor time\n", peak);
  if (cases.empty()) {
    cases = {"256,256,256",
             "512,512,512",
             "1024,1024,1024",
             "1000,999,1001",
             "1024,1024,1024,0,nt",
             "1024,1024,1024,0,tn",
             "197,768,768",
             "50000,64,64",
             "64,50000,64,0,tn",
             "196,64,196,96,nt",
             "196,196,64,96",
             "1,4096,4096",
             "1,4096,4096,0,nt",
             "8,2048,2048",
             "16,768,3072",
             "4096,4096,1",
             "conv:8,56,64,64,3,1,1,1",
             "conv:8,28,128,128,3,1,1,1",
             "conv:8,14,256,256,3,1,1,1",
             "conv:8,7,512,512,3,1,1,1",
             "conv:8,56,128,128,3,2,0,1",
             "conv:8,14,512,512,3,2,0,1",
             "conv:8,224,3,64,7,2,3,3"};
  }
  for (const std::string& text : cases) {
    Report(runner, device, text.starts_with("conv:") ? ParseConvolution(text) : ParseProduct(text), peak);
  }
  return 0;
}

}  // namespace
}  // namespace hlorun::opencl

int main(int argc, char** argv) {
  try {
    return hlorun::opencl::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "product_bench: {}\n", error.what());
    return 2;
  }
}
