// One process at a time compiles a program: the ranks of a node start alike, and the first one's result serves all.
#pragma once

#include <string>
#include <string_view>

namespace hlorun::opencl {

// Held by one thread of one process for each `source` (and a few that share its file in FOLDER/locks). It is the
// kernel's (flock): a process that dies lets go of it. PoCL, too, needs it: processes that compile one program at the
// same time may read each other's half-written files from its cache, and it then ends the process by an assertion.
class CompileLock {
 public:
  // Waits for the holder, at most kPatience: it may be stopped, and compiling twice is better than waiting for ever. A
  // folder that cannot be written makes no error and no lock.
  CompileLock(const std::string& folder, std::string_view source);
  ~CompileLock();
  CompileLock(const CompileLock&) = delete;
  CompileLock& operator=(const CompileLock&) = delete;

  // Whether somebody else held it first.
  bool waited() const { return waited_; }

 private:
  int descriptor_ = -1;
  bool waited_ = false;
};

}  // namespace hlorun::opencl
