// Dynamic and branching programs, batch-sharded, on as many devices as the job has.
//
//   [mpirun -n N] sharded_examples DEVICES_PER_RANK STRATEGY,.. MODULE...
//
// MODULE is an HLO text; beside it there may be cases/NAME.inputs.npz and NAME.expected.npz (examples/dynamic). Every
// parameter whose first dimension is bounded is cut along it, so that a device's part may be empty. Each case must give
// what is expected, and made-up inputs of 0, 1, 3 and as many rows as the bound what a single device gives. Prints what
// differs and how many ran; exit 1 when anything differs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "backends/collectives/job.h"
#include "driver/api/literals.h"
#include "driver/arrays/array_set.h"
#include "driver/arrays/bounds.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/seeded.h"
#include "driver/cli/branch_strategy.h"
#include "hlorun/hlorun.h"
#include "tests/end_to_end/job_main.h"

namespace hlorun {
namespace {

using Literals = std::vector<Literal>;

bool IsCutAlongRows(const Shape& shape) { return shape.rank() > 0 && shape.is_dynamic_dimension(0); }

class Runner {
 public:
  explicit Runner(std::shared_ptr<collectives::Job> job) : job_(std::move(job)) {
    ClientOptions options;
    options.job = job_;
    client_ = Client::Create(options);
    alone_ = Client::Create({});
  }

  void Run(const std::string& path, const std::string& strategy) {
    where_ = path + " by " + strategy;
    CompileOptions options;
    options.branches = cli::BranchStrategyOf(strategy);
    const Module module = Module::FromFile(path);
    std::string in_shardings;
    for (const Shape& shape : module.parameter_shapes()) in_shardings += IsCutAlongRows(shape) ? "[batch];" : "[];";
    in_shardings.pop_back();
    const std::string mesh = fmt::format("batch:{}", job_->device_count());
    parts_ = client_->Compile(module.WithShardings(mesh, in_shardings, ""), options);
    if (parts_->device_count() != job_->device_count()) Invalid("{}: it was not cut", path);
    whole_ = alone_->Compile(module, options);
    RunCases(std::filesystem::path(path).parent_path() / "cases");
    RunSizes();
  }

  int Report() const {
    if (job_->rank() == 0)
      std::printf("%d runs on %d devices, %d differ\n", ran_, static_cast<int>(job_->device_count()), differ_);
    return differ_ == 0 ? 0 : 1;
  }

 private:
  void RunCases(const std::filesystem::path& folder) {
    constexpr std::string_view kInputs = ".inputs.npz";
    if (!std::filesystem::is_directory(folder)) return;
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      if (!file.ends_with(kInputs)) continue;
      const std::string name = file.substr(0, file.size() - kInputs.size());
      const Literals inputs = LoadArrays(file, SlotsOf(whole_->parameter_shapes()), "input");
      Check(name, inputs, LoadArrays(name + ".expected.npz", SlotsOf(whole_->result_shapes()), "expected output"));
    }
  }

  void RunSizes() {
    for (const int64_t rows : {0, 1, 3, -1}) {
      SeedOptions seed;
      seed.seed = static_cast<uint64_t>(rows + 10);
      Literals inputs;
      for (const Shape& declared : whole_->parameter_shapes()) {
        Shape shape(declared.element_type(), declared.dimensions());
        if (IsCutAlongRows(declared) && rows >= 0) shape.mutable_dimensions()[0] = rows;
        inputs.push_back(SeededLiteral(shape, static_cast<int64_t>(inputs.size()), seed));
      }
      std::vector<Array> arguments;
      for (const Literal& input : inputs) arguments.push_back(alone_->FromHost(input.shape(), input.data()));
      Check(rows < 0 ? "rows of the bound" : std::to_string(rows) + " rows", inputs,
            ToLiterals(whole_->Run(arguments)));
    }
  }

  void Check(const std::string& name, const Literals& inputs, const Literals& expected) {
    ++ran_;
    const std::vector<Shape> bounds = parts_->whole_parameter_shapes();
    const std::vector<std::string> shardings = parts_->parameter_shardings();
    std::vector<Array> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      arguments.push_back(client_->FromHost(inputs[i].shape(), inputs[i].data(), shardings[i], &bounds[i]));
    }
    const std::vector<Array> results = parts_->Run(arguments);
    for (size_t i = 0; i < results.size(); ++i) {
      const Literal actual = ToLiteral(results[i]);
      std::string difference;
      if (actual.shape().dimensions() != expected[i].shape().dimensions()) {
        difference =
            fmt::format("it is {}, expected {}", actual.shape().ToString(false), expected[i].shape().ToString(false));
      } else if (const Comparison comparison = Compare(actual, expected[i], {}); !comparison.equal) {
        difference = comparison.message;
      }
      if (difference.empty()) continue;
      ++differ_;
      std::printf("DIFFERS %s, %s: result %zu: %s\n", where_.c_str(), name.c_str(), i, difference.c_str());
      return;
    }
  }

  std::shared_ptr<collectives::Job> job_;
  std::shared_ptr<Client> client_, alone_;
  std::shared_ptr<Executable> parts_, whole_;
  std::string where_;
  int ran_ = 0, differ_ = 0;
};

int Run(int argc, char** argv) {
  if (argc < 4) Invalid("usage: sharded_examples DEVICES_PER_RANK STRATEGY,.. MODULE...");
  return testing_support::RunInJob(std::atoll(argv[1]), [&](const std::shared_ptr<collectives::Job>& job) {
    Runner runner(job);
    std::stringstream strategies(argv[2]);
    for (std::string strategy; std::getline(strategies, strategy, ',');) {
      for (int i = 3; i < argc; ++i) runner.Run(argv[i], strategy);
    }
    return runner.Report();
  });
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  return hlorun::testing_support::ExitCodeOf([&] { return hlorun::Run(argc, argv); });
}
