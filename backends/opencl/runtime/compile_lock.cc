#include "backends/opencl/runtime/compile_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "backends/opencl/runtime/cache_directory.h"

namespace hlorun::opencl {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kPoll{5};

}  // namespace

CompileLock::CompileLock(const std::string& folder, std::string_view source) {
  std::error_code error;
  std::filesystem::create_directories(folder + "/locks", error);
  const std::string path = folder + "/locks/" + HashText(source).substr(0, 2);
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0) return;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    waited_ = true;
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(kPoll);
  }
}

CompileLock::~CompileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace hlorun::opencl
