// Runs a folder of modules with explicit collectives, one after another, in one job; scripts/check_collectives.py
// starts it under each shape of job.
//
//   collective_set FOLDER DEVICES_PER_RANK LOG [NAME...]
//
// FOLDER/NAME/module.hlo, inputs/rank_R/, expected/rank_R/ as scripts/make_collective_modules.py writes them. Each rank
// writes LOG.RANK, a line for each result of each of its devices: "NAME DEVICE RESULT CHECKSUM equal|differs|error
// MESSAGE". Each module runs twice; a second run with other bits is an error.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "backends/collectives/job.h"
#include "backends/topology/placement.h"
#include "driver/arrays/compare.h"
#include "driver/cli/partitioned_arrays.h"
#include "hlorun/hlorun.h"

namespace hlorun {
namespace {

using Literals = std::vector<hlo::Literal>;

std::vector<ArraySlot> SlotsOf(const std::vector<Shape>& shapes) {
  std::vector<ArraySlot> slots;
  for (const Shape& shape : shapes) slots.push_back({static_cast<int64_t>(slots.size()), "", "", shape});
  return slots;
}

std::vector<Literals> RunOnce(Executable& executable, Client& client, const std::vector<Literals>& inputs) {
  std::vector<std::vector<Array>> arguments;
  for (const Literals& of_device : inputs) {
    std::vector<Array>& arrays = arguments.emplace_back();
    for (const hlo::Literal& input : of_device) arrays.push_back(client.FromHost(input.shape(), input.data()));
  }
  std::vector<Literals> results;
  for (const auto& of_device : executable.RunSharded(arguments)) {
    Literals& literals = results.emplace_back();
    for (const Array& array : of_device) {
      hlo::Literal literal(array.shape().WithoutLayout());
      array.ToHost(literal.mutable_data());
      literals.push_back(std::move(literal));
    }
  }
  return results;
}

void RunModule(const std::string& folder, const std::string& name, Client& client, collectives::Job& job,
               std::FILE* log) {
  const std::string path = folder + "/" + name;
  const auto executable = client.Compile(Module::FromFile(path + "/module.hlo"), {});
  const auto inputs = cli::LoadPartitioned(path + "/inputs", SlotsOf(executable->parameter_shapes()),
                                           executable->parameter_shardings(), job, true);
  const auto expected = cli::LoadExpected(path + "/expected", SlotsOf(executable->result_shapes()), job, true);
  const std::vector<Literals> results = RunOnce(*executable, client, inputs),
                              again = RunOnce(*executable, client, inputs);
  for (size_t d = 0; d < results.size(); ++d) {
    for (size_t r = 0; r < results[d].size(); ++r) {
      const Comparison comparison = Compare(results[d][r], expected[d][r], {});
      const std::string checksum = Checksum(results[d][r]);
      const bool repeats = checksum == Checksum(again[d][r]);
      const char* verdict = !repeats ? "error the second run has other bits" : comparison.equal ? "equal" : "differs ";
      std::fprintf(log, "%s %lld %zu %s %s%s\n", name.c_str(),
                   static_cast<long long>(job.first_device() + static_cast<int64_t>(d)), r, checksum.c_str(), verdict,
                   comparison.message.c_str());
    }
  }
}

int Run(int argc, char** argv) {
  if (argc < 4) Invalid("usage: collective_set FOLDER DEVICES_PER_RANK LOG [NAME...]");
  const std::string folder = argv[1];
  std::set<std::string> names(argv + 4, argv + argc);
  if (names.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  }
  topology::PlaceProcess();
  constexpr double kHeartbeat = 20;
  ClientOptions options;
  options.job = collectives::Job::Start(std::atoi(argv[2]), kHeartbeat);
  std::FILE* log = std::fopen((argv[3] + std::string(".") + std::to_string(options.job->rank())).c_str(), "w");
  if (log == nullptr) Invalid("cannot write {}", argv[3]);
  try {
    const auto client = Client::Create(options);
    for (const std::string& name : names) RunModule(folder, name, *client, *options.job, log);
  } catch (const Error& e) {
    options.job->Abort(e);
  }
  std::fclose(log);
  return options.job->Finish(0);
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  try {
    return hlorun::Run(argc, argv);
  } catch (const hlorun::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
