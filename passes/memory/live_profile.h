// Live bytes by time, changed a range at a time: where the most are, how many in a range. All in O(log n).
#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/live_ranges.h"

namespace hlorun::passes {

class LiveProfile {
 public:
  // Times 0 to `end`, inclusive; no bytes.
  explicit LiveProfile(int64_t end);

  void Add(const Range& range, int64_t bytes);
  // The most in `range`, which is not empty.
  int64_t MostIn(const Range& range) const;
  int64_t At(int64_t time) const { return MostIn({time, time}); }
  int64_t most() const { return most_[1]; }
  int64_t TimeOfMost() const;  // the first

 private:
  void Add(size_t node, const Range& of_node, const Range& range, int64_t bytes);
  int64_t MostIn(size_t node, const Range& of_node, const Range& range) const;

  // A binary tree, node 1 its root, 2n and 2n + 1 below n. most_ is of the node's times without what was added to the
  // whole of a node above it.
  int64_t leaves_ = 1;
  std::vector<int64_t> most_, added_;
};

}  // namespace hlorun::passes
