// Options of a compilation; the part of them that changes generated code is part of cache and plan keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hlorun {

struct CompileOptions {
  // Dumps: the folder, and a regular expression over pass names ("" : only the stages before and after).
  std::string dump_to;
  std::string dump_pass_re;
  // Verify the module after each pass.
  bool verify_each_pass = false;
  bool report_pass_times = false;
  int64_t fold_step_limit = 1 << 22;            // constant folding: elementary steps an instruction
  int64_t fold_byte_limit = int64_t{16} << 20;  // constant folding: bytes of a result
  // Devices that run the module: replica_count x num_partitions of the module, or 1 when it runs replicated.
  int64_t device_count = 1;
  int64_t compile_threads = 0;  // 0: as many as cores
  bool use_disk_cache = true;
  // Progress, for a terminal: each stage of the pipeline by name; kernels built so far and in all.
  std::function<void(const std::string& stage)> observe_stage;
  std::function<void(int64_t done, int64_t total)> observe_kernels;
  std::string cache_dir;  // empty: $HLORUN_CACHE_DIR, else $XDG_CACHE_HOME/hlorun, else ~/.cache/hlorun
};

}  // namespace hlorun
