// Cases of the partitioner's conformance set on OpenCL devices, as many as the job has, against the evaluator.
//
//   [mpirun -n N] sharded_cases DEVICES_PER_RANK [STRIDE [FIRST [RANDOM [TOGETHER]]]]
//
// Every STRIDE-th single op from number FIRST that is cut for the job's number of devices, TOGETHER (32) of them as one
// program, and RANDOM random programs. Integer-valued operands: exact. Prints what differs and how many ran; exit 1
// when anything differs.
#include <cstdio>
#include <cstdlib>

#include "backends/collectives/job.h"
#include "driver/api/literals.h"
#include "driver/arrays/compare.h"
#include "driver/cli/partitioned_arrays.h"
#include "hlo/text/printer.h"
#include "hlorun/hlorun.h"
#include "tests/end_to_end/job_main.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/spmd/merged_cases.h"
#include "tests/passes/spmd/op_cases.h"
#include "tests/passes/spmd/partition_check.h"
#include "tests/passes/spmd/random_modules.h"

namespace hlorun {
namespace {

using Literals = std::vector<Literal>;

class Runner {
 public:
  explicit Runner(std::shared_ptr<collectives::Job> job) : job_(std::move(job)) {
    ClientOptions options;
    options.job = job_;
    client_ = Client::Create(options);
  }

  int64_t partitions() const { return job_->device_count(); }

  // All cases as one program.
  void Check(const std::vector<passes::ShardedCase>& cases) {
    ran_ += static_cast<int64_t>(cases.size());
    Literals arguments, expected;
    for (const passes::ShardedCase& one : cases) {
      const Literals own = passes::IntegerArguments(*one.module, 1);
      for (Literal& result : passes::WholeResults(*one.module, own)) expected.push_back(std::move(result));
      arguments.insert(arguments.end(), own.begin(), own.end());
    }
    Literals actual;
    try {
      actual = Run(*passes::Merge(cases), arguments, expected);
    } catch (const Error& error) {
      if (cases.size() > 1) Fail(error.code(), "{} to {}: {}", cases.front().name, cases.back().name, error.message());
      throw;
    }
    if (actual.empty()) return;  // on all but rank 0
    size_t leaf = 0;
    for (const passes::ShardedCase& one : cases) {
      const size_t end = leaf + static_cast<size_t>(hlo::LeafCount(one.module->entry()->root()->shape()));
      if (!Equal(one, leaf, end, expected, actual)) ++differ_;
      leaf = end;
    }
  }

  int Report() const {
    if (job_->rank() == 0) {
      std::printf("%ld cases on %ld devices, %ld differ\n", static_cast<long>(ran_), static_cast<long>(partitions()),
                  static_cast<long>(differ_));
    }
    return differ_ == 0 ? 0 : 1;
  }

 private:
  static bool Equal(const passes::ShardedCase& one, size_t begin, size_t end, const Literals& expected,
                    const Literals& actual) {
    for (size_t i = begin; i < end; ++i) {
      const Comparison close = Compare(actual[i], expected[i], {});
      const std::string difference = one.is_exact  ? passes::ExactDifference(expected[i], actual[i])
                                     : close.equal ? ""
                                                   : close.message;
      if (difference.empty()) continue;
      std::printf("DIFFERS %s: result %zu: %s\n", one.name.c_str(), i - begin, difference.c_str());
      return false;
    }
    return true;
  }

  // Rank 0 gets the whole results.
  Literals Run(const hlo::Module& module, const Literals& arguments, const Literals& expected) {
    CompileOptions options;
    options.num_partitions = partitions();
    const auto executable = client_->Compile(Module::FromText(hlo::PrintModule(module)), options);
    const bool is_cut = executable->device_count() > 1;  // else nothing is annotated
    std::vector<Literals> parts = {arguments};
    if (is_cut)
      parts =
          cli::CutForDevices(arguments, executable->parameter_shardings(), executable->whole_parameter_shapes(), *job_);
    std::vector<std::vector<Array>> arrays;
    for (const Literals& of_device : parts) arrays.push_back(ToDevice(*client_, of_device));
    std::vector<Literals> results;
    for (const auto& of_device : executable->RunSharded(arrays)) results.push_back(ToLiterals(of_device));
    if (!is_cut) return results.front();
    std::vector<Shape> shapes;
    for (const Literal& whole : expected) shapes.push_back(whole.shape());
    return cli::JoinOnFirst(results, executable->result_shardings(), shapes, *job_);
  }

  std::shared_ptr<collectives::Job> job_;
  std::shared_ptr<Client> client_;
  int64_t ran_ = 0, differ_ = 0;
};

int Run(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  if (argc < 2) Invalid("usage: sharded_cases DEVICES_PER_RANK [STRIDE [FIRST [RANDOM [TOGETHER]]]]");
  return testing_support::RunInJob(number(1, 1), [&](const std::shared_ptr<collectives::Job>& job) {
    Runner runner(job);
    constexpr int64_t kCasesOfOneOp = 200;
    const auto together = static_cast<size_t>(std::max<int64_t>(1, number(5, 32)));
    std::vector<passes::ShardedCase> waiting;
    const auto run = [&] {
      if (!waiting.empty()) runner.Check(waiting);
      waiting.clear();
    };
    passes::ForEachShardedCase(number(3, 0), number(2, 100), kCasesOfOneOp, [&](const passes::ShardedCase& sharded) {
      if (sharded.partitions != runner.partitions()) return;
      waiting.push_back(sharded);
      if (waiting.size() == together) run();
    });
    run();
    for (int64_t seed = 1; seed <= number(4, 0); ++seed) {
      const std::string text = passes::RandomAnnotatedModule(static_cast<uint64_t>(seed), runner.partitions());
      runner.Check({{fmt::format("random {}", seed), passes::Parse(text), runner.partitions(), true}});
    }
    return runner.Report();
  });
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  return hlorun::testing_support::ExitCodeOf([&] { return hlorun::Run(argc, argv); });
}
