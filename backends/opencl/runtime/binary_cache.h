// Compiled programs on disk, shared by all processes of a user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlorun::opencl {

// Entries are checksummed and written under a temporary name; a corrupt one reads as absent and is removed. The folder
// is kept below `limit_bytes` by removing what was not used for longest. Safe under concurrent threads and processes.
class BinaryCache {
 public:
  static constexpr int64_t kDefaultLimit = int64_t{1} << 30;

  explicit BinaryCache(std::string folder, int64_t limit_bytes = kDefaultLimit);

  // `key` is everything that the binary depends on, of any length.
  bool Load(std::string_view key, std::string& binary) const;
  // A disk that cannot be written makes no error: the cache is then of no use, and nothing else.
  void Store(std::string_view key, std::string_view binary) const;
  void Remove(std::string_view key) const;
  std::string PathOf(std::string_view key) const;

 private:
  void KeepBelowLimit() const;

  std::string folder_;
  int64_t limit_bytes_;
};

}  // namespace hlorun::opencl
