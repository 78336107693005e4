// hlo-eval MODULE [--inputs DIR] [--outputs DIR]: the evaluator on a module, without the rest of hlorun. Inputs that
// are not given are seeded. Prints each result's shape and first values, and the time taken.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "driver/arrays/array_set.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/seeded.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/reader.h"
#include "hlo/text/parser.h"

namespace hlorun {
namespace {

int Run(const std::string& path, const std::string& inputs, const std::string& outputs) {
  const auto module = hlo::ParseModule(hlo::ReadFileOrStdin(path), {.file_name = path, .fill_elided = true});
  const std::vector<ArraySlot> slots = ParameterSlots(*module);
  std::vector<hlo::Literal> leaves;
  if (inputs.empty()) {
    for (const ArraySlot& slot : slots) leaves.push_back(SeededLiteral(slot.shape, slot.index, {}));
  } else {
    leaves = LoadArrays(inputs, slots, "input");
  }
  const std::vector<hlo::Literal> arguments = hlo::PackArguments(*module, leaves);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<hlo::Literal> results = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const hlo::Literal& result : results) {
    std::cout << result.shape().ToString(false) << " " << Preview(result) << "\n";
  }
  std::cout << seconds.count() << " s\n";
  if (!outputs.empty()) SaveArrays(outputs, results);
  return 0;
}

}  // namespace
}  // namespace hlorun

int main(int argc, char** argv) {
  CLI::App app("The reference evaluator on an HLO module");
  std::string module;
  std::string inputs;
  std::string outputs;
  app.add_option("module", module, "HLO text")->required();
  app.add_option("--inputs", inputs, "directory of 0.npy, 1.npy ..., or an .npz");
  app.add_option("--outputs", outputs, "directory or .npz to write results to");
  CLI11_PARSE(app, argc, argv);
  try {
    return hlorun::Run(module, inputs, outputs);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
