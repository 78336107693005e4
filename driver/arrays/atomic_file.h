// Files that appear whole or not at all: written under a temporary name beside the target, then renamed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace hlorun {

// A set of files that are renamed together by Commit(); without it the destructor removes the temporaries, and so do
// the handlers of SIGINT and SIGTERM (InstallInterruptCleanup). Not thread-safe.
class AtomicFiles {
 public:
  AtomicFiles() = default;
  ~AtomicFiles();
  AtomicFiles(const AtomicFiles&) = delete;
  AtomicFiles& operator=(const AtomicFiles&) = delete;

  // Writes the parts, one after another, to a temporary for `path`; missing directories are made. Throws Error
  // (kResourceExhausted when the disk is full) naming the path.
  void Write(const std::string& path, std::vector<std::string_view> parts);
  // A temporary name for `path` that the caller writes itself; Commit() renames it.
  std::string Reserve(const std::string& path);
  void Commit();

 private:
  struct Pending {
    std::string temporary, path;
  };
  std::vector<Pending> pending_;
};

void WriteFileAtomically(const std::string& path, std::string_view contents);

// SIGINT and SIGTERM remove the temporaries of this process and end it with 128 + the signal's number.
void InstallInterruptCleanup();

}  // namespace hlorun
