// The iota form of device lists and replica groups, as in XLA's IotaTileAssignment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hlorun::hlo {

// transpose(reshape(iota, reshape_dims), permutation), flattened. An empty permutation is the identity.
std::vector<int64_t> TransposedIota(std::span<const int64_t> reshape_dims, std::span<const int64_t> permutation);

}  // namespace hlorun::hlo
