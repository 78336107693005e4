// The command line of `hlorun`.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hlorun::cli {

struct Flags {
  std::string file;

  // Data.
  std::string inputs, outputs, save_inputs;
  uint64_t seed = 0;
  std::string normal;  // slots that are data: "0,1,2"
  int64_t integers = 4;
  bool fill_elided = false;
  std::string bucket;               // pow2 or N: round sizes that vary up
  std::vector<std::string> bounds;  // of dimensions: PARAM:DIM=N or NAME=N
  std::vector<std::string> sizes;   // of made-up inputs: PARAM:DIM=N

  // Checks.
  std::string expect;
  std::string reference;  // "", "all" (the results) or "each" (instruction by instruction)
  std::optional<double> rel_error_bound, abs_error_bound;
  bool debug_nans = false;

  // Runs.
  int64_t iterations = 1, warmup = 0;
  bool compile_only = false;
  int64_t queued = 1;        // runs that are timed together
  bool vary_inputs = false;  // another seed for each iteration

  // Device.
  std::string device, device_class, device_spec;
  int64_t devices_per_rank = 1;
  int64_t num_partitions = 0;                     // 0: as the module says
  std::string mesh, in_shardings, out_shardings;  // passes/spmd/overrides.h
  bool list_devices = false;
  double heartbeat = 5.5;

  // Compilation.
  std::string save_plan, dot_library = "auto", cache_dir;
  std::string branches = "auto";
  std::string autotune = "auto", tuning, save_tuning;
  std::string explain;  // "", "text" or "json"
  bool strict = false;
  std::string custom_calls;  // JSON file
  bool recompile = false, no_cache = false;
  std::string constant_params;  // slots that are the same in all runs: "1,3-5"
  std::string auto_shard = "on", save_sharded;
  int64_t memory_limit = 0;  // bytes

  // Output.
  bool json = false, profile = false, version = false;
  std::string trace, dump_to, dump_pass_re;

  std::set<int64_t> NormalSlots() const;    // throws Error for what is no list of numbers
  std::set<int64_t> ConstantSlots() const;  // likewise
};

// Parses argv; '-' and '_' are the same in a flag's name. Prints help or version itself and returns nullopt then.
// Throws Error naming the flag.
std::optional<Flags> ParseFlags(int argc, char** argv);

// Dump flags of XLA_FLAGS, where the command line does not say otherwise; others are ignored with one warning on
// stderr.
void ApplyXlaFlags(Flags& flags);

}  // namespace hlorun::cli
