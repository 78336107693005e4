// Cases of the partitioner's conformance set on OpenCL devices, as many as the job has, against the evaluator.
//
//   [mpirun -n N] sharded_cases DEVICES_PER_RANK [STRIDE [FIRST [RANDOM]]]
//
// Every STRIDE-th single op from number FIRST that is cut for the job's number of devices, and RANDOM random programs.
// Integer-valued operands: exact. Prints what differs and how many ran; exit 1 when anything differs.
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

  void Check(const std::string& name, const hlo::Module& module, bool exact) {
    ++ran_;
    const Literals arguments = passes::IntegerArguments(module, 1);
    const Literals expected = passes::WholeResults(module, arguments);
    const Literals actual = Run(module, arguments, expected);
    for (size_t i = 0; i < actual.size(); ++i) {  // none but on rank 0
      const Comparison close = Compare(actual[i], expected[i], {});
      const std::string difference = exact         ? passes::ExactDifference(expected[i], actual[i])
                                     : close.equal ? ""
                                                   : close.message;
      if (difference.empty()) continue;
      ++differ_;
      std::printf("DIFFERS %s: result %zu: %s\n", name.c_str(), i, difference.c_str());
      return;
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
  if (argc < 2) Invalid("usage: sharded_cases DEVICES_PER_RANK [STRIDE [FIRST [RANDOM]]]");
  return testing_support::RunInJob(number(1, 1), [&](const std::shared_ptr<collectives::Job>& job) {
    Runner runner(job);
    constexpr int64_t kCasesOfOneOp = 200;
    passes::ForEachShardedCase(number(3, 0), number(2, 100), kCasesOfOneOp, [&](const passes::ShardedCase& sharded) {
      if (sharded.partitions == runner.partitions()) runner.Check(sharded.name, *sharded.module, sharded.is_exact);
    });
    for (int64_t seed = 1; seed <= number(4, 0); ++seed) {
      const std::string text = passes::RandomAnnotatedModule(static_cast<uint64_t>(seed), runner.partitions());
      runner.Check(fmt::format("random {}", seed), *passes::Parse(text), true);
    }
    return runner.Report();
  });
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  return hlorun::testing_support::ExitCodeOf([&] { return hlorun::Run(argc, argv); });
}
