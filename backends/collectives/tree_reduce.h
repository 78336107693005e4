// The order in which reductions associate: a binary tree over the position in the replica group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "backends/collectives/communicator.h"

namespace hlorun::collectives {

// Reduces parts[0..n) elementwise into `out` (`count` elements). tree(lo, hi) = tree(lo, mid) op tree(mid, hi), where
// mid - lo is the largest power of two below hi - lo. f16 and bf16 are reduced in f32 and rounded once, integers wrap
// at their width. `out` may be one of the parts. Throws kUnimplemented for a type without that operation.
void TreeReduce(std::span<const std::byte* const> parts, std::byte* out, int64_t count, const Reduction& reduction);
inline void TreeReduce(std::initializer_list<const std::byte*> parts, std::byte* out, int64_t count,
                       const Reduction& reduction) {
  TreeReduce(std::span<const std::byte* const>(parts.begin(), parts.size()), out, count, reduction);
}

}  // namespace hlorun::collectives
