#include "driver/cli/flags.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <tuple>

#include "driver/cli/branch_strategy.h"
#include "hlo/error.h"
#include "hlorun/version.h"

namespace hlorun::cli {
namespace {

constexpr const char* kData = "Data";
constexpr const char* kRuns = "Runs and checks";
constexpr const char* kDevice = "Device";
constexpr const char* kCompile = "Compilation";
constexpr const char* kOutput = "Output";

// Unlike CLI::NonNegativeNumber it takes no NaN for a number.
std::string NotNegative(const std::string& text) {
  char* end = nullptr;
  const bool fits = std::strtod(text.c_str(), &end) >= 0 && *end == '\0' && !text.empty();
  return fits ? "" : text + " is no number from 0 on";
}

void Declare(CLI::App& app, Flags& f) {
  app.add_option("file", f.file);
  app.add_option("--inputs", f.inputs, "DIR of 0.npy 1.npy .., or FILE.npz")->group(kData);
  app.add_option("--outputs", f.outputs, "write results to DIR or FILE.npz")->group(kData);
  app.add_option("--save_inputs", f.save_inputs, "write the inputs to DIR")->group(kData);
  app.add_option("--seed", f.seed, "of inputs that are made up")->group(kData);
  app.add_option("--normal", f.normal, "made-up inputs I,J.. are data: deviation 1")->group(kData);
  app.add_option("--integers", f.integers, "made-up integers are below N")->group(kData);
  app.add_option("--size", f.sizes, "PARAM:DIM=N: a made-up input's size where it is dynamic")
      ->group(kData)
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--fill_elided", f.fill_elided, "fill constants printed as {...}")->group(kData);
  app.add_option("--expect", f.expect, "compare with arrays in DIR; exit 1 if they differ")->group(kRuns);
  // A flag with an optional value: CLI11 takes it only after '=', so that a file name may follow.
  app.add_flag("--reference{all}", f.reference, "compare with the evaluator; =each: by instruction")
      ->group(kRuns)
      ->check(CLI::IsMember({"all", "each"}))
      ->option_text(" ");
  app.add_option("--rel_error_bound", f.rel_error_bound, "largest and L2 error, relative")
      ->group(kRuns)
      ->check(NotNegative)
      ->option_text(" ");
  app.add_option("--abs_error_bound", f.abs_error_bound, "largest error, absolute")
      ->group(kRuns)
      ->check(NotNegative)
      ->option_text(" ");
  app.add_flag("--debug_nans", f.debug_nans, "name the first step that makes a NaN")->group(kRuns);
  app.add_option("--iterations", f.iterations, "timed runs after the first")
      ->group(kRuns)
      ->check(CLI::NonNegativeNumber)
      ->option_text("N");
  app.add_option("--warmup", f.warmup, "runs before them")
      ->group(kRuns)
      ->check(CLI::NonNegativeNumber)
      ->option_text("N");
  app.add_option("--queued", f.queued, "runs started together; times are a run's share")
      ->group(kRuns)
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  app.add_flag("--vary_inputs", f.vary_inputs, "other made-up inputs in each run")->group(kRuns);
  app.add_flag("--compile_only", f.compile_only, "do not run")->group(kRuns);
  app.add_option("--device", f.device, "P:D or part of a name")->group(kDevice);
  app.add_option("--device_class", f.device_class, "cpu or gpu: force the kind of kernels")->group(kDevice);
  app.add_option("--device_spec", f.device_spec, "JSON FILE that replaces what it reports")->group(kDevice);
  app.add_option("--devices,--devices_per_rank", f.devices_per_rank, "partitions in this process")
      ->group(kDevice)
      ->check(CLI::PositiveNumber)
      ->option_text(" N");
  app.add_option("--num_partitions", f.num_partitions, "devices that an annotated module is cut for")
      ->group(kDevice)
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  app.add_option("--mesh", f.mesh, "AXIS:SIZE,..: the devices' axes, which shardings name")->group(kDevice);
  // One line for both: the second is in no group.
  app.add_option("--in_shardings", f.in_shardings, "of each array: '[AXIS,None];..' or HloSharding")
      ->group(kDevice)
      ->option_text(" --out_shardings");
  app.add_option("--out_shardings", f.out_shardings)->group("");
  app.add_option("--heartbeat", f.heartbeat, "seconds until a silent rank is dead; 0: never")->group(kDevice);
  app.add_flag("--list_devices", f.list_devices, "list OpenCL devices (under mpirun: ranks)")->group(kDevice);
  app.add_option("--constant_params", f.constant_params, "inputs I,J-K never change: keep what is made of them")
      ->group(kCompile);
  app.add_option("--save_plan", f.save_plan, "keep the compiled plan in FILE")->group(kCompile);
  app.add_option("--auto_shard", f.auto_shard, "modules without shardings on N devices: on, or off")
      ->group(kCompile)
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text(" ");
  app.add_option("--save_sharded", f.save_sharded, "write the module with its shardings")->group(kCompile);
  app.add_option("--memory_limit", f.memory_limit, "a device may take BYTES (2G, 500M)")
      ->group(kCompile)
      ->transform(CLI::AsSizeValue(false))
      ->option_text(" ");
  app.add_flag("--recompile", f.recompile, "rebuild a plan of another device")->group(kCompile);
  app.add_option("--dot_library", f.dot_library, "auto, own or clblast")->group(kCompile);
  app.add_option("--autotune", f.autotune, "measure schedules: off, quick, full; auto: quick on a GPU")
      ->group(kCompile)
      ->check(CLI::IsMember({"auto", "off", "quick", "full"}))
      ->option_text(" ");
  app.add_option("--tuning", f.tuning, "FILE (or DIR) of schedules to take, or to write")
      ->group(kCompile)
      ->option_text(" --save_tuning");
  app.add_option("--save_tuning", f.save_tuning)->group("");
  app.add_option("--branches", f.branches, "conditionals: select, predicate, host or auto")
      ->group(kCompile)
      ->check(CLI::IsMember(kBranchStrategies))
      ->option_text(" ");
  app.add_option("--bound", f.bounds, "PARAM:DIM=N or NAME=N: a size that is at most N")
      ->group(kCompile)
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--bucket", f.bucket, "pow2 or N: round sizes that vary up")->group(kCompile);
  app.add_flag("--strict", f.strict, "refuse a program for which the host must wait")->group(kCompile);
  app.add_option("--custom_calls", f.custom_calls, "JSON FILE: one's own custom-calls")->group(kCompile);
  app.add_option("--cache_dir", f.cache_dir, "of compiled kernels; or compile everything anew")
      ->group(kCompile)
      ->option_text(" --no_cache");
  app.add_flag("--no_cache", f.no_cache)->group("");
  app.add_flag("--json", f.json, "one line of JSON on stdout")->group(kOutput);
  app.add_flag("--explain{text}", f.explain, "what became of branches, loops, sizes; =json")
      ->group(kOutput)
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text(" ");
  app.add_flag("--profile", f.profile, "each kernel's time, and share of its roof")->group(kOutput);
  app.add_option("--trace", f.trace, "Chrome trace FILE")->group(kOutput);
  app.add_option("--dump_to", f.dump_to, "every stage as files in DIR; and after passes that match")
      ->group(kOutput)
      ->option_text(" --dump_pass_re");
  app.add_option("--dump_pass_re", f.dump_pass_re)->group("");
  app.add_flag("--version", f.version)->group(kOutput);
}

// A page that fits a screen: one line says what FILE is, and one blank line parts two groups.
class ShortPage : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: [mpirun -n N] hlorun [FLAGS] FILE: runs HLO text, HLO proto, StableHLO or a saved plan; - is stdin\n";
  }
  std::string make_positionals(const CLI::App*) const override { return ""; }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
    return text.substr(0, text.find_last_not_of('\n') + 1);
  }
};

