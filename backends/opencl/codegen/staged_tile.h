// A transpose on a GPU: tiles of a loop nest over two dimensions, whose crossing loads (turned_loads.h) go through
// local memory.
//
//   before: out[i * 4096 + j] = f(in[j * 4096 + i])        neighbouring items j read elements 16 KiB apart
//   after:  tile[r][c] = in[..]; barrier; out[..] = f(tile[c][r])        memory is read and written in whole lines
//
// A row of the tile is one element longer than it holds: columns then lie in different banks.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/codegen/turned_loads.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

class StagedTile {
 public:
  static constexpr int64_t kSide =
      32;  // elements each way: a cache line of floats, and the items that read it together

  // Of the nest's `body`, which goes along the result's rows by `along` and along those of what crosses them by
  // `across`, to these ends. None where nothing crosses that can be staged, or a dimension is far shorter than a tile,
  // or the device's groups have no room.
  static std::optional<StagedTile> Of(const ir::Stmt& body, const ir::Var& along, int64_t length, const ir::Var& across,
                                      int64_t others, const DeviceSpec& device);

  // Local arrays, to be declared in front of the nest.
  std::vector<ir::Stmt> Declarations() const;
  // The tile that begins at these, by all items of a group.
  ir::Stmt Body(const ir::Expr& begin, const ir::Expr& first) const;
  int64_t items() const { return items_; }

 private:
  struct Staged {
    TurnedLoads::Crossing crossing;
    ir::BufferRef tile;
  };
  // `body` with (row, column) of the tile in turn, by 32 items side by side along `column`.
  ir::Stmt ForPlaces(const ir::Expr& item, const ir::Var& row, const ir::Var& column, const ir::Stmt& body) const;
  ir::Stmt Inside(const ir::Stmt& body) const;

  ir::Stmt body_;
  ir::Var along_, across_;
  int64_t length_ = 0, others_ = 0, items_ = 0;
  std::vector<Staged> staged_;
};

}  // namespace hlorun::opencl
