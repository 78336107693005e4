// Parts of arrays by device, and whole arrays from parts.
#pragma once

#include <cstddef>
#include <span>

#include "hlo/literal.h"
#include "hlo/sharding.h"

namespace hlorun::hlo {

// A dimension of n elements in k tiles lies in parts of ceil(n / k); the last ones are padded. Shardings that are not
// tiled (replicated, maximal, manual, unknown) leave arrays whole. Throws Error when the sharding has fewer dimensions
// than the shape, or does not name the device.
Shape ShardShape(const Shape& whole, const Sharding& sharding);

// The part that `device` holds; every byte of padding is `padding`.
Literal CutShard(const Literal& whole, const Sharding& sharding, int64_t device, std::byte padding = std::byte{0});

// The dimensions of `device`'s part of an array that is `actual` where `bound` is the most: `bound` is cut, and a part
// has what lies in its piece. It may be empty.
Dims PartDimensions(const Dims& actual, const Shape& bound, const Sharding& sharding, int64_t device);
// That part, without padding.
Literal CutBoundedShard(const Literal& whole, const Shape& bound, const Sharding& sharding, int64_t device);

// The array with other dimensions: elements keep their indices, those beyond go, new ones are zero.
Literal AtDimensions(const Literal& literal, const Dims& dimensions);

// The whole array of `shape` from the parts of devices 0, 1, ...; copies are taken from the first device that has them.
Literal JoinShards(std::span<const Literal> parts, const Sharding& sharding, const Shape& shape);

}  // namespace hlorun::hlo
