#include "passes/memory/live_profile.h"

#include <algorithm>

#include "hlo/error.h"

namespace hlorun::passes {

LiveProfile::LiveProfile(int64_t end) {
  while (leaves_ <= end) leaves_ *= 2;
  most_.resize(static_cast<size_t>(2 * leaves_));
  added_.resize(static_cast<size_t>(2 * leaves_));
}

void LiveProfile::Add(const Range& range, int64_t bytes) {
  if (range.begin <= range.end) Add(1, {0, leaves_ - 1}, range, bytes);
}

void LiveProfile::Add(size_t node, const Range& of_node, const Range& range, int64_t bytes) {
  if (!of_node.Overlaps(range)) return;
  if (range.begin <= of_node.begin && of_node.end <= range.end) {
    most_[node] += bytes;
    added_[node] += bytes;
    return;
  }
  const int64_t middle = (of_node.begin + of_node.end) / 2;
  Add(2 * node, {of_node.begin, middle}, range, bytes);
  Add(2 * node + 1, {middle + 1, of_node.end}, range, bytes);
  most_[node] = added_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

int64_t LiveProfile::MostIn(const Range& range) const {
  HLORUN_CHECK(range.begin <= range.end && range.begin >= 0 && range.end < leaves_);
  return MostIn(1, {0, leaves_ - 1}, range);
}

int64_t LiveProfile::MostIn(size_t node, const Range& of_node, const Range& range) const {
  if (range.begin <= of_node.begin && of_node.end <= range.end) return most_[node];
  const int64_t middle = (of_node.begin + of_node.end) / 2;
  const Range left{of_node.begin, middle}, right{middle + 1, of_node.end};
  if (!left.Overlaps(range)) return added_[node] + MostIn(2 * node + 1, right, range);
  if (!right.Overlaps(range)) return added_[node] + MostIn(2 * node, left, range);
  return added_[node] + std::max(MostIn(2 * node, left, range), MostIn(2 * node + 1, right, range));
}

int64_t LiveProfile::TimeOfMost() const {
  size_t node = 1;
  while (static_cast<int64_t>(node) < leaves_) node = most_[2 * node] >= most_[2 * node + 1] ? 2 * node : 2 * node + 1;
  return static_cast<int64_t>(node) - leaves_;
}

}  // namespace hlorun::passes
