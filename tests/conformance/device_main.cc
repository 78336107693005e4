// conformance_on_device [--device D] [--device_class C] [--device_spec FILE] [--dot_library L] [--only SUBSTRING]
// [--batch N] [--every N] [--part I --parts N] [--candidate N] [--flush_denormals] [--dump_to DIR]: all cases, or a
// sample or part of them, on a device against the evaluator. Prints each difference and refusal, then counts; exit
// status 1 when there are any.
#include <CLI/CLI.hpp>
#include <iostream>
#include <random>

#include "hlo/reader.h"
#include "tests/conformance/device_sweep.h"

namespace hlorun::conformance {
namespace {

struct Flags {
  std::string device;
  std::string device_class, device_spec;
  std::string dot_library = "auto";
  std::string only;
  size_t batch = 200;
  size_t every = 1;
  size_t sample = 0;
  uint64_t seed = 1;
  size_t part = 1, parts = 1;
  int64_t candidate = -1;
  bool flush_denormals = false;
  std::string dump_to;
};

std::vector<Case> Chosen(const Flags& flags) {
  std::vector<Case> chosen;
  size_t index = 0;
  for (Case& c : AllCases()) {
    if (c.name.find(flags.only) != std::string::npos && index++ % flags.every == 0) chosen.push_back(std::move(c));
  }
  if (flags.sample == 0 || flags.sample >= chosen.size()) return chosen;
  std::mt19937_64 engine(flags.seed);
  for (size_t i = 0; i < flags.sample; ++i) std::swap(chosen[i], chosen[i + engine() % (chosen.size() - i)]);
  chosen.resize(flags.sample);
  return chosen;
}

// Neighbours share families, whose kernels are alike: a part is a run of them.
std::span<const Case> PartOf(std::span<const Case> cases, const Flags& flags) {
  const size_t begin = cases.size() * (flags.part - 1) / flags.parts;
  return cases.subspan(begin, cases.size() * flags.part / flags.parts - begin);
}

int Run(const Flags& flags) {
  if (flags.part < 1 || flags.part > flags.parts)
    Invalid("--part={} is not one of --parts={}", flags.part, flags.parts);
  ClientOptions options;
  options.device = flags.device;
  options.device_class = flags.device_class;
  if (!flags.device_spec.empty()) options.device_spec = hlo::ReadFileOrStdin(flags.device_spec);
  CompileOptions compile;
  compile.dump_to = flags.dump_to;
  if (flags.dot_library == "clblast") compile.dot_library = DotLibrary::kClblast;
  const std::shared_ptr<Client> client = Client::Create(options);
  const std::vector<Case> all = Chosen(flags);
  const std::span<const Case> chosen = PartOf(all, flags);
  size_t counts[3] = {};
  for (size_t begin = 0; begin < chosen.size(); begin += flags.batch) {
    const std::span<const Case> batch = chosen.subspan(begin, std::min(flags.batch, chosen.size() - begin));
    for (const Outcome& outcome : Sweep(*client, batch, compile, flags.candidate, flags.flush_denormals)) {
      ++counts[static_cast<size_t>(outcome.kind)];
      if (outcome.kind == Outcome::Kind::kAgrees) continue;
      std::cout << outcome.name << (outcome.kind == Outcome::Kind::kDiffers ? ": " : ": refused: ") << outcome.message
                << std::endl;
    }
  }
  std::cout << client->device().name << ": " << counts[0] << " agree, " << counts[1] << " differ, " << counts[2]
            << " refused\n";
  return counts[1] + counts[2] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlorun::conformance

int main(int argc, char** argv) {
  CLI::App app("Conformance cases on a device, against the evaluator");
  hlorun::conformance::Flags flags;
  app.add_option("--device", flags.device, "as hlorun's --device");
  app.add_option("--device_class", flags.device_class, "as hlorun's --device_class");
  app.add_option("--device_spec", flags.device_spec, "as hlorun's --device_spec");
  app.add_option("--dot_library", flags.dot_library, "as hlorun's --dot_library")
      ->check(CLI::IsMember({"auto", "own", "clblast"}));
  app.add_option("--only", flags.only, "cases whose name contains this");
  app.add_option("--batch", flags.batch, "cases compiled as one module")->check(CLI::PositiveNumber);
  app.add_option("--sample", flags.sample, "take so many of them, drawn by --seed; 0: all");
  app.add_option("--seed", flags.seed, "of the sample");
  app.add_option("--part", flags.part, "the how manieth of --parts equal parts");
  app.add_option("--parts", flags.parts, "for several processes at once")->check(CLI::PositiveNumber);
  app.add_option("--candidate", flags.candidate, "the how manieth schedule of each product (docs/autotuning.md)");
  app.add_flag("--flush_denormals", flags.flush_denormals, "denormals in inputs and results count as zeros");
  app.add_option("--every", flags.every, "take one case in N")->check(CLI::PositiveNumber);
  app.add_option("--dump_to", flags.dump_to, "as hlorun's --dump_to");
  CLI11_PARSE(app, argc, argv);
  try {
    return hlorun::conformance::Run(flags);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
