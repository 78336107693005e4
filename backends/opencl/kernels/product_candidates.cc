#include "backends/opencl/kernels/product_candidates.h"

#include <algorithm>
#include <iterator>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

// Tiles that differ much: large ones for large products, small ones where few groups would be left, wide and tall ones.
constexpr TiledSchedule kFewTiles[] = {
    {256, 16, 8, 8, 8}, {256, 16, 8, 8, 8, 2}, {128, 16, 8, 8, 16}, {128, 16, 8, 8, 8, 2},
    {64, 8, 8, 8, 16},  {64, 8, 8, 8, 8, 2},   {128, 32, 4, 4, 16}, {32, 8, 4, 4, 16},
};

// For few columns, as groups of few features have: those above would be mostly empty.
constexpr TiledSchedule kNarrowTiles[] = {{128, 4, 4, 4, 16, 2}, {64, 4, 8, 4, 16}, {128, 2, 4, 4, 16}};
constexpr int64_t kFewColumns = 16;

// Depths are those of 16-bit floats.
constexpr FragmentSchedule kFewFragments[] = {
    {2, 2, 4, 4, 32}, {2, 2, 4, 4, 32, 2}, {4, 2, 4, 4, 32}, {2, 4, 4, 4, 32}, {2, 4, 4, 2, 32, 2},
    {2, 2, 2, 4, 64}, {2, 2, 2, 4, 32, 2}, {2, 2, 2, 2, 64}, {1, 4, 1, 2, 64}, {4, 1, 2, 1, 64},
};
// Those that copy asynchronously, and those of four sub-groups together.
constexpr FragmentSchedule kFewAhead[] = {
    {4, 1, 1, 8, 64, 2, 1, 1, 1},  {8, 1, 1, 4, 64, 2, 1, 1, 1}, {8, 1, 1, 8, 64, 1, 1, 1, 1},
    {4, 1, 1, 16, 64, 1, 1, 1, 1}, {2, 2, 4, 4, 32, 3, 1, 1},    {4, 1, 1, 8, 64, 1, 1, 1, 1},
};

constexpr TiledSchedule kSmallestTile = *std::rbegin(kFewTiles);

// Collects what can run, each once.
class Collection {
 public:
  Collection(const ProductProblem& problem, const DeviceSpec& device) : problem_(problem), device_(device) {}
  void Add(const ProductSchedule& schedule) {
    const bool is_known = std::find(all_.begin(), all_.end(), schedule) != all_.end();
    if (!is_known && WhyNot(schedule, problem_, device_).empty()) all_.push_back(schedule);
  }
  std::vector<ProductSchedule> Take() { return std::move(all_); }

 private:
  const ProductProblem& problem_;
  const DeviceSpec& device_;
  std::vector<ProductSchedule> all_;
};

// Whether most of the tile would lie outside the result.
template <typename Schedule>
bool IsTooLarge(const Schedule& s, const ProductShape& shape) {
  const auto beyond = [](int64_t tile, int64_t extent) { return tile > 16 && tile >= 2 * PowerFrom(extent); };
  return beyond(s.rows(), shape.m) || beyond(s.columns(), shape.n);
}

// Few tiles of long sums leave most of a device idle: parts of the sums fill it.
template <typename Schedule>
void AddParts(const Schedule& tile, const ProductShape& shape, bool few, Collection& out) {
  constexpr int64_t kFewTilesLeft = 64, kLeastDepth = 128;
  const int64_t tiles = shape.batch * CeilDiv(shape.m, tile.rows()) * CeilDiv(shape.n, tile.columns());
  if (tiles >= kFewTilesLeft || IsTooLarge(tile, shape)) return;
  for (const int64_t parts : {4, 16, 2, 8}) {
    Schedule schedule = tile;
    schedule.k_parts = parts;
    if (shape.k / parts >= kLeastDepth) out.Add(schedule);
    if (few && parts == 16) return;
  }
}

// With the rule's parts; other orders of sums only where they may be.
template <typename Schedule>
void AddLikeRule(Schedule tile, const Schedule& rule, const ProductShape& shape, bool other_orders, Collection& out) {
  tile.k_parts = rule.k_parts;
  if (!IsTooLarge(tile, shape) && (other_orders || AddInTheSameOrder(tile, rule, shape.k))) out.Add(tile);
}

