#include "backends/opencl/tuning/product_contest.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "backends/opencl/runtime/device_context.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/pass.h"

namespace hlorun::opencl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNever = std::numeric_limits<double>::infinity();
// A candidate that is slower than the best by this is not run again.
constexpr double kHopeless = 1.25;
// Elements after which operands repeat: a prime, so that rows differ.
constexpr int64_t kPeriod = 4099;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

hlo::Shape MatrixShape(hlo::ElementType type, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  if (transposed) std::swap(rows, columns);
  return batch == 1 ? hlo::Shape(type, {rows, columns}) : hlo::Shape(type, {batch, rows, columns});
}

// -1, 0 and 1: sums of their products are exact.
std::vector<std::byte> Operand(const hlo::Shape& shape, int64_t step) {
  hlo::Literal period(hlo::Shape(shape.element_type(), {kPeriod}));
  for (int64_t i = 0; i < kPeriod; ++i) period.SetDouble(i, static_cast<double>(i * step % 7 % 3) - 1);
  std::vector<std::byte> bytes(static_cast<size_t>(shape.ByteSize()));
  const auto length = static_cast<size_t>(period.ByteSize());
  for (size_t at = 0; at < bytes.size(); at += length)
    std::memcpy(bytes.data() + at, period.data(), std::min(length, bytes.size() - at));
  return bytes;
}

hlo::Instruction* AddDot(const ProductProblem& problem, hlo::Computation* entry) {
  const ProductShape& s = problem.shape;
  const hlo::Shape lhs = MatrixShape(s.lhs_type, s.batch, s.m, s.k, s.lhs_transposed);
  const hlo::Shape rhs = MatrixShape(s.rhs_type, s.batch, s.k, s.n, s.rhs_transposed);
  hlo::attr::Dot attributes;
  const int64_t b = s.batch > 1 ? 1 : 0;
  if (b == 1) attributes.lhs_batch = attributes.rhs_batch = {0};
  attributes.lhs_contracting = {s.lhs_transposed ? b : b + 1};
  attributes.rhs_contracting = {s.rhs_transposed ? b + 1 : b};
  return hlo::Builder(entry).Dot(entry->AddParameter(0, lhs, "lhs"), entry->AddParameter(1, rhs, "rhs"), attributes,
                                 problem.result_type);
}

hlo::WindowDimension WindowOf(const ConvolutionDimension& d) {
  const int64_t reach = (d.out - 1) * d.stride + (d.window - 1) * d.dilation + 1;
  const int64_t high = reach - ((d.in - 1) * d.base_dilation + 1) - d.low;
  return {d.window, d.stride, d.low, high, d.dilation, d.base_dilation, false};
}

// b01f_01io->b01f, or b0f_0io->b0f.
hlo::Instruction* AddConvolution(const ProductProblem& problem, hlo::Computation* entry) {
  const ConvolutionShape& c = *problem.convolution;
  hlo::Dims input = {c.batch}, weights, output = {c.batch};
  hlo::attr::Convolution attributes;
  attributes.feature_group_count = c.groups;
  hlo::attr::ConvolutionDimensions& labels = attributes.dimensions;
  const auto add = [&](const ConvolutionDimension& d) {
    const auto number = static_cast<int64_t>(weights.size());
    labels.kernel_spatial.push_back(number);
    labels.input_spatial.push_back(number + 1);
    labels.output_spatial.push_back(number + 1);
    input.push_back(d.in);
    weights.push_back(d.window);
    output.push_back(d.out);
    attributes.window.push_back(WindowOf(d));
  };
  if (c.spatial_rank == 2) add(c.rows);
  add(c.columns);
  const auto rank = static_cast<int64_t>(weights.size());
  labels.input_feature = labels.output_feature = labels.kernel_output_feature = rank + 1;
  labels.kernel_input_feature = rank;
  input.push_back(c.groups * c.channels);
  weights.push_back(c.channels);
  weights.push_back(c.features);
  output.push_back(c.features);
  return hlo::Builder(entry).Make(hlo::Opcode::kConvolution,
                                  {entry->AddParameter(0, hlo::Shape(c.input_type, input), "lhs"),
                                   entry->AddParameter(1, hlo::Shape(c.weight_type, weights), "rhs")},
                                  attributes, {}, hlo::Shape(problem.result_type, output));
}

class Contest {
 public:
  Contest(const ProductProblem& problem, const std::shared_ptr<DeviceContext>& context, const BuildOptions& build)
      : problem_(problem), context_(context), build_(build), module_("product") {
    hlo::Computation* entry = module_.AddComputation("main");
    module_.set_entry(entry);
    hlo::Instruction* root = problem.convolution ? AddConvolution(problem, entry) : AddDot(problem, entry);
    entry->set_root(root);
    arguments_ = {Upload(root->operand(0)->shape(), 3), Upload(root->operand(1)->shape(), 5)};
  }

