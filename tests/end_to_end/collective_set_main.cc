// Runs a folder of modules for several devices, one after another, in one job; scripts/check_collectives.py starts it
// under each shape of job.
//
//   collective_set FOLDER DEVICES_PER_RANK LOG [NAME...]
//
// FOLDER/NAME/module.hlo, inputs/rank_R/, expected/rank_R/ as scripts/make_collective_modules.py writes them; or, of an
// annotated module, whole arrays in inputs/ and expected/ (scripts/make_sharded_modules.py): those are cut, and joined
// on rank 0. Each rank writes LOG.RANK, a line for each result of each of its devices (of whole arrays: of device 0):
// "NAME DEVICE RESULT CHECKSUM equal|differs|error MESSAGE". Each module runs twice; a second run with other bits is an
// error. An annotated module that is refused is "error MESSAGE", too: all ranks refuse it alike.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "backends/collectives/job.h"
#include "driver/api/literals.h"
#include "driver/arrays/compare.h"
#include "driver/cli/partitioned_arrays.h"
#include "hlorun/hlorun.h"
#include "tests/end_to_end/job_main.h"

namespace hlorun {
namespace {

using Literals = std::vector<hlo::Literal>;

std::vector<Literals> RunOnce(Executable& executable, Client& client, const std::vector<Literals>& inputs) {
  std::vector<std::vector<Array>> arguments;
  for (const Literals& of_device : inputs) arguments.push_back(ToDevice(client, of_device));
  std::vector<Literals> results;
  for (const auto& of_device : executable.RunSharded(arguments)) results.push_back(ToLiterals(of_device));
  return results;
}

// What a job runs, and where its arguments and results belong.
struct Job {
  collectives::Job& ranks;
  Client& client;
  std::FILE* log;
};

void Write(const Job& job, const std::string& name, int64_t device, const Literals& results, const Literals& again,
           const Literals& expected) {
  for (size_t r = 0; r < results.size(); ++r) {
    const Comparison comparison = Compare(results[r], expected[r], {});
    const std::string checksum = Checksum(results[r]);
    const bool repeats = checksum == Checksum(again[r]);
    const char* verdict = !repeats ? "error the second run has other bits" : comparison.equal ? "equal" : "differs ";
    std::fprintf(job.log, "%s %lld %zu %s %s%s\n", name.c_str(), static_cast<long long>(device), r, checksum.c_str(),
                 verdict, comparison.message.c_str());
  }
}

void RunOfSingleDevices(const Job& job, const std::string& path, const std::string& name) {
  const auto executable = job.client.Compile(Module::FromFile(path + "/module.hlo"), {});
  const auto inputs = cli::LoadPartitioned(path + "/inputs", SlotsOf(executable->parameter_shapes()),
                                           executable->parameter_shardings(), job.ranks, true);
  const auto expected = cli::LoadExpected(path + "/expected", SlotsOf(executable->result_shapes()), job.ranks, true);
  const std::vector<Literals> results = RunOnce(*executable, job.client, inputs),
                              again = RunOnce(*executable, job.client, inputs);
  for (size_t d = 0; d < results.size(); ++d) {
    Write(job, name, job.ranks.first_device() + static_cast<int64_t>(d), results[d], again[d], expected[d]);
  }
}

void RunOfWholeArrays(const Job& job, const std::string& path, const std::string& name, const Module& module,
                      Executable& executable) {
  const std::vector<Shape> shapes = hlo::FlattenShape(module.result_shape());
  const Literals inputs = LoadArrays(path + "/inputs", SlotsOf(module.parameter_shapes()), "input");
  const Literals expected = LoadArrays(path + "/expected", SlotsOf(shapes), "expected output");
  // A module that nothing cuts runs on every device alike.
  const bool is_cut = executable.device_count() > 1;
  std::vector<Literals> parts = {inputs};
  if (is_cut)
    parts = cli::CutForDevices(inputs, executable.parameter_shardings(), module.parameter_shapes(), job.ranks);
  const auto run = [&] {
    const std::vector<Literals> results = RunOnce(executable, job.client, parts);
    return is_cut ? cli::JoinOnFirst(results, executable.result_shardings(), shapes, job.ranks) : results.front();
  };
  const Literals results = run();
  const Literals again = run();
  if (job.ranks.rank() == 0) Write(job, name, 0, results, again, expected);
}

void RunModule(const Job& job, const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (std::filesystem::is_directory(path + "/inputs/rank_0")) return RunOfSingleDevices(job, path, name);
  std::shared_ptr<Executable> executable;
  std::optional<Module> module;
  try {
    module = Module::FromFile(path + "/module.hlo");
    executable = job.client.Compile(*module, {});
  } catch (const Error& e) {
    std::string message = e.message();
    std::replace(message.begin(), message.end(), '\n', ' ');
    std::fprintf(job.log, "%s 0 0 - error %s\n", name.c_str(), message.c_str());
    return;
  }
  RunOfWholeArrays(job, path, name, *module, *executable);
}

int Run(int argc, char** argv) {
  if (argc < 4) Invalid("usage: collective_set FOLDER DEVICES_PER_RANK LOG [NAME...]");
  const std::string folder = argv[1];
  std::set<std::string> names(argv + 4, argv + argc);
  if (names.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  }
  return testing_support::RunInJob(std::atoi(argv[2]), [&](const std::shared_ptr<collectives::Job>& job) {
    const std::string path = fmt::format("{}.{}", argv[3], job->rank());
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> log(std::fopen(path.c_str(), "w"), &std::fclose);
    if (log == nullptr) Invalid("cannot write {}", path);
    ClientOptions options;
    options.job = job;
    const auto client = Client::Create(options);
    for (const std::string& name : names) {
      RunModule({*job, *client, log.get()}, folder, name);
      std::fflush(log.get());
    }
    return 0;
  });
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  return hlorun::testing_support::ExitCodeOf([&] { return hlorun::Run(argc, argv); });
}
