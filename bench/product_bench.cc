// GFLOP/s of the product kernels, beside the multiply-add peak of the same run.
//
//   product_bench [m,k,n[,batch[,forms]]] ...      forms: "t" for transposed, "n" for plain, of lhs and rhs ("nt")
#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "backends/opencl/kernels/dot.h"
#include "hlo/builder.h"
#include "hlo/module.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {
namespace {

// The fastest of several runs, in seconds: the machine may be shared.
template <typename Run>
double Best(const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();
  double best = 1e9, spent = 0;
  for (int i = 0; i < 200 && spent < 0.5; ++i) {
    const auto start = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

double PeakGflops(LaunchRunner& runner) {
  constexpr int64_t kRounds = 200000, kChains = 24;
  const int64_t groups = runner.spec().compute_units, lanes = runner.spec().vector_bytes / 4;
  std::string body, sum = "a0";
  std::string source = fmt::format("__kernel __attribute__((reqd_work_group_size(1, 1, 1))) __attribute__((min_vector_width(512)))\n"
                                   "void {}(__global float* y) {{\n  float{} m = vload{}(0, y) * 0.5f;\n", kKernelName, lanes, lanes);
  for (int64_t i = 0; i < kChains; ++i) source += fmt::format("  float{} a{} = (float{})({}.0f);\n", lanes, i, lanes, i);
  for (int64_t i = 0; i < kChains; ++i) body += fmt::format("    a{0} = fma(a{0}, m, m);\n", i);
  for (int64_t i = 1; i < kChains; ++i) sum += fmt::format(" + a{}", i);
  source += fmt::format("  for (int r = 0; r < {}; ++r) {{\n{}  }}\n  vstore{}({}, get_group_id(0), y);\n}}\n", kRounds, body, lanes, sum);
  EmittedLaunch launch;
  launch.source = source;
  launch.grid.groups[0] = groups;
  launch.arguments = {{.kind = ArgumentRef::Kind::kOperand}};
  std::vector<float> y(static_cast<size_t>(groups * lanes), 0.5f);
  const double seconds = Best([&] { runner.Run({launch}, {y.data()}, {}, nullptr); });
  return 2.0 * static_cast<double>(groups * lanes * kChains * kRounds) / seconds * 1e-9;
}

struct Product {
  int64_t m = 1, k = 1, n = 1, batch = 0;
  std::string forms = "nn";
};

Product Parse(const std::string& text) {
  Product p;
  char forms[3] = "nn";
  std::sscanf(text.c_str(), "%ld,%ld,%ld,%ld,%2s", &p.m, &p.k, &p.n, &p.batch, forms);
  p.forms = forms;
  return p;
}

void Report(LaunchRunner& runner, const Product& p, double peak) {
  hlo::Module module("m");
  hlo::Computation* entry = module.AddComputation("main");
  const auto shape = [&](int64_t rows, int64_t columns, bool transposed) {
    hlo::Dims dims = p.batch > 0 ? hlo::Dims{p.batch} : hlo::Dims{};
    dims.insert(dims.end(), {transposed ? columns : rows, transposed ? rows : columns});
    return hlo::Shape(hlo::ElementType::kF32, dims);
  };
  const bool lhs_t = p.forms[0] == 't', rhs_t = p.forms[1] == 't';
  hlo::Instruction* lhs = entry->AddParameter(0, shape(p.m, p.k, lhs_t), "lhs");
  hlo::Instruction* rhs = entry->AddParameter(1, shape(p.k, p.n, rhs_t), "rhs");
  const int64_t b = p.batch > 0 ? 1 : 0;
  hlo::attr::Dot attributes;
  if (b == 1) attributes.lhs_batch = attributes.rhs_batch = {0};
  attributes.lhs_contracting = {lhs_t ? b : b + 1};
  attributes.rhs_contracting = {rhs_t ? b + 1 : b};
  hlo::Instruction* dot = hlo::Builder(entry).Dot(lhs, rhs, attributes, hlo::ElementType::kF32);
  entry->set_root(dot);
  const CompileOptions options;
  const auto launches = EmitDot(*dot, {-1}, {runner.spec(), options});
  if (!launches) return void(fmt::print("{:>6} x {:>6} x {:>6}: no kernel\n", p.m, p.k, p.n));
  const auto block = [](int64_t bytes) { return std::vector<float>(static_cast<size_t>(bytes / 4 + 16), 0.5f); };
  std::vector<float> x = block(lhs->shape().ByteSize()), y = block(rhs->shape().ByteSize()), out = block(dot->shape().ByteSize());
  std::vector<float> scratch = block(DotScratchBytes(*dot, runner.spec()));
  const auto run = [&](const std::vector<EmittedLaunch>& what) {
    runner.Run(what, {x.data(), y.data()}, {out.data()}, scratch.data());
  };
  const double built = runner.build_seconds();
  const auto start = std::chrono::steady_clock::now();
  run(*launches);
  const double first = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  (void)built;
  std::string parts;
  for (const EmittedLaunch& launch : *launches) parts += fmt::format(" {:.3f}", Best([&] { run({launch}); }) * 1e3);
  const double seconds = Best([&] { run(*launches); });
  const double gflops = 2.0 * static_cast<double>(p.m * p.k * p.n * std::max<int64_t>(p.batch, 1)) / seconds * 1e-9;
  fmt::print("{:>6} x {:>6} x {:>6} batch {:>4} {}  {:>9.3f} ms {:>7.1f} GFLOP/s {:>5.2f} of peak   first {:.2f} s, launches ms{}\n", p.m, p.k,
             p.n, p.batch, p.forms, seconds * 1e3, gflops, gflops / peak, first, parts);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  LaunchRunner runner;
  const double peak = PeakGflops(runner);
  fmt::print("multiply-add peak {:.1f} GFLOP/s\n", peak);
  std::vector<std::string> cases(argv + 1, argv + argc);
  if (cases.empty()) {
    cases = {"256,256,256", "512,512,512", "1024,1024,1024", "1000,999,1001", "1024,1024,1024,0,nt", "1024,1024,1024,0,tn",
             "197,768,768", "50000,64,64", "64,50000,64,0,tn", "196,64,196,96,nt", "196,196,64,96", "1,4096,4096",
             "1,4096,4096,0,nt", "8,2048,2048", "16,768,3072", "4096,4096,1"};
  }
  for (const std::string& text : cases) Report(runner, Parse(text), peak);
  return 0;
}

}  // namespace
}  // namespace hlorun::opencl

int main(int argc, char** argv) { return hlorun::opencl::Main(argc, argv); }
