// device_fuzz [--first SEED] [--count N] [--seconds S] [--save DIR] [--device_class C] [--device_spec FILE]: random
// modules on the first OpenCL device, against the evaluator. Prints each seed that differs or fails and, with --save,
// writes its module; exit 1 if there is one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "driver/api/literals.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/seeded.h"
#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/module.h"
#include "hlo/reader.h"
#include "hlo/text/parser.h"
#include "hlo/verifier.h"
#include "hlorun/hlorun.h"
#include "tests/fuzz/random_module.h"

namespace hlorun::fuzz {
namespace {

// Each rounds its own way; a chain of a dozen ops on moderate values stays far below this.
constexpr double kF32Bound = 1e-3, kBf16Bound = 5e-2;

std::vector<hlo::Literal> Inputs(const hlo::Module& module, uint64_t seed) {
  std::vector<hlo::Literal> inputs;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    inputs.push_back(SeededLiteral(parameter->shape(), static_cast<int64_t>(inputs.size()), {seed, 9, {}}));
  }
  return inputs;
}

// Empty when the device agrees.
std::string DifferenceOf(Client& client, const std::string& text, uint64_t seed, ModuleStyle style) {
  const auto parsed = hlo::ParseModule(text);
  hlo::VerifyModule(*parsed);
  const std::vector<hlo::Literal> inputs = Inputs(*parsed, seed);
  const hlo::Literal expected = hlo::Evaluate(*parsed, inputs);
  const auto executable = client.Compile(Module::FromText(text), {});
  const std::vector<hlo::Literal> results = ToLiterals(executable->Run(ToDevice(client, inputs)));
  for (size_t i = 0; i < results.size(); ++i) {
    Tolerance tolerance;
    tolerance.relative = style == ModuleStyle::kSmallLoops                 ? 0
                         : results[i].element_type() == ElementType::kBF16 ? kBf16Bound
                                                                           : kF32Bound;
    const Comparison comparison = Compare(results[i], expected.elements()[i], tolerance);
    if (!comparison.equal) return "output " + std::to_string(i) + ": " + comparison.message;
  }
  return "";
}

std::string OutcomeOf(Client& client, uint64_t seed, const std::string& text, ModuleStyle style) {
  try {
    return DifferenceOf(client, text, seed, style);
  } catch (const Error& error) {
    return error.what();
  }
}

struct Flags {
  uint64_t first = 1, count = 100;
  double seconds = 1e9;
  std::string save, device_class, device_spec;
};

struct Style {
  ModuleStyle style;
  const char* name;
};
constexpr Style kStyles[] = {{ModuleStyle::kMixed, "mixed"}, {ModuleStyle::kSmallLoops, "small_loops"}};

int Run(const Flags& flags) {
  ClientOptions options;
  options.device_class = flags.device_class;
  if (!flags.device_spec.empty()) options.device_spec = hlo::ReadFileOrStdin(flags.device_spec);
  const auto client = Client::Create(options);
  const auto start = std::chrono::steady_clock::now();
  uint64_t done = 0, wrong = 0;
  for (; done < flags.count; ++done) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > flags.seconds) break;
    const uint64_t seed = flags.first + done / std::size(kStyles);
    const Style style = kStyles[done % std::size(kStyles)];
    const std::string text = RandomModule(seed, style.style), outcome = OutcomeOf(*client, seed, text, style.style);
    if (outcome.empty()) continue;
    ++wrong;
    std::cout << "seed " << seed << " " << style.name << ": " << outcome << std::endl;
    if (flags.save.empty()) continue;
    std::filesystem::create_directories(flags.save);
    std::ofstream(fmt::format("{}/{}_{}.hlo", flags.save, seed, style.name)) << text;
  }
  std::cout << done << " modules from seed " << flags.first << " on: " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlorun::fuzz

int main(int argc, char** argv) {
  CLI::App app("Random modules on the first OpenCL device, against the evaluator");
  hlorun::fuzz::Flags flags;
  app.add_option("--first", flags.first, "the first seed; each gives two modules");
  app.add_option("--count", flags.count, "modules");
  app.add_option("--seconds", flags.seconds, "begin none after that");
  app.add_option("--save", flags.save, "a folder for those that differ or fail");
  app.add_option("--device_class", flags.device_class, "as hlorun's --device_class");
  app.add_option("--device_spec", flags.device_spec, "as hlorun's --device_spec");
  CLI11_PARSE(app, argc, argv);
  try {
    return hlorun::fuzz::Run(flags);
  } catch (const std::exception& error) {
    std::cerr << "device_fuzz: " << error.what() << "\n";
    return 2;
  }
}