void AddTiles(const ProductShape& shape, const TiledSchedule& rule, bool few, bool other_orders, Collection& out) {
  const auto add = [&](const TiledSchedule& s) { AddLikeRule(s, rule, shape, other_orders, out); };
  for (const TiledSchedule& s : kFewTiles) add(s);
  if (shape.n <= kFewColumns) {
    for (const TiledSchedule& s : kNarrowTiles) add(s);
  }
  if (other_orders) {
    for (const TiledSchedule& s : {rule, kSmallestTile}) AddParts(s, shape, few, out);
  }
  if (few) return;
  for (const TiledSchedule& s : kFewTiles) {
    if (other_orders) AddParts(s, shape, few, out);
  }
  for (const int64_t items : {64, 128, 256}) {
    for (const int64_t across : {8, 16}) {
      for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 4}, {8, 4}, {4, 8}, {8, 8}, {2, 4}, {2, 2}}) {
        for (const int64_t depth : {8, 16, 32}) {
          for (const int64_t buffers : {1, 2}) add({items, across, rows, columns, depth, buffers});
        }
      }
    }
  }
}

void AddFragments(const ProductShape& shape, const FragmentSchedule& rule, bool few, bool other_orders,
                  Collection& out) {
  const auto add = [&](const FragmentSchedule& s) {
    AddLikeRule(s.For(shape.lhs_type), rule, shape, other_orders, out);
  };
  for (const FragmentSchedule& s : kFewAhead) add(s);
  for (const FragmentSchedule& s : kFewFragments) add(s);
  if (other_orders) AddParts(rule, shape, few, out);
  if (few) return;
  for (const auto& [down, across] : {std::pair<int64_t, int64_t>{1, 2}, {2, 1}, {2, 2}, {2, 4}, {4, 2}, {4, 4}}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {2, 2}, {4, 2}, {2, 4}, {4, 4}}) {
      for (const int64_t depth : {16, 32, 64}) {
        for (const int64_t buffers : {1, 2}) add({down, across, rows, columns, depth, buffers});
        for (const int64_t buffers : {1, 2, 3, 4}) add({down, across, rows, columns, depth, buffers, 1, 1});
      }
    }
  }
  for (const auto& [down, columns] : {std::pair<int64_t, int64_t>{4, 4}, {4, 8}, {4, 16}, {8, 4}, {8, 8}, {8, 16}}) {
    for (const int64_t depth : {16, 32, 64}) {
      for (const int64_t buffers : {1, 2, 3, 4}) add({down, 1, 1, columns, depth, buffers, 1, 1, 1});
    }
  }
}

void AddPanels(const PanelSchedule& rule, const ProductProblem& problem, const DeviceSpec& device, bool few,
               Collection& out) {
  const ProductShape shape = WithLessToPack(problem.shape, device);
  const ProductPlan plan = PlanProduct(shape, device);
  if (plan.IsByRows()) return;
  const auto add = [&](int64_t rows, int64_t vectors, int64_t tiles, int64_t panels) {
    out.Add(PanelSchedule{rows, vectors, std::min(tiles, CeilDiv(shape.m, rows)),
                          std::min(panels, CeilDiv(shape.n, vectors * plan.lanes))});
  };
  // Blocks of the rule's tiles first, then other tiles in blocks of about the rule's size.
  for (const auto& [tiles, panels] : {std::pair<int64_t, int64_t>{1, 2}, {2, 1}, {2, 2}}) {
    add(rule.rows, rule.vectors, rule.tiles_per_block * tiles, rule.panels_per_block * panels);
    add(rule.rows, rule.vectors, CeilDiv(rule.tiles_per_block, tiles), CeilDiv(rule.panels_per_block, panels));
  }
  const int64_t registers = VectorRegisters(device);
  for (const int64_t vectors : {1, 2, 3, 4}) {
    const int64_t limit = std::min<int64_t>((registers - 1 - vectors) / vectors, 14);
    if (limit < 1) continue;
    const int64_t rows = EvenTileRows(shape.m, limit);
    const int64_t block_rows = rule.tiles_per_block * rule.rows, block_columns = rule.panels_per_block * rule.vectors;
    add(rows, vectors, CeilDiv(block_rows, rows), CeilDiv(block_columns, vectors));
    if (few) continue;
    for (const int64_t fewer : {rows - 2, rows / 2}) {
      if (fewer >= 1) add(fewer, vectors, CeilDiv(block_rows, fewer), CeilDiv(block_columns, vectors));
    }
  }
}

}  // namespace

std::vector<ProductSchedule> ProductCandidates(const ProductProblem& problem, const DeviceSpec& device, bool few,
                                               bool other_orders) {
  Collection out(problem, device);
  const ProductSchedule rule = ScheduleByRule(problem, device);
  out.Add(rule);
  if (device.device_class == DeviceClass::kGpu) {
    if (const auto* fragments = std::get_if<FragmentSchedule>(&rule))
      AddFragments(problem.shape, *fragments, few, other_orders, out);
    else
      AddTiles(problem.shape, std::get<TiledSchedule>(rule), few, other_orders, out);
    // Its own kernels take seconds to compile.
    if (!few && other_orders) out.Add(LibrarySchedule{});
  } else {
    AddPanels(std::get<PanelSchedule>(rule), problem, device, few, out);
  }
  return out.Take();
}

}  // namespace hlorun::opencl
