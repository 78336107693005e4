#include "driver/arrays/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "hlo/error.h"

namespace hlorun {
namespace {

// Temporaries that a signal handler must be able to unlink: fixed storage, because a handler may not allocate.
constexpr int kSlots = 1024;
constexpr int kPathBytes = 1024;
char g_paths[kSlots][kPathBytes];
std::atomic<bool> g_used[kSlots];

void Remember(const std::string& path) {
  if (path.size() >= kPathBytes) return;
  for (int i = 0; i < kSlots; ++i) {
    bool expected = false;
    if (g_paths[i][0] == '\0' && g_used[i].compare_exchange_strong(expected, true)) {
      std::memcpy(g_paths[i], path.c_str(), path.size() + 1);
      return;
    }
  }
}

void Forget(const std::string& path) {
  for (int i = 0; i < kSlots; ++i) {
    if (g_used[i] && path == g_paths[i]) {
      g_paths[i][0] = '\0';
      g_used[i] = false;
      return;
    }
  }
}

void OnInterrupt(int signal) {
  for (int i = 0; i < kSlots; ++i) {
    if (g_used[i] && g_paths[i][0] != '\0') unlink(g_paths[i]);
  }
  _exit(128 + signal);
}

[[noreturn]] void FailWriting(const std::string& path, int error) {
  const ErrorCode code = error == ENOSPC || error == EDQUOT ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument;
  Fail(code, "cannot write {}: {}", path, std::strerror(error));
}

}  // namespace

void InstallInterruptCleanup() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

AtomicFiles::~AtomicFiles() {
  for (const Pending& pending : pending_) {
    unlink(pending.temporary.c_str());
    Forget(pending.temporary);
  }
}

std::string AtomicFiles::Reserve(const std::string& path) {
  const std::filesystem::path target(path);
  std::error_code error;
  if (target.has_parent_path()) {
    std::filesystem::create_directories(target.parent_path(), error);
    if (error) Invalid("cannot make the directory {}: {}", target.parent_path().string(), error.message());
  }
  const std::filesystem::path temporary =
      target.parent_path() / fmt::format(".{}.{}.{}.tmp", target.filename().string(), getpid(), pending_.size());
  Remember(temporary.string());
  pending_.push_back({temporary.string(), path});
  return temporary.string();
}

void AtomicFiles::Write(const std::string& path, std::vector<std::string_view> parts) {
  const std::string temporary = Reserve(path);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) FailWriting(path, errno);
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const ssize_t written = write(file, part.data(), part.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        close(file);
        FailWriting(path, error);
      }
      part.remove_prefix(static_cast<size_t>(written));
    }
  }
  if (close(file) != 0) FailWriting(path, errno);
}

void AtomicFiles::Commit() {
  for (const Pending& pending : pending_) {
    if (std::rename(pending.temporary.c_str(), pending.path.c_str()) != 0) FailWriting(pending.path, errno);
    Forget(pending.temporary);
  }
  pending_.clear();
}

void WriteFileAtomically(const std::string& path, std::string_view contents) {
  AtomicFiles files;
  files.Write(path, {contents});
  files.Commit();
}

}  // namespace hlorun
