#include "passes/expand/tile_products.h"

#include <algorithm>

#include "hlo/builder.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/counted_loop.h"
#include "passes/expand/product_group.h"

namespace hlorun::passes {
namespace {

using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// A product becomes a loop where its result takes this part of the memory (or of --memory_limit) and is this many times
// as large as its operands; a tile of it is one of so many, within these bounds. Smaller ones stay whole: what lies
// between the products is bound by arithmetic, not by the way to memory (docs/performance.md).
constexpr int64_t kLargeShare = 16, kGrowth = 4, kTiles = 4;
constexpr int64_t kSmallestTile = 1 << 20, kLargestTile = 64 << 20;
// Scores that are kept for a gradient may take this part of the memory before they are computed again instead.
constexpr int64_t kKeptShare = 4;
// Tiles of fewer rows are slow products.
constexpr int64_t kFewestRows = 64;

struct Limits {
  int64_t large, tile, kept;  // bytes

  static Limits Of(const PassContext& context) {
    const int64_t limit = context.options.memory_limit;
    const int64_t memory = limit > 0 ? limit : context.device.global_memory_bytes, large = memory / kLargeShare;
    return {large, std::clamp(large / kTiles, std::min(kSmallestTile, large / 2), kLargestTile), memory / kKeptShare};
  }
};

// One loop of a tiling: `trips` tiles of `tile` elements; the last one starts early enough to be whole.
struct Tiling {
  TileLoop loop;
  int64_t tile, trips;
};

// Outer loops are cut first, the last one not into too few rows; empty where too little is cut.
std::vector<Tiling> TilingsOf(const ProductGroup& group, int64_t tile_bytes) {
  const Shape& scores = group.seed->shape();
  const int64_t wanted = std::max<int64_t>(1, tile_bytes / hlo::BytesOf(scores.element_type()));
  int64_t elements = scores.ElementCount();
  std::vector<Tiling> tilings;
  for (TileLoop& loop : TileLoopsOf(group)) {
    if (elements <= wanted) break;
    const int64_t size = loop.size, rest = elements / size;
    const bool is_rows = loop.dimension_of.at(group.seed) >= scores.rank() - 2;
    int64_t tile = std::max<int64_t>(1, wanted / std::max<int64_t>(1, rest));
    if (is_rows) tile = std::min(size, std::max(tile, kFewestRows));
    const int64_t trips = (size + tile - 1) / tile;
    if (trips == 1) continue;
    tile = (size + trips - 1) / trips;
    elements = rest * tile;
    tilings.push_back({std::move(loop), tile, trips});
  }
  return elements * 2 <= scores.ElementCount() ? tilings : std::vector<Tiling>();
}

// The loop of one group.
class TiledLoop {
 public:
  TiledLoop(const ProductGroup& group, const std::vector<Tiling>& tilings)
      : group_(group), tilings_(tilings), build_(group.seed->parent(), group.seed) {}

  // One value a result of the group.
  std::vector<Instruction*> Build() {
    std::vector<Instruction*> carried;
    for (const Instruction* result : group_.results) carried.push_back(build_.Splat(result->shape(), 0));
    carried.insert(carried.end(), group_.operands.begin(), group_.operands.end());
    int64_t trips = 1;
    for (const Tiling& tiling : tilings_) trips *= tiling.trips;
    const LoopStep step = [&](hlo::Builder& build, Instruction* trip, const std::vector<Instruction*>& values) {
      return Step(build, trip, values, trips);
    };
    std::vector<Instruction*> values = CountedLoop(build_, group_.seed->parent()->module(), trips, carried, step);
    values.resize(group_.results.size());
    return values;
  }

 private:
  std::vector<Instruction*> Step(hlo::Builder& build, Instruction* trip, std::vector<Instruction*> values,
                                 int64_t trips) {
    starts_.clear();
    int64_t inner = trips;
    for (const Tiling& tiling : tilings_) {
      inner /= tiling.trips;
      const auto number = [&](int64_t n) { return build.ScalarConstant(ElementType::kS32, n); };
      Instruction* of_loop =
          build.Binary(Opcode::kRemainder, build.Binary(Opcode::kDivide, trip, number(inner)), number(tiling.trips));
      Instruction* start = build.Binary(Opcode::kMultiply, of_loop, number(tiling.tile));
      starts_.push_back(build.Binary(Opcode::kMinimum, start, number(tiling.loop.size - tiling.tile)));
    }
    zero_ = build.ScalarConstant(ElementType::kS32, int64_t{0});
    hlo::InstructionMap images;
    const size_t results = group_.results.size();
    for (size_t i = 0; i < group_.operands.size(); ++i) {
      const Instruction* operand = group_.operands[i];
      Instruction* value = values[results + i];
      Dims tile = TileOf(*operand);
      const bool is_cut = tile != operand->shape().dimensions();
      images[operand] = is_cut ? build.DynamicSlice(value, StartsOf(*operand), std::move(tile)) : value;
    }
    for (const Instruction* member : group_.members) images[member] = Clone(build, *member, images);
    for (size_t i = 0; i < results; ++i) {
      const Instruction* result = group_.results[i];
      values[i] = build.DynamicUpdateSlice(values[i], images.at(result), StartsOf(*result));
    }
    return values;
  }

