// device_fuzz --first=SEED --count=N [--seconds=S] [--save=DIR]: random modules on the first OpenCL device, against the
// evaluator. Prints each seed that differs or fails and, with --save, writes its module; exit 1 if there is one.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "driver/api/literals.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/seeded.h"
#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/module.h"
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
std::string DifferenceOf(Client& client, const std::string& text, uint64_t seed) {
  const auto parsed = hlo::ParseModule(text);
  hlo::VerifyModule(*parsed);
  const std::vector<hlo::Literal> inputs = Inputs(*parsed, seed);
  const hlo::Literal expected = hlo::Evaluate(*parsed, inputs);
  const auto executable = client.Compile(Module::FromText(text), {});
  const std::vector<hlo::Literal> results = ToLiterals(executable->Run(ToDevice(client, inputs)));
  for (size_t i = 0; i < results.size(); ++i) {
    Tolerance tolerance;
    tolerance.relative = results[i].element_type() == ElementType::kBF16 ? kBf16Bound : kF32Bound;
    const Comparison comparison = Compare(results[i], expected.elements()[i], tolerance);
    if (!comparison.equal) return "output " + std::to_string(i) + ": " + comparison.message;
  }
  return "";
}

std::string OutcomeOf(Client& client, uint64_t seed, const std::string& text) {
  try {
    return DifferenceOf(client, text, seed);
  } catch (const Error& error) {
    return error.what();
  }
}

struct Flags {
  uint64_t first = 1, count = 100;
  double seconds = 1e9;
  std::string save;
};

Flags Parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view name = argument.substr(0, argument.find('='));
    const std::string value(argument.substr(std::min(name.size() + 1, argument.size())));
    if (name == "--first")
      flags.first = std::stoull(value);
    else if (name == "--count")
      flags.count = std::stoull(value);
    else if (name == "--seconds")
      flags.seconds = std::stod(value);
    else if (name == "--save")
      flags.save = value;
    else
      Invalid("{} is no flag", argument);
  }
  return flags;
}

int Main(const Flags& flags) {
  const auto client = Client::Create({});
  const auto start = std::chrono::steady_clock::now();
  uint64_t done = 0, wrong = 0;
  for (; done < flags.count; ++done) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > flags.seconds) break;
    const uint64_t seed = flags.first + done;
    const std::string text = RandomModule(seed), outcome = OutcomeOf(*client, seed, text);
    if (outcome.empty()) continue;
    ++wrong;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), outcome.c_str());
    std::fflush(stdout);
    if (flags.save.empty()) continue;
    std::filesystem::create_directories(flags.save);
    std::ofstream(flags.save + "/" + std::to_string(seed) + ".hlo") << text;
  }
  std::printf("%llu modules from seed %llu on: %llu wrong\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(flags.first), static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlorun::fuzz

int main(int argc, char** argv) {
  try {
    return hlorun::fuzz::Main(hlorun::fuzz::Parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_fuzz: %s\n", error.what());
    return 2;
  }
}
