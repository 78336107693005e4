// Files that appear whole or not at all: written without a name, or under a temporary one beside the target, then
// renamed.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/fault.h"

namespace hlorun {

// A set of files that are renamed together by Commit(); without it the destructor removes the temporaries, and so do
// the handlers of SIGINT and SIGTERM (InstallInterruptCleanup). An object is one thread's; threads may write the same
// path.
//
// A process that is killed leaves nothing either: where the file system allows, files have no name until Commit(), and
// what dead processes of this node left under temporary names goes when the next one writes into the folder.
class AtomicFiles {
 public:
  // `fault`: the point at which tests fill the disk.
  explicit AtomicFiles(std::optional<Fault> fault = std::nullopt) : fault_(fault) {}
  ~AtomicFiles();
  AtomicFiles(const AtomicFiles&) = delete;
  AtomicFiles& operator=(const AtomicFiles&) = delete;

  // Writes the parts, one after another, to a temporary for `path`; missing folders are made. Throws Error
  // (kResourceExhausted when the disk is full) naming the path.
  void Write(const std::string& path, std::vector<std::string_view> parts);
  // A temporary name for `path` that the caller writes itself; Commit() renames it.
  std::string Reserve(const std::string& path);
  void Commit();

 private:
  struct Pending {
    std::string temporary, path;
    int slot;           // that tells signal handlers of the temporary
    int nameless = -1;  // an open file that has no name yet
  };
  Pending& Add(const std::string& path);
  std::vector<Pending> pending_;
  std::optional<Fault> fault_;
};

// One file, of parts one after another.
void WriteFileAtomically(const std::string& path, std::vector<std::string_view> parts,
                         std::optional<Fault> fault = std::nullopt);
inline void WriteFileAtomically(const std::string& path, std::string_view contents) {
  WriteFileAtomically(path, std::vector<std::string_view>{contents});
}

// A new folder of this process's in `folder`, for itself and those it starts; empty where none can be made. The caller
// removes it; where the process dies before, the next one that makes one or writes a file there does.
std::string MakeTemporaryFolder(const std::string& folder, const std::string& name);

// SIGINT and SIGTERM remove the temporaries of this process and end it with 128 + the signal's number; while files are
// being renamed the signal waits, so that a set appears whole or not at all.
void InstallInterruptCleanup();
// What the handlers do, for whoever is about to leave by _exit.
void RemoveTemporaries();

}  // namespace hlorun
