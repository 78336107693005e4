// Permutations as transposes have them: dimension i of the result is dimension permutation[i] of the operand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hlorun::hlo {

inline bool IsIdentity(const std::vector<int64_t>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

// transpose(transpose(x, first), second) as one.
inline std::vector<int64_t> Composed(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  std::vector<int64_t> both;
  both.reserve(second.size());
  for (int64_t d : second) both.push_back(first[static_cast<size_t>(d)]);
  return both;
}

}  // namespace hlorun::hlo
