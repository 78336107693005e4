#include "hlo/attributes.h"

#include "hlo/iota_order.h"

namespace hlorun::hlo {

std::vector<std::vector<int64_t>> ReplicaGroups::Expanded() const {
  if (group_count == 0) return groups;
  const std::vector<int64_t> order = TransposedIota(reshape_dims, transpose_permutation);
  HLORUN_CHECK(static_cast<int64_t>(order.size()) == group_count * group_size);
  std::vector<std::vector<int64_t>> expanded;
  for (int64_t g = 0; g < group_count; ++g) {
    expanded.emplace_back(order.begin() + g * group_size, order.begin() + (g + 1) * group_size);
  }
  return expanded;
}

}  // namespace hlorun::hlo
