// Micro-benchmarks through the public API: what one operation, launch, compilation or all-reduce costs.
//
//   micro_bench [--benchmark_filter=RE] ...        $HLORUN_BENCH_DEVICE selects the device, as --device does
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "backends/collectives/job.h"
#include "backends/opencl/compiler.h"
#include "driver/arrays/seeded.h"
#include "hlo/text/parser.h"
#include "hlorun/hlorun.h"

namespace hlorun {
namespace {

Client& BenchClient() {
  static const std::shared_ptr<Client> client = [] {
    ClientOptions options;
    if (const char* device = std::getenv("HLORUN_BENCH_DEVICE")) options.device = device;
    return Client::Create(options);
  }();
  return *client;
}

std::vector<Array> Inputs(const Executable& executable) {
  std::vector<Array> inputs;
  for (const Shape& shape : executable.parameter_shapes()) {
    const hlo::Literal literal = SeededLiteral(shape, static_cast<int64_t>(inputs.size()), {});
    inputs.push_back(BenchClient().FromHost(shape, literal.data()));
  }
  return inputs;
}

// Runs a module again and again, waiting for each run. Rates are of the flops and bytes that one run stands for.
void RunModule(benchmark::State& state, const std::string& text, double flops, double bytes) {
  const auto executable = BenchClient().Compile(Module::FromText(text), {});
  const std::vector<Array> inputs = Inputs(*executable);
  for (auto _ : state) {
    for (const Array& result : executable->Run(inputs)) result.Wait();
  }
  using benchmark::Counter;
  if (flops > 0) state.counters["FLOP/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
  if (bytes > 0) state.counters["B/s"] = Counter(bytes, Counter::kIsIterationInvariantRate, Counter::kIs1024);
}

void MatrixProduct(benchmark::State& state, const char* type) {
  const int64_t n = state.range(0);
  RunModule(state,
            fmt::format(R"(HloModule product
ENTRY main {{
  x = {0}[{1},{1}] parameter(0)
  y = {0}[{1},{1}] parameter(1)
  ROOT z = {0}[{1},{1}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}})",
                        type, n),
            2.0 * static_cast<double>(n * n * n), 0);
}
BENCHMARK_CAPTURE(MatrixProduct, f32, "f32")->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();
BENCHMARK_CAPTURE(MatrixProduct, bf16, "bf16")->Arg(256)->Arg(1024)->UseRealTime();

// 3x3, `range(0)` pixels square, `range(1)` channels in and out.
void Convolution(benchmark::State& state) {
  const int64_t size = state.range(0), channels = state.range(1);
  RunModule(state,
            fmt::format(R"(HloModule convolution
ENTRY main {{
  x = f32[1,{0},{0},{1}] parameter(0)
  w = f32[3,3,{1},{1}] parameter(1)
  ROOT y = f32[1,{0},{0},{1}] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
}})",
                        size, channels),
            2.0 * 9 * static_cast<double>(size * size * channels * channels), 0);
}
BENCHMARK(Convolution)->Args({56, 64})->Args({14, 256})->UseRealTime();

void Elementwise(benchmark::State& state, const char* op) {
  const int64_t n = state.range(0);
  RunModule(state,
            fmt::format(R"(HloModule elementwise
ENTRY main {{
  x = f32[{0}] parameter(0)
  a = f32[{0}] {1}(x)
  ROOT y = f32[{0}] add(a, x)
}})",
                        n, op),
            0, 8.0 * static_cast<double>(n));
}
BENCHMARK_CAPTURE(Elementwise, negate, "negate")->Arg(1 << 10)->Arg(1 << 24)->UseRealTime();
BENCHMARK_CAPTURE(Elementwise, tanh, "tanh")->Arg(1 << 24)->UseRealTime();

// Of a square matrix, along `dimension`.
void Reduction(benchmark::State& state, int64_t dimension) {
  const int64_t n = state.range(0);
  RunModule(state,
            fmt::format(R"(HloModule reduction
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[{0},{0}] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[{0}] reduce(x, zero), dimensions={{{1}}}, to_apply=add
}})",
                        n, dimension),
            0, 4.0 * static_cast<double>(n * n));
}
BENCHMARK_CAPTURE(Reduction, rows, 1)->Arg(4096)->UseRealTime();
BENCHMARK_CAPTURE(Reduction, columns, 0)->Arg(4096)->UseRealTime();

