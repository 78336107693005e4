#include "hlo/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "hlo/error.h"

namespace hlorun {
namespace {

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads them");

// Temporaries that a signal handler must be able to unlink: fixed storage, because a handler may not allocate.
constexpr int kSlots = 1024, kNoSlot = -1;
constexpr size_t kPathBytes = 4096;
enum SlotState : int { kFree, kFilling, kUsed };
char g_paths[kSlots][kPathBytes];
std::atomic<int> g_states[kSlots];

// Files are being renamed: a signal waits until all have their names or none has.
std::atomic<int> g_commits{0};
std::atomic<int> g_late_signal{0};

// The slot that holds it, which whoever asked frees; kNoSlot where there is none left.
int Remember(const std::string& path) {
  if (path.size() >= kPathBytes) return kNoSlot;
  for (int i = 0; i < kSlots; ++i) {
    int expected = kFree;
    if (!g_states[i].compare_exchange_strong(expected, kFilling)) continue;
    std::memcpy(g_paths[i], path.c_str(), path.size() + 1);
    g_states[i] = kUsed;
    return i;
  }
  return kNoSlot;
}

void Forget(int slot) {
  if (slot != kNoSlot) g_states[slot] = kFree;
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

// Files that are open without a name, in all objects: descriptors are few.
constexpr int kMostNameless = 200;
std::atomic<int> g_nameless{0};

// Tells process ids apart that mean different processes: another host, another start of it, another container.
const std::string& NodeTag() {
  static const std::string tag = [] {
    char host[256] = "", space[64] = "";
    gethostname(host, sizeof host - 1);
    if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = '\0';
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return fmt::format("{:08x}", std::hash<std::string>()(std::string(host) + space + boot) & 0xffffffff);
  }();
  return tag;
}

std::string TemporaryName(const std::string& name) {
  return fmt::format(".{}.{}.{}.{}.tmp", name, NodeTag(), getpid(), g_serial++);
}

// The process in ".NAME.NODE.PID.SERIAL.tmp" if it is one of this node, else 0.
pid_t WriterOf(const std::string& name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!name.starts_with(".") || !name.ends_with(kEnd)) return 0;
  const size_t tag = name.find("." + NodeTag() + ".");
  if (tag == std::string::npos) return 0;
  pid_t pid = 0;
  const char* begin = name.data() + tag + NodeTag().size() + 2;
  const auto [after, error] = std::from_chars(begin, name.data() + name.size(), pid);
  return error == std::errc() && *after == '.' ? pid : 0;
}

// Removes what processes that are dead left in the folder. Each folder is looked at once a process.
void RemoveStale(const std::filesystem::path& folder) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!seen.insert(folder.string()).second) return;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const pid_t writer = WriterOf(it->path().filename().string());
    std::error_code gone;
    if (writer > 0 && kill(writer, 0) != 0 && errno == ESRCH) std::filesystem::remove_all(it->path(), gone);
  }
}

std::string NameOf(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

// A file in the folder that has no name and goes with this process; -1 where there is no such thing.
int OpenNameless(const std::filesystem::path& folder) {
  if (g_nameless >= kMostNameless) return -1;
  const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return -1;
  if (access(NameOf(file).c_str(), F_OK) != 0) {  // no /proc: it could never get a name
    close(file);
    return -1;
  }
  ++g_nameless;
  return file;
}

void CloseNameless(int& descriptor) {
  if (descriptor < 0) return;
  close(descriptor);
  descriptor = -1;
  --g_nameless;
}

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

std::string MakeTemporaryFolder(const std::string& folder, const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  RemoveStale(folder);
  std::string path = folder + "/" + TemporaryName(name);
  return mkdir(path.c_str(), 0700) == 0 ? path : "";
}

AtomicFiles::~AtomicFiles() {
  for (Pending& pending : pending_) {
    CloseNameless(pending.nameless);
    unlink(pending.temporary.c_str());
    Forget(pending.slot);
  }
}

AtomicFiles::Pending& AtomicFiles::Add(const std::string& path) {
  const std::filesystem::path target(path);
  std::error_code error;
  std::filesystem::path folder = target.parent_path();
  if (folder.empty()) folder = ".";
  std::filesystem::create_directories(folder, error);
  if (error) Invalid("cannot make the directory {}: {}", folder.string(), error.message());
  RemoveStale(folder);
  const std::filesystem::path temporary = folder / TemporaryName(target.filename().string());
  return pending_.emplace_back(Pending{temporary.string(), path, Remember(temporary.string())});
}

std::string AtomicFiles::Reserve(const std::string& path) { return Add(path).temporary; }

void AtomicFiles::Write(const std::string& path, std::vector<std::string_view> parts) {
  Pending& pending = Add(path);
  pending.nameless = OpenNameless(std::filesystem::path(pending.temporary).parent_path());
  const bool named = pending.nameless < 0;
  const int file =
      named ? open(pending.temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : pending.nameless;
  if (file < 0) FailWriting(path, errno);
  const auto fail = [&](int error) {
    if (named) close(file);
    FailWriting(path, error);
  };
  if (fault_ && FaultHits(*fault_)) {
    const bool started = !parts.empty() && write(file, parts.front().data(), parts.front().size() / 2) >= 0;
    fail(started ? ENOSPC : EIO);
  }
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const ssize_t written = write(file, part.data(), part.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(errno);
      part.remove_prefix(static_cast<size_t>(written));
    }
  }
  if (named && close(file) != 0) FailWriting(path, errno);
}

void AtomicFiles::Commit() {
  const CommitScope scope;
  for (Pending& pending : pending_) {
    if (pending.nameless >= 0) {
      // A link cannot replace a file, a rename can.
      if (linkat(AT_FDCWD, NameOf(pending.nameless).c_str(), AT_FDCWD, pending.temporary.c_str(), AT_SYMLINK_FOLLOW) !=
          0) {
        FailWriting(pending.path, errno);
      }
      CloseNameless(pending.nameless);
    }
    if (std::rename(pending.temporary.c_str(), pending.path.c_str()) != 0) FailWriting(pending.path, errno);
  }
  for (const Pending& pending : pending_) Forget(pending.slot);
  pending_.clear();
}

void WriteFileAtomically(const std::string& path, std::vector<std::string_view> parts, std::optional<Fault> fault) {
  AtomicFiles files(fault);
  files.Write(path, std::move(parts));
  files.Commit();
}

}  // namespace hlorun
