// hlo-opt: runs passes on modules and prints what they become.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "driver/arrays/bound_module.h"
#include "hlo/communication_cost.h"
#include "hlo/cost_analysis.h"
#include "hlo/error.h"
#include "hlo/proto/proto.h"
#include "hlo/reader.h"
#include "hlo/text/printer.h"
#include "passes/dump.h"
#include "passes/kernel_model.h"
#include "passes/pipeline.h"
#include "passes/simplify/rewrite.h"

namespace {

using hlorun::passes::Pipeline;

struct Flags {
  std::string file;
  std::string output = "-";
  std::vector<std::string> passes;
  bool all_passes = true;  // no --passes: the whole pipeline
  bool list_passes = false;
  bool emit_proto = false;
  bool split_input_file = false;
  bool fill_elided = false;
  bool stats = false;
  bool cost = false;
  bool explain = false;
  std::string device_spec;
  std::vector<std::string> bounds;
  hlorun::CompileOptions options;
};

constexpr std::string_view kNoPasses = "none";

// '-' and '_' are the same in a flag's name.
std::vector<std::string> NormalizedArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them from the back
    std::string argument = argv[i];
    if (argument.rfind("--", 0) == 0) {
      const size_t end = std::min(argument.find('='), argument.size());
      std::replace(argument.begin() + 2, argument.begin() + static_cast<int64_t>(end), '-', '_');
    }
    if (argument == "--passes=") argument += kNoPasses;  // CLI11 would take the next argument as its value
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

void ListPasses() {
  for (const hlorun::passes::PassEntry& entry : hlorun::passes::AllPasses()) {
    fmt::print("{:<26} {}\n", entry.name, entry.summary);
  }
}

std::unique_ptr<hlorun::passes::Pass> MakePass(const std::string& name) {
  const auto& all = hlorun::passes::AllPasses();
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
  if (it == all.end()) hlorun::Invalid("--passes: there is no pass '{}'; --list-passes shows them all", name);
  return it->make();
}

// A pass made by name, in a pipeline.
class Named : public hlorun::passes::Pass {
 public:
  explicit Named(const std::string& name) : pass_(MakePass(name)) {}
  std::string_view name() const override { return pass_->name(); }
  bool Run(hlorun::hlo::Module& module, hlorun::passes::PassContext& context) override {
    return pass_->Run(module, context);
  }

 private:
  std::unique_ptr<hlorun::passes::Pass> pass_;
};

Pipeline MakePipeline(const Flags& flags, const hlorun::DeviceSpec& device) {
  if (flags.all_passes) return hlorun::passes::OptimizationPipeline(flags.options, device);
  Pipeline pipeline("passes");
  for (const std::string& name : flags.passes) {
    if (!name.empty()) pipeline.Add<Named>(name);
  }
  return pipeline;
}

// The parts of an input that is split at lines "// -----", as MLIR's tools do.
std::vector<std::string> SplitInput(const std::string& text) {
  std::vector<std::string> parts(1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("// -----", 0) == 0) {
      parts.emplace_back();
    } else {
      parts.back() += line + "\n";
    }
  }
  return parts;
}

struct PassTime {
  int64_t runs = 0, changes = 0;
  double seconds = 0;
};

