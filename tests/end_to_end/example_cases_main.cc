// Runs a worked example on each of its cases, compiled once: FOLDER/module.hlo on FOLDER/cases/NAME.inputs.npz gives
// FOLDER/cases/NAME.expected.npz. Exit 1 if one differs.
//
//   example_cases FOLDER auto|select|predicate|host
//
// Prints a line a case, and what became of the module's control flow.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "driver/api/literals.h"
#include "driver/arrays/array_set.h"
#include "driver/arrays/compare.h"
#include "driver/cli/branch_strategy.h"
#include "hlorun/hlorun.h"

namespace hlorun {
namespace {

constexpr std::string_view kInputs = ".inputs.npz";

std::vector<std::string> CasesIn(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    if (file.ends_with(kInputs)) names.push_back(file.substr(0, file.size() - kInputs.size()));
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) Invalid("{} holds no cases", folder.string());
  return names;
}

// What differs first; empty when the case gives what is expected.
std::string RunCase(Client& client, Executable& executable, const std::string& path) {
  const std::vector<Literal> inputs =
      LoadArrays(path + std::string(kInputs), SlotsOf(executable.parameter_shapes()), "input");
  const auto expected = LoadArrays(path + ".expected.npz", SlotsOf(executable.result_shapes()), "expected output");
  const std::vector<Array> results = executable.Run(ToDevice(client, inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].shape().dimensions() != expected[i].shape().dimensions()) {
      return fmt::format("result {} is {}, expected {}", i, results[i].shape().ToString(false),
                         expected[i].shape().ToString(false));
    }
    const Comparison comparison = Compare(ToLiteral(results[i]), expected[i], {});
    if (!comparison.equal) return fmt::format("result {}: {}", i, comparison.message);
  }
  return "";
}

int Main(const std::string& folder, const std::string& strategy) {
  const auto client = Client::Create({});
  CompileOptions options;
  options.branches = cli::BranchStrategyOf(strategy);
  const auto executable = client->Compile(Module::FromFile(folder + "/module.hlo"), options);
  for (const Remark& remark : executable->remarks()) fmt::print("{}\n", OneLine(remark));
  int failures = 0;
  for (const std::string& name : CasesIn(folder + "/cases")) {
    const std::string difference = RunCase(*client, *executable, folder + "/cases/" + name);
    fmt::print("{} {}{}{}\n", difference.empty() ? "ok  " : "FAIL", name, difference.empty() ? "" : ": ", difference);
    failures += difference.empty() ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: example_cases FOLDER auto|select|predicate|host\n", stderr);
    return 2;
  }
  try {
    return hlorun::Main(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "example_cases: %s\n", error.what());
    return 2;
  }
}