  // Null when the device, or its compiler, refuses it.
  std::unique_ptr<Executable> Build(const ProductSchedule& schedule) const {
    try {
      auto record = std::make_shared<TuningRecord>(context_->spec());
      record->Set(problem_, {.schedule = schedule});
      CompileOptions options;
      options.tuned = record;
      const OpenClKernelModel kernels(context_->spec(), options);
      passes::PassContext pass_context{context_->spec(), options, kernels, {}};
      return BuildExecutable(BuildPlan(module_, passes::AssignBuffers(module_, pass_context), pass_context), context_,
                             build_);
    } catch (const Error&) {
      return nullptr;
    }
  }

  // Empty when it fails.
  std::vector<std::byte> Result(Executable& executable) const {
    try {
      const std::vector<DeviceArray> results = executable.Run(arguments_, {});
      Wait(results);
      std::vector<std::byte> bytes(static_cast<size_t>(results[0].shape->ByteSize()));
      CopyToHost(context_, results[0].memory, bytes.data(), results[0].shape->ByteSize());
      return bytes;
    } catch (const Error&) {
      return {};
    }
  }

  double Time(Executable& executable) const {
    const auto start = Clock::now();
    Wait(executable.Run(arguments_, {}));
    return MicrosecondsSince(start);
  }

 private:
  static void Wait(const std::vector<DeviceArray>& results) {
    for (const DeviceArray& result : results) {
      if (result.ready != nullptr) result.ready->Wait();
    }
  }

  RunArgument Upload(const hlo::Shape& shape, int64_t step) const {
    DeviceMemory memory = PoolOf(context_)->Allocate(shape.ByteSize(), shape.ToString(false));
    CopyToDevice(context_, Operand(shape, step).data(), memory, shape.ByteSize());
    return {{std::move(memory), nullptr}, false};
  }

  const ProductProblem& problem_;
  const std::shared_ptr<DeviceContext> context_;
  const BuildOptions build_;
  hlo::Module module_;
  std::vector<RunArgument> arguments_;
};

std::vector<std::unique_ptr<Executable>> BuildAll(const Contest& contest,
                                                  const std::vector<ProductSchedule>& candidates, int64_t threads) {
  std::vector<std::unique_ptr<Executable>> built(candidates.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < candidates.size(); i = next++) built[i] = contest.Build(candidates[i]);
  };
  std::vector<std::jthread> others;
  for (int64_t i = 1; i < std::min<int64_t>(threads, static_cast<int64_t>(candidates.size())); ++i)
    others.emplace_back(work);
  work();
  others.clear();
  return built;
}

}  // namespace

std::vector<double> TimeCandidates(const ProductProblem& problem, const std::vector<ProductSchedule>& candidates,
                                   const std::shared_ptr<DeviceContext>& context, const BuildOptions& build,
                                   const ContestLimits& limits) {
  BuildOptions of_one = build;
  of_one.threads = 1;
  of_one.progress = nullptr;
  const Contest contest(problem, context, of_one);
  const int64_t threads = build.threads > 0 ? build.threads : std::thread::hardware_concurrency();
  std::vector<std::unique_ptr<Executable>> built = BuildAll(contest, candidates, threads);

  std::vector<std::byte> expected;
  if (built[0] != nullptr) expected = contest.Result(*built[0]);
  if (expected.empty())
    Fail(ErrorCode::kInternal, "{}: not even the kernel that the rules choose runs", problem.ToString());
  for (size_t i = 1; i < built.size(); ++i) {
    if (built[i] != nullptr && contest.Result(*built[i]) != expected) built[i] = nullptr;
  }
  std::vector<double> best(candidates.size(), kNever);
  const auto start = Clock::now();
  for (int64_t round = 0; round < limits.rounds; ++round) {
    for (size_t i = 0; i < built.size(); ++i) {
      if (built[i] != nullptr) best[i] = std::min(best[i], contest.Time(*built[i]));
    }
    // What the rules choose stays: the others are held against it.
    const double fastest = *std::min_element(best.begin(), best.end());
    for (size_t i = 1; i < built.size(); ++i) {
      if (best[i] > kHopeless * fastest) built[i] = nullptr;
    }
    const double patience = round + 1 >= limits.least_rounds ? limits.seconds : 10 * limits.seconds;
    if (MicrosecondsSince(start) > patience * 1e6) break;
  }
  return best;
}

}  // namespace hlorun::opencl
