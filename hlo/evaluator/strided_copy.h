// Copies between arrays whose elements lie at arbitrary strides: what most ops that only move data come down to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hlo/literal.h"

namespace hlorun::hlo {

// One side of a copy. Strides and offset count elements; a stride may be 0 (read the same element again) or negative.
struct StridedView {
  int64_t offset = 0;
  Dims strides;
};

// to[to.offset + i * to.strides] = from[from.offset + i * from.strides] for every index i below `dimensions`.
void CopyStrided(const std::byte* from, const StridedView& from_view, std::byte* to, const StridedView& to_view,
                 std::span<const int64_t> dimensions, int element_bytes);

}  // namespace hlorun::hlo
