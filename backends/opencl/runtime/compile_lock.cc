#include "backends/opencl/runtime/compile_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "backends/opencl/runtime/cache_directory.h"

namespace hlorun::opencl {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kPoll{5};
constexpr size_t kDigits = 3;  // of a source's hash, in its lock's name: so few files, and so few that share one

}  // namespace

CompileLock::CompileLock(const std::string& folder, std::span<const std::string_view> sources) {
  std::error_code error;
  std::filesystem::create_directories(folder + "/locks", error);
  // In one order, each once: holders of some never wait for each other in a circle.
  std::set<std::string> names;
  for (std::string_view source : sources) names.insert(HashText(source).substr(0, kDigits));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (const std::string& name : names) {
    const int descriptor = open((folder + "/locks/" + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) continue;
    descriptors_.push_back(descriptor);
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
      waited_ = true;
      if (std::chrono::steady_clock::now() > end) return;
      std::this_thread::sleep_for(kPoll);
    }
  }
}

CompileLock::~CompileLock() {
  for (int descriptor : descriptors_) close(descriptor);
}

}  // namespace hlorun::opencl