// "--Save-Plan=x" -> "--save_plan=x": only the name, never the value.
std::string Normalised(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  for (size_t i = 2; i < end; ++i) {
    if (argument[i] == '-') argument[i] = '_';
  }
  return argument;
}

// A slot's number, and the text behind it.
std::pair<int64_t, std::string> LeadingSlot(const std::string& text) {
  size_t used = 0;
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) throw std::invalid_argument(text);
  const int64_t slot = std::stoll(text, &used);
  return {slot, text.substr(used)};
}

// "0,2,4-6"
std::set<int64_t> SlotsOf(const char* flag, const std::string& text) {
  constexpr int64_t kMostSlots = 1 << 20;
  std::set<int64_t> slots;
  std::stringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    try {
      auto [first, rest] = LeadingSlot(item);
      int64_t last = first;
      if (rest.starts_with('-')) std::tie(last, rest) = LeadingSlot(rest.substr(1));
      if (!rest.empty() || last < first || last > kMostSlots) throw std::invalid_argument(item);
      for (int64_t slot = first; slot <= last; ++slot) slots.insert(slot);
    } catch (const std::logic_error&) {
      Invalid("--{}={}: \"{}\" is no number and no range of numbers", flag, text, item);
    }
  }
  return slots;
}

// What would be left undone without a word.
void RefuseContradictions(const Flags& f) {
  const auto refuse = [](bool both, const char* flag, const char* other, const char* reason) {
    if (both) Invalid("--{} and --{}: {}; leave out one of them", flag, other, reason);
  };
  const std::pair<const char*, bool> of_runs[] = {
      {"expect", !f.expect.empty()}, {"reference", !f.reference.empty()}, {"outputs", !f.outputs.empty()},
      {"trace", !f.trace.empty()},   {"debug_nans", f.debug_nans},        {"save_inputs", !f.save_inputs.empty()}};
  for (const auto& [name, is_given] : of_runs) refuse(f.compile_only && is_given, "compile_only", name, "nothing runs");
  const std::pair<const char*, bool> of_plans[] = {{"compile_only", f.compile_only},
                                                   {"strict", f.strict},
                                                   {"explain", !f.explain.empty()},
                                                   {"save_plan", !f.save_plan.empty()}};
  for (const auto& [name, is_given] : of_plans)
    refuse(!f.bucket.empty() && is_given, "bucket", name, "a bucket is compiled when its first inputs come");
}

}  // namespace

