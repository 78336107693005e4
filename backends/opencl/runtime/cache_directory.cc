#include "backends/opencl/runtime/cache_directory.h"

#include <unistd.h>
#include <xxhash.h>

#include <cstdlib>
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
