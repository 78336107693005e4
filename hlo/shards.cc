#include "hlo/shards.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "hlo/error.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun::hlo {
namespace {

// Tiles along each dimension of the shape; those behind (copies, manual) are dropped.
std::vector<int64_t> TilesOf(const Shape& shape, const Sharding& sharding) {
  const auto rank = static_cast<size_t>(shape.rank());
  if (sharding.kind != Sharding::Kind::kTiled) return std::vector<int64_t>(rank, 1);
  if (sharding.tile_dimensions.size() < rank) {
    Invalid("the sharding {} has {} dimensions, the array {} has {}", sharding.ToString(),
            sharding.tile_dimensions.size(), shape.ToString(false), rank);
  }
  return {sharding.tile_dimensions.begin(), sharding.tile_dimensions.begin() + static_cast<int64_t>(rank)};
}

// Where the device's tile begins.
Dims StartOf(const Shape& whole, const Shape& part, const Sharding& sharding, int64_t device) {
  Dims start(static_cast<size_t>(whole.rank()), 0);
  if (sharding.kind != Sharding::Kind::kTiled) return start;
  const std::vector<int64_t> order = sharding.DeviceOrder();
  const auto at = std::find(order.begin(), order.end(), device);
  if (at == order.end()) Invalid("the sharding {} does not name device {}", sharding.ToString(), device);
  int64_t linear = at - order.begin();
  for (size_t d = sharding.tile_dimensions.size(); d-- > 0;) {
    const int64_t position = linear % sharding.tile_dimensions[d];
    linear /= sharding.tile_dimensions[d];
    if (d < start.size()) start[d] = position * part.dimensions()[d];
  }
  return start;
}

// Rows along the last dimension are copied at once. `to_part`: from the whole into the part, else back.
void CopyTile(const Shape& whole, const Shape& part, const Dims& start, int64_t width,
              const std::function<void(int64_t whole_byte, int64_t part_byte, int64_t bytes)>& copy) {
  const auto rank = static_cast<size_t>(whole.rank());
  if (rank == 0) return copy(0, 0, width);
  Dims extent(rank);
  for (size_t d = 0; d < rank; ++d) {
    extent[d] = std::min(part.dimensions()[d], whole.dimensions()[d] - start[d]);
    if (extent[d] <= 0) return;
  }
  const Dims whole_strides = whole.Strides(), part_strides = part.Strides();
  Dims rows = extent;
  rows.back() = 1;
  Dims index(rank, 0);
  do {
    int64_t from = start.back(), to = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
      from += (start[d] + index[d]) * whole_strides[d];
      to += index[d] * part_strides[d];
    }
    copy(from * width, to * width, extent.back() * width);
  } while (NextIndex(index, rows));
}

}  // namespace

Shape ShardShape(const Shape& whole, const Sharding& sharding) {
  const std::vector<int64_t> tiles = TilesOf(whole, sharding);
  Shape part = whole;
  for (size_t d = 0; d < tiles.size(); ++d)
    part.mutable_dimensions()[d] = (whole.dimensions()[d] + tiles[d] - 1) / tiles[d];
  return part;
}

Literal CutShard(const Literal& whole, const Sharding& sharding, int64_t device, std::byte padding) {
  const Shape shape = ShardShape(whole.shape(), sharding);
  if (shape.SameDimensions(whole.shape())) return whole;
  Literal part(shape.WithoutLayout());
  std::byte* to = part.mutable_data();
  std::fill_n(to, part.ByteSize(), padding);
  CopyTile(whole.shape(), shape, StartOf(whole.shape(), shape, sharding, device), BytesOf(shape.element_type()),
           [&](int64_t from, int64_t at, int64_t bytes) {
             std::memcpy(to + at, whole.data() + from, static_cast<size_t>(bytes));
           });
  return part;
}

Dims PartDimensions(const Dims& actual, const Shape& bound, const Sharding& sharding, int64_t device) {
  const Shape part = ShardShape(bound, sharding);
  const Dims start = StartOf(bound, part, sharding, device);
  Dims dimensions = part.dimensions();
  for (size_t d = 0; d < dimensions.size(); ++d)
    dimensions[d] = std::clamp<int64_t>(actual[d] - start[d], 0, dimensions[d]);
  return dimensions;
}

Literal CutBoundedShard(const Literal& whole, const Shape& bound, const Sharding& sharding, int64_t device) {
  const Shape shape(whole.element_type(), PartDimensions(whole.shape().dimensions(), bound, sharding, device));
  if (shape.SameDimensions(whole.shape())) return whole;
  Literal part(shape);
  std::byte* to = part.mutable_data();
  CopyTile(whole.shape(), shape, StartOf(bound, ShardShape(bound, sharding), sharding, device),
           BytesOf(shape.element_type()), [&](int64_t from, int64_t at, int64_t bytes) {
             std::memcpy(to + at, whole.data() + from, static_cast<size_t>(bytes));
           });
  return part;
}

Literal AtDimensions(const Literal& literal, const Dims& dimensions) {
  const Shape& from = literal.shape();
  if (from.dimensions() == dimensions) return literal;
  const Shape shape(from.element_type(), dimensions);
  Dims common = dimensions;
  for (size_t d = 0; d < common.size(); ++d) common[d] = std::min(common[d], from.dimensions()[d]);
  Literal resized(shape);
  CopyStrided(literal.data(), {0, from.Strides()}, resized.mutable_data(), {0, shape.Strides()}, common,
              BytesOf(shape.element_type()));
  return resized;
}

Literal JoinShards(std::span<const Literal> parts, const Sharding& sharding, const Shape& shape) {
  const Shape part_shape = ShardShape(shape, sharding);
  if (part_shape.SameDimensions(shape)) return parts[0];
  Literal whole(shape.WithoutLayout());
  std::byte* to = whole.mutable_data();
  std::set<Dims> done;
  for (size_t device = 0; device < parts.size(); ++device) {
    const Dims start = StartOf(shape, part_shape, sharding, static_cast<int64_t>(device));
    if (!done.insert(start).second) continue;
    CopyTile(shape, part_shape, start, BytesOf(shape.element_type()), [&](int64_t at, int64_t from, int64_t bytes) {
      std::memcpy(to + at, parts[device].data() + from, static_cast<size_t>(bytes));
    });
  }
  return whole;
}

}  // namespace hlorun::hlo
