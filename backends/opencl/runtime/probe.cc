#include "backends/opencl/runtime/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "backends/opencl/runtime/cache_directory.h"
#include "hlo/atomic_file.h"

extern char** environ;

namespace hlorun::opencl {
namespace {

constexpr int kTimeoutSeconds = 30;

// $HLORUN_PROBE, beside this code (a build folder, bin/, lib/), or where it was built or installed.
std::string ProbeProgram() {
  std::vector<std::string> candidates;
  if (const char* path = std::getenv("HLORUN_PROBE")) candidates.push_back(path);
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&ProbeProgram), &info) != 0 && info.dli_fname != nullptr) {
    const std::string folder = std::filesystem::path(info.dli_fname).parent_path().string();
    candidates.push_back(folder + "/hlorun-probe");
    candidates.push_back(folder + "/../libexec/hlorun/hlorun-probe");
  }
  candidates.push_back(HLORUN_PROBE_BUILT);
  candidates.push_back(HLORUN_PROBE_INSTALLED);
  for (const std::string& path : candidates) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

// Exit status 0 within the limit.
bool RunsCleanly(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  pid_t child = 0;
  const int spawned = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Held by one process of a node at a time, so that ranks that start together probe once.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (file_ >= 0) flock(file_, LOCK_EX);
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
  const std::string program = ProbeProgram();
  if (program.empty()) return false;
  const std::string folder = DefaultCacheDirectory() + "/probes";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = folder + "/" + question + "-" + HashText(driver_key);
  FileLock lock(path + ".lock");
  std::string answer;
  if (ReadWholeFile(path, answer) && (answer == "yes\n" || answer == "no\n")) return answer == "yes\n";
  const bool yes = RunsCleanly({program, question, std::to_string(platform_index), std::to_string(device_index)});
  try {
    WriteFileAtomically(path, yes ? "yes\n" : "no\n");
  } catch (const std::exception&) {
    // A cache that cannot be written only costs the next process another probe.
  }
  return yes;
}

}  // namespace

bool ProbeRawPointers(int platform_index, int device_index, const std::string& driver_key) {
  return Ask("raw-pointers", platform_index, device_index, driver_key);
}

bool ProbeBf16Dot(const std::string& form, int platform_index, int device_index, const std::string& driver_key) {
  return Ask("bf16-" + form, platform_index, device_index, driver_key);
}

}  // namespace hlorun::opencl
