#include "backends/opencl/runtime/cache_directory.h"

#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hlo/error.h"

namespace hlorun::opencl {

std::string DefaultCacheDirectory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (std::string dir = variable("HLORUN_CACHE_DIR"); !dir.empty()) return dir;
  if (std::string dir = variable("XDG_CACHE_HOME"); !dir.empty()) return dir + "/hlorun";
  if (std::string dir = variable("HOME"); !dir.empty()) return dir + "/.cache/hlorun";
  return "/tmp/hlorun-" + std::to_string(getuid());
}

void WriteFileAtomically(const std::string& path, std::string_view contents) { WriteFileAtomically(path, {&contents, 1}); }

void WriteFileAtomically(const std::string& path, std::span<const std::string_view> parts) {
  static std::atomic<int> serial{0};
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string temporary = fmt::format("{}.tmp.{}.{}", path, getpid(), serial++);
  errno = 0;
  {
    std::ofstream file(temporary, std::ios::binary);
    for (std::string_view part : parts) file.write(part.data(), static_cast<std::streamsize>(part.size()));
    file.close();
    if (file.good() && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  }
  const int reason = errno;
  std::filesystem::remove(temporary, ignored);
  Fail(reason == ENOSPC || reason == EDQUOT ? ErrorCode::kResourceExhausted : ErrorCode::kFailedPrecondition,
       "cannot write {}: {}", path, std::strerror(reason));
}

bool ReadWholeFile(const std::string& path, std::string& contents) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream text;
  text << file.rdbuf();
  contents = std::move(text).str();
  return !file.bad();
}

std::string HashText(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace hlorun::opencl