std::set<int64_t> Flags::NormalSlots() const { return SlotsOf("normal", normal); }
std::set<int64_t> Flags::ConstantSlots() const { return SlotsOf("constant_params", constant_params); }

std::optional<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app{"", "hlorun"};
  app.set_help_flag("--help", "this page")->group(kOutput);
  app.formatter(std::make_shared<ShortPage>());
  app.get_formatter()->column_width(34);
  app.get_formatter()->label("TEXT", "");
  app.option_defaults()->always_capture_default(false);
  Declare(app, flags);
  std::vector<std::string> arguments;
  for (int i = argc - 1; i >= 1; --i) arguments.push_back(Normalised(argv[i]));
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    Invalid("{} (hlorun --help lists the flags)", e.what());
  }
  if (flags.version) {
    std::printf("hlorun %s\n", kVersion);
    return std::nullopt;
  }
  if (flags.file.empty() && !flags.list_devices)
    Invalid("no module is given: hlorun [flags] FILE (hlorun --help lists the flags)");
  RefuseContradictions(flags);
  ApplyXlaFlags(flags);
  return flags;
}

void ApplyXlaFlags(Flags& flags) {
  const char* text = std::getenv("XLA_FLAGS");
  if (text == nullptr) return;
  std::stringstream words(text);
  std::string ignored;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "--xla_dump_to") {
      if (flags.dump_to.empty()) flags.dump_to = value;
    } else if (name == "--xla_dump_hlo_pass_re") {
      if (flags.dump_pass_re.empty()) flags.dump_pass_re = value;
    } else if (name != "--xla_dump_hlo_as_text") {
      ignored += (ignored.empty() ? "" : " ") + name;
    }
  }
  if (!ignored.empty()) std::fprintf(stderr, "hlorun: warning: XLA_FLAGS: ignored %s\n", ignored.c_str());
}

}  // namespace hlorun::cli
