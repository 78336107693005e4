// Processes that compile programs beside this one, for platforms whose compiler works for one thread of a process at a
// time (Quirks::compiles_in_processes).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/runtime/compile_program.h"
#include "backends/opencl/runtime/device.h"

namespace hlorun::opencl {

// A pool over a folder of requests, from which each process takes the next that nobody has claimed: "N.request",
// "N.claim", "N.binary". Used by one thread. What no process delivers - there is no program for it, it crashed - the
// owner compiles; so nothing here throws.
class CompilerProcesses {
 public:
  // Starts `count` processes; their folder is made in `folder`.
  CompilerProcesses(const std::vector<ProgramRequest>& requests, const Device& device, size_t count,
                    const std::string& folder);
  // Ends processes that still work.
  ~CompilerProcesses();
  CompilerProcesses(const CompilerProcesses&) = delete;
  CompilerProcesses& operator=(const CompilerProcesses&) = delete;

  // Of those that were started, how many have not ended so far as is known.
  size_t count() const { return processes_.size(); }
  // False when another process has taken it.
  bool Claim(size_t request) const;
  // The binary of a request that is not claimed here: waits for the processes to end, at most kPatience.
  std::optional<std::string> Take(size_t request);

  // What the processes do.
  static int Main(int argc, char** argv);

 private:
  bool AllEnded();

  std::string folder_;
  std::vector<pid_t> processes_;
};

}  // namespace hlorun::opencl
