#include "hlo/atomic_file.h"

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

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads them");

// Temporaries that a signal handler must be able to unlink: fixed storage, because a handler may not allocate.
constexpr int kSlots = 1024;
constexpr size_t kPathBytes = 4096;
enum SlotState : int { kFree, kFilling, kUsed };
char g_paths[kSlots][kPathBytes];
std::atomic<int> g_states[kSlots];

// Files are being renamed: a signal waits until all have their names or none has.
std::atomic<int> g_commits{0};
std::atomic<int> g_late_signal{0};

void Remember(const std::string& path) {
  if (path.size() >= kPathBytes) return;
  for (int i = 0; i < kSlots; ++i) {
    int expected = kFree;
    if (!g_states[i].compare_exchange_strong(expected, kFilling)) continue;
    std::memcpy(g_paths[i], path.c_str(), path.size() + 1);
    g_states[i] = kUsed;
    return;
  }
}

void Forget(const std::string& path) {
  for (int i = 0; i < kSlots; ++i) {
    if (g_states[i] == kUsed && path == g_paths[i]) {
      g_states[i] = kFree;
      return;
    }
  }
}

void OnInterrupt(int signal) {
  if (g_commits > 0) {
    g_late_signal = signal;
    return;
  }
  RemoveTemporaries();
  _exit(128 + signal);
}

// While one lives, SIGINT and SIGTERM wait.
struct CommitScope {
  CommitScope() { ++g_commits; }
  ~CommitScope() {
    if (--g_commits == 0 && g_late_signal != 0) OnInterrupt(g_late_signal);
  }
};

// Of one process: two threads may write the same path.
std::atomic<int> g_serial{0};

[[noreturn]] void FailWriting(const std::string& path, int error) {
  const ErrorCode code =
      error == ENOSPC || error == EDQUOT ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument;
  Fail(code, "cannot write {}: {}", path, std::strerror(error));
}

}  // namespace

void RemoveTemporaries() {
  for (int i = 0; i < kSlots; ++i) {
    if (g_states[i] == kUsed) unlink(g_paths[i]);
  }
}

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
      target.parent_path() / fmt::format(".{}.{}.{}.tmp", target.filename().string(), getpid(), g_serial++);
  Remember(temporary.string());
  pending_.push_back({temporary.string(), path});
  return temporary.string();
}

void AtomicFiles::Write(const std::string& path, std::vector<std::string_view> parts) {
  const std::string temporary = Reserve(path);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) FailWriting(path, errno);
  if (fault_ && FaultHits(*fault_)) {
    const bool started = !parts.empty() && write(file, parts.front().data(), parts.front().size() / 2) >= 0;
    close(file);
    FailWriting(path, started ? ENOSPC : EIO);
  }
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
  const CommitScope scope;
  for (const Pending& pending : pending_) {
    if (std::rename(pending.temporary.c_str(), pending.path.c_str()) != 0) FailWriting(pending.path, errno);
  }
  for (const Pending& pending : pending_) Forget(pending.temporary);
  pending_.clear();
}

void WriteFileAtomically(const std::string& path, std::vector<std::string_view> parts, std::optional<Fault> fault) {
  AtomicFiles files(fault);
  files.Write(path, std::move(parts));
  files.Commit();
}

}  // namespace hlorun
