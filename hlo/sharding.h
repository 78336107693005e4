// HloSharding as HLO text and protos carry it (v1). Only read, kept and written here; spmd passes give it meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hlorun::hlo {

struct Sharding {
  enum class Kind : uint8_t { kReplicated, kMaximal, kTiled, kManual, kUnknown, kUnreduced, kTuple, kVerbatim };

  Kind kind = Kind::kReplicated;
  int64_t maximal_device = 0;
  std::vector<int64_t> tile_dimensions;      // devices=[2,1,4]
  std::vector<int64_t> devices;              // list form of the device order; empty when iota form
  std::vector<int64_t> iota_reshape_dims;    // <=[4,2]
  std::vector<int64_t> iota_transpose_perm;  // T(1,0); empty for none
  bool replicate_on_last_tile_dim = false;
  std::vector<std::string> last_tile_dims;  // {manual, replicated}
  std::vector<Sharding> elements;           // of a tuple
  std::string shard_group;                  // "shard_as 1" or "shard_like 1"; empty for none
  std::string metadata;                     // metadata={...} as written; empty for none
  std::string verbatim;                     // kVerbatim: v2 (named meshes) text as written, braces included

  // The devices in order, whichever form was written.
  std::vector<int64_t> DeviceOrder() const;
  std::string ToString() const;  // with braces: "{devices=[2,1]<=[2]}"
  bool operator==(const Sharding&) const = default;
};

}  // namespace hlorun::hlo
