#include "backends/opencl/runtime/binary_cache.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "backends/opencl/runtime/cache_directory.h"
#include "hlo/atomic_file.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8] = {'h', 'l', 'o', 'b', 'i', 'n', '0', '1'};
  uint64_t key = 0;  // guards against a collision of file names
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  bool operator==(const Header&) const = default;
};

Header HeaderOf(std::string_view key, std::string_view binary) {
  Header header;
  header.key = XXH3_64bits(key.data(), key.size());
  header.bytes = binary.size();
  header.checksum = XXH3_64bits(binary.data(), binary.size());
  return header;
}

}  // namespace

BinaryCache::BinaryCache(std::string folder, int64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

std::string BinaryCache::PathOf(std::string_view key) const { return folder_ + "/" + HashText(key) + ".bin"; }

bool BinaryCache::Load(std::string_view key, std::string& binary) const {
  const std::string path = PathOf(key);
  std::string file;
  if (!ReadWholeFile(path, file)) return false;
  if (FaultHits(Fault::kCacheRead) && !file.empty()) file.back() = static_cast<char>(file.back() ^ 1);
  Header header;
  if (file.size() >= sizeof(header)) std::memcpy(&header, file.data(), sizeof(header));
  std::string contents = file.size() >= sizeof(header) ? file.substr(sizeof(header)) : "";
  std::error_code ignored;
  if (file.size() < sizeof(header) || !(header == HeaderOf(key, contents))) {
    fs::remove(path, ignored);
    return false;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // marks it as used
  binary = std::move(contents);
  return true;
}

void BinaryCache::Store(std::string_view key, std::string_view binary) const {
  const Header header = HeaderOf(key, binary);
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file += binary;
  try {
    WriteFileAtomically(PathOf(key), {file}, Fault::kCacheWrite);
  } catch (const Error&) {
    return;
  }
  KeepBelowLimit();
}

void BinaryCache::Remove(std::string_view key) const {
  std::error_code ignored;
  fs::remove(PathOf(key), ignored);
}

void BinaryCache::KeepBelowLimit() const {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    int64_t bytes;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  // Other processes add and remove files meanwhile: whatever cannot be read is skipped.
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    Entry entry{it->path(), it->last_write_time(gone), 0};
    if (!gone) entry.bytes = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    total += entry.bytes;
    entries.push_back(std::move(entry));
  }
  if (total <= limit_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_ / 10 * 9) return;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total -= entry.bytes;
  }
}

}  // namespace hlorun::opencl
