// Dimensions that generators of random programs draw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace hlorun::testing_support {

using Dims = std::vector<int64_t>;

inline int64_t Below(std::mt19937_64& random, int64_t n) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
}

inline int64_t Count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

inline std::vector<size_t> RandomOrder(std::mt19937_64& random, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

inline Dims Permuted(const Dims& dims, const std::vector<size_t>& order) {
  Dims permuted;
  for (const size_t d : order) permuted.push_back(dims[d]);
  return permuted;
}

// `count` elements, cut `cuts` times at random divisors.
inline Dims RandomFactors(std::mt19937_64& random, int64_t count, int64_t cuts) {
  Dims dims;
  for (; cuts > 0; --cuts) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= count; ++d) {
      if (count % d == 0) divisors.push_back(d);
    }
    dims.push_back(divisors[static_cast<size_t>(Below(random, static_cast<int64_t>(divisors.size())))]);
    count /= dims.back();
  }
  dims.push_back(count);
  return dims;
}

// `dims` with a dimension of 1 to 9 in between; map[d]: where dimension d has gone.
struct Widened {
  Dims dims, map;
};
inline Widened WithRandomDimension(std::mt19937_64& random, const Dims& dims) {
  Widened wide{dims, Dims(dims.size())};
  const auto at = static_cast<size_t>(Below(random, static_cast<int64_t>(dims.size()) + 1));
  wide.dims.insert(wide.dims.begin() + static_cast<int64_t>(at), 1 + Below(random, 9));
  for (size_t d = 0; d < wide.map.size(); ++d) wide.map[d] = static_cast<int64_t>(d < at ? d : d + 1);
  return wide;
}

}  // namespace hlorun::testing_support
