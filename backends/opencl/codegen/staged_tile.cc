#include "backends/opencl/codegen/staged_tile.h"
#include "backends/opencl/codegen/powers_of_two.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

constexpr int64_t kPitch = StagedTile::kSide + 1;
constexpr int64_t kMostItems = 256;
// A dimension that fills less of a tile leaves more items idle than whole lines are worth.
constexpr int64_t kShortest = StagedTile::kSide / 2;

}  // namespace

std::optional<StagedTile> StagedTile::Of(const Stmt& body, const ir::Var& along, int64_t length, const ir::Var& across,
                                         int64_t others, const DeviceSpec& device) {
  if (length < kShortest || others < kShortest || device.max_work_group_size < kSide) return std::nullopt;
  StagedTile tile;
  tile.body_ = body;
  tile.along_ = along;
  tile.across_ = across;
  tile.length_ = length;
  tile.others_ = others;
  tile.items_ = PowerUpTo(std::min(kMostItems, device.max_work_group_size));
  int64_t bytes = 0;
  const TurnedLoads loads(body, along, across);
  for (const TurnedLoads::Crossing& crossing : loads.crossings()) {
    const ir::BufferRef buffer =
        ir::MakeBuffer(fmt::format("staged{}", tile.staged_.size()), crossing.load->type.element, kSide * kPitch,
                       ir::Buffer::Space::kLocal, /*written=*/true);
    bytes += buffer->size * hlo::BytesOf(buffer->storage);
    tile.staged_.push_back({crossing, buffer});
  }
  if (tile.staged_.empty() || bytes > device.local_memory_bytes) return std::nullopt;
  return tile;
}

std::vector<Stmt> StagedTile::Declarations() const {
  std::vector<Stmt> declarations;
  declarations.reserve(staged_.size());
  for (const Staged& staged : staged_) declarations.push_back(ir::DeclareArray(staged.tile));
  return declarations;
}

Stmt StagedTile::ForPlaces(const Expr& item, const ir::Var& row, const ir::Var& column, const Stmt& body) const {
  const ir::Type type = row->type;
  const int64_t rows = items_ / kSide, steps = kSide / rows;
  const ir::Var step = ir::MakeIndex("step", 0, steps - 1, type);
  const Expr first = ir::Binary(ir::Op::kFloorDiv, item, ir::Int(kSide, type));
  const Stmt at_row = ir::Block({ir::Let(row, first + ir::Ref(step) * rows), body});
  const Stmt loop = ir::For(ir::LoopRole::kSerial, step, ir::Int(0, type), ir::Int(steps, type), at_row);
  return ir::Scope(ir::Block({ir::Let(column, ir::Binary(ir::Op::kFloorMod, item, ir::Int(kSide, type))),
                              ir::Unrolled(loop, static_cast<int>(steps))}));
}

// Tiles at the ends are not whole.
Stmt StagedTile::Inside(const Stmt& body) const {
  Expr inside = ir::Pred(true);
  for (const auto& [var, end] : {std::pair{along_, length_}, std::pair{across_, others_}}) {
    if (end % kSide != 0) inside = ir::And(inside, ir::Ref(var) < ir::Int(end, var->type));
  }
  return ir::IsIntConstant(inside, 1) ? body : ir::If(inside, body);
}

Stmt StagedTile::Body(const Expr& begin, const Expr& first) const {
  const ir::Type type = along_->type;
  const ir::Var item = ir::MakeIndex("item", 0, items_ - 1, type);
  const ir::Var row = ir::MakeIndex("tile_row", 0, kSide - 1, type),
                column = ir::MakeIndex("tile_column", 0, kSide - 1, type);
  // A row of the tile is one of what is read: along `across`.
  std::vector<Stmt> fill;
  Stmt body = body_;
  for (const Staged& staged : staged_) {
    const Expr element = ir::Load(staged.crossing.load->buffer, staged.crossing.place);
    fill.push_back(ir::Store(staged.tile, ir::Ref(row) * kPitch + ir::Ref(column), element));
    body = Replace(body, staged.crossing.load, ir::Load(staged.tile, ir::Ref(column) * kPitch + ir::Ref(row)));
  }
  const auto place = [&](const ir::Var& in_along, const ir::Var& in_across, const Stmt& inner) {
    return ir::Block(
        {ir::Let(along_, begin + ir::Ref(in_along)), ir::Let(across_, first + ir::Ref(in_across)), Inside(inner)});
  };
  const Stmt all = ir::Block({ForPlaces(ir::Ref(item), row, column, place(row, column, ir::Block(std::move(fill)))),
                              ir::Barrier(), ForPlaces(ir::Ref(item), row, column, place(column, row, body))});
  return ir::For(ir::LoopRole::kVector, item, ir::Int(0, type), ir::Int(items_, type), all);
}

}  // namespace hlorun::opencl
