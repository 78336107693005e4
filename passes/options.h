// Options of a compilation; the part of them that changes generated code is part of cache and plan keys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hlorun {

namespace hlo {
class CustomCallRegistry;
}
namespace opencl {
class TuningRecord;
}

// Who multiplies matrices: whoever measured faster (our kernels, unless a GPU's cost table says otherwise), our
// kernels, or CLBlast wherever it has the type.
enum class DotLibrary : uint8_t { kAuto, kOwn, kClblast };

// What becomes of a conditional: both branches and a select; kernels that read the predicate; the host reads it and
// takes one branch; or the cheapest of them.
enum class BranchStrategy : uint8_t { kAuto, kSelect, kPredicate, kHost };

// Which candidate schedules are measured for kernels that have several (docs/autotuning.md): none, what rules choose is
// used; a few for each, within seconds; all of them. What was measured is kept, and not measured again.
// kAuto: a few on a GPU, none on a CPU.
enum class Autotune : uint8_t { kAuto, kOff, kQuick, kFull };

struct CompileOptions {
  DotLibrary dot_library = DotLibrary::kAuto;
  Autotune autotune = Autotune::kAuto;
  // A file of choices that Executable::tuning() gave, or a folder of such files, of which those for the device count:
  // they go before what is kept and what is measured, and hold when autotune is off, too.
  std::string tuning_file;
  BranchStrategy branches = BranchStrategy::kAuto;
  // Dumps: the folder, and a regular expression over pass names ("" : only the stages before and after).
  std::string dump_to;
  std::string dump_pass_re;
  // Verify the module after each pass.
  bool verify_each_pass = false;
  int64_t fold_step_limit = 1 << 22;            // constant folding: elementary steps an instruction
  int64_t fold_byte_limit = int64_t{16} << 20;  // constant folding: bytes of a result
  // Devices that run the module: replica_count x num_partitions of the module, or 1 when it runs replicated.
  int64_t device_count = 1;
  // Partitions to cut an annotated module into; 0: as many as it says itself.
  int64_t num_partitions = 0;
  // A module without annotations, on several devices: cut automatically (passes/spmd/auto_shard.h), else replicated.
  bool auto_shard = true;
  // Bytes that a plan may take on each device; 0: no limit.
  int64_t memory_limit = 0;
  // Values for which that leaves no room are computed again where they are read later (passes/memory/rematerialize.h).
  bool rematerialize = true;
  // Parameters (flattened leaves) that are the same arrays in all runs, unchanged as long as the executable lives: what
  // only depends on them, packed weights above all, is made once and kept. Another array's memory makes it anew.
  std::vector<int64_t> constant_parameters;
  // Custom-calls of the user's own; null for none.
  std::shared_ptr<const hlo::CustomCallRegistry> custom_calls;
  int64_t compile_threads = 0;  // 0: as many as cores
  bool use_disk_cache = true;
  // Progress, for a terminal: each stage of the pipeline by name; kernels built so far and in all.
  std::function<void(const std::string& stage)> observe_stage;
  std::function<void(int64_t done, int64_t total)> observe_kernels;
  // The choices that hold for this compilation. The client sets it.
  std::shared_ptr<const opencl::TuningRecord> tuned;
  std::string cache_dir;  // empty: $HLORUN_CACHE_DIR, else $XDG_CACHE_HOME/hlorun, else ~/.cache/hlorun
};

}  // namespace hlorun
