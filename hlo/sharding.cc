#include "hlo/sharding.h"

#include <fmt/format.h>

#include <numeric>

#include "hlo/iota_order.h"

namespace hlorun::hlo {

std::vector<int64_t> Sharding::DeviceOrder() const {
  if (kind == Kind::kMaximal) return {maximal_device};
  if (!devices.empty()) return devices;
  return TransposedIota(iota_reshape_dims, iota_transpose_perm);
}

std::string Sharding::ToString() const {
  if (kind == Kind::kVerbatim) return verbatim;
  if (kind == Kind::kTuple) {
    std::string text = "{";
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) text += i % 5 == 0 ? fmt::format(", /*index={}*/", i) : ", ";
      text += elements[i].ToString();
    }
    return text + "}";
  }
  std::string body;
  switch (kind) {
    case Kind::kReplicated: body = "replicated"; break;
    case Kind::kMaximal: body = fmt::format("maximal device={}", maximal_device); break;
    case Kind::kManual: body = "manual"; break;
    case Kind::kUnknown: body = "unknown"; break;
    case Kind::kUnreduced: body = "unreduced"; break;
    default: {
      body = fmt::format("devices=[{}]", fmt::join(tile_dimensions, ","));
      if (!devices.empty()) {
        body += fmt::format("{}", fmt::join(devices, ","));
      } else {
        body += fmt::format("<=[{}]", fmt::join(iota_reshape_dims, ","));
        if (!iota_transpose_perm.empty()) body += fmt::format("T({})", fmt::join(iota_transpose_perm, ","));
      }
      if (replicate_on_last_tile_dim) body += " last_tile_dim_replicate";
      if (!last_tile_dims.empty()) body += fmt::format(" last_tile_dims={{{}}}", fmt::join(last_tile_dims, ", "));
    }
  }
  if (!shard_group.empty()) body += " " + shard_group;
  if (!metadata.empty()) body += " metadata=" + metadata;
  return "{" + body + "}";
}

}  // namespace hlorun::hlo