  Instruction* Clone(hlo::Builder& build, const Instruction& member, const hlo::InstructionMap& images) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : member.operands()) operands.push_back(images.at(operand));
    const Shape shape(member.shape().element_type(), TileOf(member));
    Instruction* clone = build.computation()->Add(member.CloneWithOperands(shape, std::move(operands)));
    if (!member.Is(Opcode::kIota)) return clone;
    ForEachCut(member, [&](size_t tiling, int64_t dimension) {
      if (dimension != member.dimensions()[0]) return;
      Instruction* start = build.Convert(starts_[tiling], shape.element_type());
      clone = build.Binary(Opcode::kAdd, clone, build.Broadcast(start, shape.dimensions(), {}));
    });
    return clone;
  }

  // Calls cut(number of a tiling, dimension of `value` that it cuts).
  template <typename Cut>
  void ForEachCut(const Instruction& value, Cut cut) const {
    for (size_t t = 0; t < tilings_.size(); ++t) {
      const auto at = tilings_[t].loop.dimension_of.find(&value);
      if (at != tilings_[t].loop.dimension_of.end()) cut(t, at->second);
    }
  }
  Dims TileOf(const Instruction& value) const {
    Dims dims = value.shape().dimensions();
    ForEachCut(value,
               [&](size_t tiling, int64_t dimension) { dims[static_cast<size_t>(dimension)] = tilings_[tiling].tile; });
    return dims;
  }
  std::vector<Instruction*> StartsOf(const Instruction& value) const {
    std::vector<Instruction*> starts(static_cast<size_t>(value.shape().rank()), zero_);
    ForEachCut(value,
               [&](size_t tiling, int64_t dimension) { starts[static_cast<size_t>(dimension)] = starts_[tiling]; });
    return starts;
  }

  const ProductGroup& group_;
  const std::vector<Tiling>& tilings_;
  hlo::Builder build_;
  std::vector<Instruction*> starts_;
  Instruction* zero_ = nullptr;
};

bool IsSeed(const Instruction& dot, const Limits& limits) {
  if (!dot.Is(Opcode::kDot) || !dot.shape().IsStatic() || dot.shape().ByteSize() < limits.large) return false;
  return dot.shape().ElementCount() >=
         kGrowth * std::max(dot.operand(0)->shape().ElementCount(), dot.operand(1)->shape().ElementCount());
}

bool Tile(Instruction* seed, const Limits& limits) {
  const std::vector<ProductGroup> groups = ProductGroupsOf(seed);
  if (groups.empty() || (groups.size() > 1 && seed->shape().ByteSize() < limits.kept)) return false;
  std::vector<std::vector<Tiling>> tilings;
  for (const ProductGroup& group : groups) {
    tilings.push_back(TilingsOf(group, limits.tile));
    if (tilings.back().empty()) return false;
  }
  // All loops stand before any result is replaced: one may be what another reads.
  std::vector<std::vector<Instruction*>> values;
  for (size_t i = 0; i < groups.size(); ++i) values.push_back(TiledLoop(groups[i], tilings[i]).Build());
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t r = 0; r < values[i].size(); ++r) seed->parent()->Replace(groups[i].results[r], values[i][r]);
  }
  return true;
}

}  // namespace

bool TileProducts::Run(hlo::Module& module, PassContext& context) {
  // Kernels end at actual sizes outside of loops only (dynamic/extents.h).
  if (!SignatureOf(module).empty()) return false;
  const Limits limits = Limits::Of(context);
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    std::vector<Instruction*> seeds;
    for (Instruction* instruction : computation->PostOrder()) {
      if (IsSeed(*instruction, limits)) seeds.push_back(instruction);
    }
    for (Instruction* seed : seeds) changed |= Tile(seed, limits);
  }
  return changed;
}

}  // namespace hlorun::passes
