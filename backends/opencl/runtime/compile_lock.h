// One process at a time compiles a program: the ranks of a node start alike, and the first one's result serves all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hlorun::opencl {

// Held by one thread of one process for each of `sources` (and a few that share their files in FOLDER/locks). It is the
// kernel's (flock): a process that dies lets go of it. PoCL, too, needs it: processes that compile one program at the
// same time may read each other's half-written files from its cache, and it then ends the process by an assertion, or
// hands out a binary on which the next process ends. So FOLDER is one that all who share PoCL's cache have.
class CompileLock {
 public:
  // Waits for the holder, at most kPatience: it may be stopped, and compiling twice is better than waiting for ever. A
  // folder that cannot be written makes no error and no lock.
  CompileLock(const std::string& folder, std::span<const std::string_view> sources);
  CompileLock(const std::string& folder, std::string_view source) : CompileLock(folder, std::span(&source, 1)) {}
  ~CompileLock();
  CompileLock(const CompileLock&) = delete;
  CompileLock& operator=(const CompileLock&) = delete;

  // Whether somebody else held it first.
  bool waited() const { return waited_; }

 private:
  std::vector<int> descriptors_;
  bool waited_ = false;
};

}  // namespace hlorun::opencl