// One tiny kernel, enqueued and waited for.
void Launch(benchmark::State& state) {
  RunModule(state, "HloModule launch\nENTRY main {\n  x = f32[16] parameter(0)\n  ROOT y = f32[16] add(x, x)\n}", 0, 0);
}
BENCHMARK(Launch)->UseRealTime();

// Tiny kernels that wait for each other in the queue; time is of all of them.
void QueuedLaunches(benchmark::State& state) {
  const auto executable = BenchClient().Compile(
      Module::FromText("HloModule launch\nENTRY main {\n  x = f32[16] parameter(0)\n  ROOT y = f32[16] add(x, x)\n}"),
      {});
  const std::vector<Array> inputs = Inputs(*executable);
  const int64_t launches = state.range(0);
  for (auto _ : state) {
    std::vector<Array> values = inputs;
    for (int64_t i = 0; i < launches; ++i) values = executable->Run(values);
    values[0].Wait();
  }
  state.SetItemsProcessed(state.iterations() * launches);
}
BENCHMARK(QueuedLaunches)->Arg(100)->UseRealTime();

// A perceptron's gradient-like chain of `range(0)` layers; `salt` makes its kernels new.
std::string Layers(int64_t layers, int64_t salt) {
  std::string text = "HloModule layers\nENTRY main {\n  x0 = f32[64,64] parameter(0)\n  w = f32[64,64] parameter(1)\n";
  text += fmt::format("  salt = f32[] constant({})\n  salts = f32[64,64] broadcast(salt), dimensions={{}}\n", salt);
  for (int64_t i = 1; i <= layers; ++i) {
    text += fmt::format(
        "  d{0} = f32[64,64] dot(x{1}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        "  a{0} = f32[64,64] add(d{0}, salts)\n  {2}x{0} = f32[64,64] tanh(a{0})\n",
        i, i - 1, i == layers ? "ROOT " : "");
  }
  return text + "}\n";
}

// Module -> plan: passes and code generation, no OpenCL.
void CompileToPlan(benchmark::State& state) {
  const auto module = hlo::ParseModule(Layers(state.range(0), 1));
  for (auto _ : state) benchmark::DoNotOptimize(opencl::CompileModule(*module, BenchClient().device().spec, {}));
}
BENCHMARK(CompileToPlan)->Arg(4)->Arg(64);

// The same with the platform's compiler; neither our cache nor the platform's knows the kernels.
void CompileNewKernels(benchmark::State& state) {
  static int64_t salt = std::chrono::system_clock::now().time_since_epoch().count() % 1000000;
  CompileOptions options;
  options.use_disk_cache = false;
  for (auto _ : state) benchmark::DoNotOptimize(BenchClient().Compile(Module::FromText(Layers(4, ++salt)), options));
}
BENCHMARK(CompileNewKernels)->UseRealTime()->Unit(benchmark::kMillisecond);

// f32 over `range(0)` devices in this process, `range(1)` bytes each.
void AllReduce(benchmark::State& state) {
  const auto job = collectives::Job::InProcess(state.range(0));
  std::vector<int64_t> group(static_cast<size_t>(state.range(0)));
  std::iota(group.begin(), group.end(), 0);
  const auto count = static_cast<size_t>(state.range(1)) / sizeof(float);
  std::vector<std::vector<float>> values(group.size(), std::vector<float>(count, 1.0f));
  for (auto _ : state) {
    job->OnEachLocalDevice<bool>([&](int64_t device, const auto& communicator) {
      std::vector<float>& mine = values[static_cast<size_t>(device)];
      communicator->AllReduce(group, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(mine)),
                              {hlo::Opcode::kMaximum, hlo::ElementType::kF32, nullptr}, state.range(1));
      return true;
    });
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
}
BENCHMARK(AllReduce)->Args({2, 4 << 10})->Args({2, 1 << 20})->Args({2, 64 << 20})->UseRealTime();

}  // namespace
}  // namespace hlorun

BENCHMARK_MAIN();
