#include "backends/opencl/runtime/probe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/companion.h"
#include "hlo/atomic_file.h"

namespace hlorun::opencl {
namespace {

constexpr int kTimeoutSeconds = 30;

// What the probe says (probe_main.cc): by its exit code, or by the signals of code that this device has not. Anything
// else, an end for want of memory or a device that is gone, says nothing of the device.
std::optional<bool> AnswerOf(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool crashed = signal == SIGSEGV || signal == SIGILL || signal == SIGBUS || signal == SIGFPE ||
                         signal == SIGABRT || signal == SIGTRAP || signal == SIGSYS;
    return crashed ? std::optional(false) : std::nullopt;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return std::nullopt;
  return WEXITSTATUS(status) == 0;
}

// Its answer, "no" where it has none within the limit; nothing where that says nothing of the device: it could not be
// started, or another part of the process waited for it (a handler of SIGCHLD, or SIG_IGN).
std::optional<bool> RunsCleanly(std::vector<std::string> command) {
  const pid_t child = Start(std::move(command));
  if (child < 0) return std::nullopt;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (ended != child) return std::nullopt;
  return AnswerOf(status);
}

// Held by one process of a node at a time, so that ranks that start together probe once. One that is stopped while it
// probes keeps the others for two probes' time: then they ask for themselves.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2 * kTimeoutSeconds);
    while (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

// The answer of hlorun-probe to `question`, asked once per driver.
bool Ask(const std::string& question, int platform_index, int device_index, const std::string& driver_key) {
  const std::string program = CompanionProgram("hlorun-probe", "HLORUN_PROBE");
  if (program.empty()) return false;
  const std::string folder = DefaultCacheDirectory() + "/probes";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = folder + "/" + question + "-" + HashText(driver_key);
  FileLock lock(path + ".lock");
  std::string answer;
  if (ReadWholeFile(path, answer) && (answer == "yes\n" || answer == "no\n")) return answer == "yes\n";
  const std::optional<bool> is_clean =
      RunsCleanly({program, question, std::to_string(platform_index), std::to_string(device_index)});
  if (!is_clean) return false;  // for this process
  try {
    WriteFileAtomically(path, *is_clean ? "yes\n" : "no\n");
  } catch (const std::exception&) {
    // A cache that cannot be written only costs the next process another probe.
  }
  return *is_clean;
}

}  // namespace

bool ProbeRawPointers(int platform_index, int device_index, const std::string& driver_key) {
  return Ask("raw-pointers", platform_index, device_index, driver_key);
}

bool ProbeNativeCalls(int platform_index, int device_index, const std::string& driver_key) {
  return Ask("native-calls", platform_index, device_index, driver_key);
}

bool ProbeBf16Dot(const std::string& form, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("bf16-words-" + form, platform_index, device_index, driver_key);
}

bool ProbeS8Dot(const std::string& form, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("s8-" + form, platform_index, device_index, driver_key);
}

bool ProbeHalves(const std::string& form, int64_t lanes, int platform_index, int device_index,
                 const std::string& driver_key) {
  return Ask("halves-" + form + "-" + std::to_string(lanes), platform_index, device_index, driver_key);
}

bool ProbeMatrixUnit(const std::string& type, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("unit-" + type, platform_index, device_index, driver_key);
}

bool ProbeFragments(const std::string& form, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("fragments-" + form, platform_index, device_index, driver_key);
}

bool ProbeS8Fragments(const std::string& form, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("fragments-s8-" + form, platform_index, device_index, driver_key);
}

bool ProbeWideFragments(const std::string& form, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("fragments-wide-" + form, platform_index, device_index, driver_key);
}

bool ProbeSubGroupMoves(const std::string& form, int64_t size, int platform_index, int device_index,
                        const std::string& driver_key) {
  return Ask("moves-" + form + "-" + std::to_string(size), platform_index, device_index, driver_key);
}

}  // namespace hlorun::opencl