// The longest first, each with its share of them all.
void PrintStats(const std::map<std::string, PassTime>& times) {
  double all = 0;
  for (const auto& [name, time] : times) all += time.seconds;
  std::vector<std::pair<std::string, PassTime>> sorted(times.begin(), times.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  fmt::print(stderr, "{:<26} {:>6} {:>8} {:>10} {:>7}\n", "pass", "runs", "changed", "ms", "share");
  for (const auto& [name, time] : sorted) {
    fmt::print(stderr, "{:<26} {:>6} {:>8} {:>10.2f} {:>6.1f}%\n", name, time.runs, time.changes, time.seconds * 1e3,
               all > 0 ? 100 * time.seconds / all : 0);
  }
  fmt::print(stderr, "{:<26} {:>6} {:>8} {:>10.2f}\n", "all passes", "", "", all * 1e3);
  fmt::print(stderr, "{:<40} {:>6}\n", "rule", "fired");
  for (const auto& [name, count] : hlorun::passes::RuleFirings()) fmt::print(stderr, "{:<40} {:>6}\n", name, count);
}

// One line of JSON: what one device computes and sends in one run.
std::string CostOf(const hlorun::hlo::Module& module) {
  const hlorun::hlo::Cost cost = hlorun::hlo::CostOf(*module.entry());
  double sent = 0;
  std::string kinds;
  for (const auto& [name, bytes] : hlorun::hlo::RingBytesByKind(module)) {
    sent += bytes;
    kinds += fmt::format("{}\"{}\": {:.0f}", kinds.empty() ? "" : ", ", name, bytes);
  }
  return fmt::format(
      "{{\"module\": \"{}\", \"flops\": {:.0f}, \"transcendentals\": {:.0f}, \"collective_bytes\": {:.0f}, \"collectives\": {{{}}}}}\n",
      module.name(), cost.flops, cost.transcendentals, sent, kinds);
}

hlorun::DeviceSpec ReadDeviceSpec(const std::string& path) {
  if (path.empty()) return {};
  return hlorun::DeviceSpec::FromJson(hlorun::hlo::ReadFileOrStdin(path), {});
}

std::vector<std::unique_ptr<hlorun::hlo::Module>> ReadInput(const Flags& flags) {
  hlorun::hlo::ReadOptions options;
  options.fill_elided = flags.fill_elided;
  options.verify = flags.all_passes || !flags.passes.empty();  // without a pass this only translates
  if (!flags.split_input_file) return hlorun::hlo::ReadModules(flags.file, options);
  std::vector<std::unique_ptr<hlorun::hlo::Module>> modules;
  for (const std::string& part : SplitInput(hlorun::hlo::ReadFileOrStdin(flags.file))) {
    if (part.find_first_not_of(" \n\t\r") == std::string::npos) continue;
    for (auto& module : hlorun::hlo::ReadModulesFromBytes(part, flags.file, options)) {
      modules.push_back(std::move(module));
    }
  }
  return modules;
}

std::string OptimizeAll(const Flags& flags) {
  const hlorun::DeviceSpec device = ReadDeviceSpec(flags.device_spec);
  const hlorun::passes::GenericKernelModel kernels;
  std::string output;
  std::map<std::string, PassTime> times;
  int64_t number = 0;
  for (const auto& module : ReadInput(flags)) {
    hlorun::passes::PassContext context{device, flags.options, kernels, {}};
    Pipeline pipeline = MakePipeline(flags, device);
    const Pipeline::Observer dump = hlorun::passes::DumpingObserver(flags.options, number);
    pipeline.set_observer([&](const hlorun::hlo::Module& after, std::string_view pass, bool changed, double seconds) {
      PassTime& time = times[std::string(pass)];
      ++time.runs;
      time.changes += changed ? 1 : 0;
      time.seconds += seconds;
      if (dump) dump(after, pass, changed, seconds);
    });
    hlorun::passes::DumpModule(flags.options, *module, number, "before_optimizations");
    hlorun::BoundModule(*module, flags.bounds);
    pipeline.Run(*module, context);
    hlorun::passes::DumpModule(flags.options, *module, number, "after_optimizations");
    if (flags.explain) {
      for (const hlorun::passes::Remark& remark : context.remarks) {
        fmt::print(stderr, "{}\n", hlorun::passes::OneLine(remark));
      }
    }
    if (flags.cost) {
      output += CostOf(*module);
      continue;
    }
    if (flags.split_input_file && number > 0) output += "// -----\n";
    output += flags.emit_proto ? hlorun::hlo::ModuleToProto(*module) : hlorun::hlo::PrintModule(*module);
    ++number;
  }
  if (flags.stats) PrintStats(times);
  return output;
}

void Write(const std::string& output, const std::string& path) {
  if (path == "-") {
    std::cout << output << std::flush;
    if (!std::cout) hlorun::Fail(hlorun::ErrorCode::kResourceExhausted, "cannot write to the standard output");
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << output;
  file.close();
  if (!file) hlorun::Fail(hlorun::ErrorCode::kResourceExhausted, "cannot write {}", path);
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("hlo-opt: run passes on HLO modules and print the result.");
  app.add_option("FILE", flags.file, "HLO text or proto; - is the standard input");
  std::string passes_text;
  CLI::Option* passes =
      app.add_option("--passes", passes_text, "only these, in this order (a,b); empty or none: no pass");
  app.add_flag("--list_passes", flags.list_passes, "list the passes and exit");
  app.add_option("--dump_to", flags.options.dump_to, "write the module before and after into this folder");
  app.add_option("--dump_pass_re", flags.options.dump_pass_re, "also after each pass whose name matches");
  app.add_flag("--emit_proto", flags.emit_proto, "write HloModuleProto instead of text");
  app.add_flag("--split_input_file", flags.split_input_file, "split the input at lines '// -----'");
  app.add_option("--device_spec", flags.device_spec, "JSON of the device to compile for");
  app.add_option("--bound", flags.bounds, "PARAM:DIM=N or NAME=N: a dimension that is at most N")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--fill_elided", flags.fill_elided, "fill constants {...} as XLA does");
  app.add_flag("--stats", flags.stats, "passes with their times, and rule firings, on stderr");
  app.add_flag("--cost", flags.cost,
               "print flops and collective bytes of a device, by the cost analysis, not the module");
  app.add_flag("--explain", flags.explain, "what passes decided, with reasons, on stderr");
  app.add_option("--num_partitions", flags.options.num_partitions, "partitions to cut an annotated module into");
  app.add_flag("--verify", flags.options.verify_each_pass, "verify the module after each pass");
  app.add_option("-o", flags.output, "output file; - is the standard output");
  try {
    app.parse(NormalizedArguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (flags.list_passes) {
    ListPasses();
    return 0;
  }
  if (flags.file.empty()) hlorun::Invalid("no FILE given; - is the standard input, --help shows the flags");
  flags.all_passes = passes->count() == 0;
  if (passes_text != kNoPasses) flags.passes = SplitAtCommas(passes_text);
  Write(OptimizeAll(flags), flags.output);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hlo-opt: {}\n", error.what());
    return 2;
  }
}
