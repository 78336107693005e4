// What a team's kernels are told: instead of an argument for each array, which PoCL copies in memory of its own for
// every launch (0.1 us each), one pointer to a table of 64-bit words. Only where devices take plain host pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// The table of one kernel object: a share's first group and the one after its last, which of the functions behind one
// kernel to call, then where the kernel's arrays lie. Not synchronised; the memory stays where it is when moved.
class LaunchTable {
 public:
  static constexpr size_t kFirstGroup = 0, kEndGroup = 1, kWhich = 2, kArrays = 3;
  static constexpr int64_t kWhere = -1;  // instead of a function's number: the kernel answers where its function lies

  LaunchTable() = default;
  LaunchTable(size_t arrays, int64_t which) : words_(kArrays + arrays + kOwnLine) {
    words_[kWhich] = static_cast<cl_ulong>(which);
  }
  const void* data() const { return words_.data(); }
  uintptr_t answer() const { return words_[kFirstGroup]; }
  void SetGroups(int64_t first, int64_t end) {
    words_[kFirstGroup] = static_cast<cl_ulong>(first);
    words_[kEndGroup] = static_cast<cl_ulong>(end);
  }
  void SetArray(size_t number, const void* place) { words_[kArrays + number] = reinterpret_cast<uintptr_t>(place); }

 private:
  static constexpr size_t kOwnLine = 8;  // words that keep the next table, another thread's, off the last cache line

  std::vector<cl_ulong> words_;
};

}  // namespace hlorun::opencl
