#include "passes/fusion/tiles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "passes/copy_computation.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/product_group.h"
#include "passes/fusion/cluster.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/outline_region.h"
#include "passes/fusion/product_operands.h"
#include "passes/fusion/shared_loops.h"
#include "passes/fusion/sink_reshapes.h"
#include "passes/kernel_model.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/flatten_control.h"
#include "passes/memory/schedule.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// A product whose result is so many times as large as its operands.
constexpr int64_t kGrowth = 2;
// With more depth the multiplications hide what the result's way to memory takes.
constexpr int64_t kMostDepth = 256;
// Rows of a tile: fewer are slow products. Where the second cache does not keep the scores of so many, tiles gain
// nothing (docs/performance.md).
constexpr int64_t kFewestRows = 64;
// Of one kernel, which has fewer parameters than any device's limit.
constexpr size_t kMostArrays = 32;
// Fewer tiles are not worth a kernel of their own. Whatever the device has, so that results are the same.
constexpr int64_t kFewestTiles = 8;

// --- the tiles of a group ---

// How a group's values are cut.
class TileCuts {
 public:
  // `trips`: by loop of the seed's dimensions, in their order.
  TileCuts(const SharedLoops& loops, const SharedLoops::Tensor& seed, const std::vector<int64_t>& trips)
      : loops_(loops) {
    size_t i = 0;
    for (const auto& dimension : seed) {
      for (const int loop : dimension) {
        HLORUN_CHECK(i < trips.size() && loops.SizeOf(loop) % trips[i] == 0);
        if (trips[i] > 1) order_.push_back(loop);
        trips_[loop] = trips[i++];
      }
    }
    HLORUN_CHECK(i == trips.size());
  }

  std::vector<int64_t> trips() const {
    std::vector<int64_t> trips;
    trips.reserve(order_.size());
    for (const int loop : order_) trips.push_back(trips_.at(loop));
    return trips;
  }

  Dims TileOf(const SharedLoops::Tensor& tensor) const {
    Dims dims;
    for (const auto& dimension : tensor) {
      int64_t size = 1;
      for (const int loop : dimension) size *= TileOf(loop);
      dims.push_back(size);
    }
    return dims;
  }

  // Elements between the parts of neighbouring trips; nullopt where a part does not lie in one piece.
  std::optional<std::vector<int64_t>> StepsOf(const SharedLoops::Tensor& tensor) const {
    std::vector<int64_t> steps(order_.size(), 0);
    int64_t stride = 1;
    bool is_whole = true;  // of all loops so far, from the innermost on
    for (auto dimension = tensor.rbegin(); dimension != tensor.rend(); ++dimension) {
      for (auto loop = dimension->rbegin(); loop != dimension->rend(); ++loop) {
        if (!is_whole && TileOf(*loop) > 1) return std::nullopt;
        const auto number = std::find(order_.begin(), order_.end(), *loop);
        if (number != order_.end()) {
          // A diagonal.
          if (steps[static_cast<size_t>(number - order_.begin())] != 0) return std::nullopt;
          steps[static_cast<size_t>(number - order_.begin())] = stride * TileOf(*loop);
          is_whole = false;
        }
        stride *= loops_.SizeOf(*loop);
      }
    }
    return steps;
  }

  bool Cuts(const SharedLoops::Dimension& dimension) const {
    return std::any_of(dimension.begin(), dimension.end(),
                       [&](int loop) { return std::find(order_.begin(), order_.end(), loop) != order_.end(); });
  }

  bool CutsAll(const SharedLoops::Tensor& tensor) const {
    return std::all_of(order_.begin(), order_.end(), [&](int loop) {
      return std::any_of(tensor.begin(), tensor.end(), [&](const SharedLoops::Dimension& dimension) {
        return std::find(dimension.begin(), dimension.end(), loop) != dimension.end();
      });
    });
  }

 private:
  int64_t TileOf(int loop) const {
    const auto found = trips_.find(loop);
    return loops_.SizeOf(loop) / (found == trips_.end() ? 1 : found->second);
  }

  const SharedLoops& loops_;
  std::map<int, int64_t> trips_;
  std::vector<int> order_;
};

// Whether all that comes from others and goes to them lies in one piece, tile by tile, and no member counts along what
// is cut: in each tile it would begin again.
bool FitsTiles(const ProductGroup& group, const SharedLoops& loops, const TileCuts& cuts) {
  for (const Instruction* result : group.results) {
    const SharedLoops::Tensor tensor = loops.Of(*result);
    if (!cuts.CutsAll(tensor) || !cuts.StepsOf(tensor)) return false;
  }
  for (const Instruction* member : group.members) {
    if (member->Is(Opcode::kIota) && cuts.Cuts(loops.Of(*member)[static_cast<size_t>(member->dimensions()[0])]))
      return false;
    for (int64_t i = 0; i < member->operand_count(); ++i) {
      if (!group.Has(member->operand(i)) && !cuts.StepsOf(loops.OfOperand(*member, i))) return false;
    }
  }
  return true;
}

// The largest divisor of `size` that is at most `most`.
int64_t DivisorUpTo(int64_t size, int64_t most) {
  int64_t divisor = std::clamp<int64_t>(most, 1, size);
  while (size % divisor != 0) --divisor;
  return divisor;
}

struct Limits {
  int64_t large;  // bytes of a product's result from which on it goes by tiles
  int64_t tile;   // of a tile of rows
  int64_t most;   // of a batch that is a tile

  static Limits Of(const DeviceSpec& device) {
    // What the last cache keeps beside all else is as quick in kernels of their own, which share it out evenly.
    return {std::max(2 * device.l2_bytes, device.l3_bytes / 4), device.l2_bytes,
            std::min(8 * device.l2_bytes, device.l3_bytes / 4)};
  }
};

// By loop of the seed: of all batches one at a time, of rows as many as the cache keeps. Empty where they do not fit.
std::vector<int64_t> TripsOf(const ProductGroup& group, const SharedLoops& loops, const Limits& limits) {
  const SharedLoops::Tensor seed = loops.Of(*group.seed);
  std::vector<int64_t> whole;
  std::set<int> of_seed;
  for (const auto& dimension : seed) {
    whole.insert(whole.end(), dimension.size(), 1);
    of_seed.insert(dimension.begin(), dimension.end());
  }
  if (of_seed.size() < whole.size()) return {};  // a diagonal
  const int64_t bytes = group.seed->shape().ByteSize();
  const auto tile_bytes = [&](const std::vector<int64_t>& trips) {
    int64_t tile = bytes;
    for (const int64_t trip : trips) tile /= trip;
    return tile;
  };
  const auto fits = [&](const std::vector<int64_t>& trips) {
    return FitsTiles(group, loops, TileCuts(loops, seed, trips));
  };
  // Batches.
  std::vector<int64_t> trips = whole;
  size_t number = 0;
  for (size_t d = 0; d + 2 < seed.size(); ++d) {
    for (const int loop : seed[d]) {
      trips[number] = loops.MayCut(loop) ? loops.SizeOf(loop) : 1;
      ++number;
    }
  }
  if (!fits(trips)) return {};
  // Rows, or columns where those are what the result has.
  for (size_t d = seed.size() - 2; d < seed.size() && tile_bytes(trips) > limits.tile; ++d) {
    if (seed[d].size() == 1 && loops.MayCut(seed[d][0])) {
      const int64_t rows = loops.SizeOf(seed[d][0]), of_row = tile_bytes(trips) / rows;
      const int64_t tile = DivisorUpTo(rows, limits.tile / of_row);
      std::vector<int64_t> cut = trips;
      cut[number] = rows / tile;
      if (tile >= kFewestRows && fits(cut)) {
        trips = std::move(cut);
        break;
      }
    }
    number += seed[d].size();
  }
  int64_t tiles = 1;
  for (const int64_t trip : trips) tiles *= trip;
  return tiles >= kFewestTiles && tile_bytes(trips) <= limits.most ? trips : std::vector<int64_t>();
}

// --- the pass ---

bool IsSeed(const Instruction& dot, const Limits& limits) {
  if (!dot.Is(Opcode::kDot) || !dot.shape().IsStatic() || dot.shape().ByteSize() < limits.large) return false;
  if (dot.shape().rank() < 2 || hlo::IsComplex(dot.shape().element_type())) return false;
  int64_t depth = 1;
  for (const int64_t dimension : dot.As<hlo::attr::Dot>().lhs_contracting)
    depth *= dot.operand(0)->shape().dimension(dimension);
  if (depth > kMostDepth) return false;
  return dot.shape().ElementCount() >=
         kGrowth * std::max(dot.operand(0)->shape().ElementCount(), dot.operand(1)->shape().ElementCount());
}

bool IsUsedOutside(const Instruction& member, const ProductGroup& group) {
  return member.IsRoot() || std::any_of(member.users().begin(), member.users().end(),
                                        [&](const Instruction* user) { return !group.Has(user); });
}

// The group's members as they may be moved, operands before users: of those that others need, too, copies, which the
// moved ones are given.
std::vector<Instruction*> OwnMembers(const ProductGroup& group) {
  std::unordered_set<const Instruction*> stays;
  for (auto member = group.members.rbegin(); member != group.members.rend(); ++member) {
    const auto& users = (*member)->users();
    const bool is_result = std::find(group.results.begin(), group.results.end(), *member) != group.results.end();
    const bool is_needed = IsUsedOutside(**member, group) ||
                           std::any_of(users.begin(), users.end(), [&](const auto* u) { return stays.contains(u); });
    if (!is_result && is_needed) stays.insert(*member);
  }
  std::vector<Instruction*> own;
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (Instruction* member : group.members) {
    if (IsScalarConstant(*member)) continue;  // which is copied anyway
    std::vector<Instruction*> operands = member->operands();
    for (Instruction*& operand : operands) {
      if (const auto copy = copies.find(operand); copy != copies.end()) operand = copy->second;
    }
    if (stays.contains(member)) {
      copies[member] = member->parent()->Add(member->CloneWithOperands(member->shape(), operands), member);
      own.push_back(copies[member]);
      continue;
    }
    for (Instruction* operand : std::vector<Instruction*>(member->operands())) {
      if (const auto copy = copies.find(operand); copy != copies.end()) operand->ReplaceUseWith(member, copy->second);
    }
    own.push_back(member);
  }
  return own;
}

// The largest product, the first of several.
template <typename Instructions>
auto LargestProduct(const Instructions& instructions) {
  typename Instructions::value_type largest = nullptr;
  for (const auto instruction : instructions) {
    if (!instruction->Is(Opcode::kDot)) continue;
    if (largest == nullptr || instruction->shape().ElementCount() > largest->shape().ElementCount())
      largest = instruction;
  }
  return largest;
}

// The group of `seed`, or of another product in it; nullopt where it is none, or in several parts.
std::optional<ProductGroup> GroupOf(Instruction* seed, const PassContext& context) {
  std::vector<ProductGroup> groups = ProductGroupsOf(seed);
  if (groups.size() != 1) return std::nullopt;
  const auto& members = groups[0].members;
  const auto contracts = [&](const Instruction* member) { return member != seed && member->Is(Opcode::kDot); };
  // Without rows to reduce the result is stored once and loaded once, which costs less than weights that pass by for
  // each tile (layers of perceptrons; docs/performance.md).
  const auto reduces = [](const Instruction* member) { return member->Is(Opcode::kReduce); };
  const auto may_run = [&](const Instruction* member) {
    return !context.kernels.RunsAlone(*member) && member->control_predecessors().empty() &&
           member->control_successors().empty() && !hlo::IsComplex(member->shape().element_type());
  };
  const size_t arrays = groups[0].operands.size() + groups[0].results.size();
  const bool is_worthwhile = arrays <= kMostArrays && std::any_of(members.begin(), members.end(), contracts) &&
                             std::any_of(members.begin(), members.end(), reduces) &&
                             std::all_of(members.begin(), members.end(), may_run);
  if (!is_worthwhile) return std::nullopt;
  groups[0].seed = LargestProduct(members);
  return std::move(groups[0]);
}

// Positions along a dimension, spread: a tile is given its own.
//   before: i = s32[8,2048,2048] iota(), iota_dimension=1
//   after:  j = s32[2048] iota(), iota_dimension=0   i = broadcast(j), dimensions={1}
bool SpreadPositions(const ProductGroup& group) {
  bool changed = false;
  for (Instruction* member : group.members) {
    if (!member->Is(Opcode::kIota) || member->shape().rank() < 2) continue;
    const int64_t along = member->dimensions()[0];
    hlo::Builder build(member->parent(), member);
    build.before = member;
    Instruction* positions = build.Iota(Shape(member->shape().element_type(), {member->shape().dimension(along)}), 0);
    member->parent()->Replace(member, build.Broadcast(positions, member->shape().dimensions(), {along}));
    changed = true;
  }
  return changed;
}

// Turns seeds that have become part of a fusion to null.
bool FormTile(Instruction* seed, const Limits& limits, const PassContext& context, std::vector<Instruction*>& seeds) {
  std::optional<ProductGroup> group = GroupOf(seed, context);
  if (!group) return false;
  const bool changed = SpreadPositions(*group);
  if (changed) group = GroupOf(seed, context);
  if (!group || !IsSeed(*group->seed, limits)) return changed;
  const SharedLoops loops({group->members.begin(), group->members.end()});
  const std::vector<int64_t> trips = TripsOf(*group, loops, limits);
  if (trips.empty()) return changed;
  std::replace_if(
      seeds.begin(), seeds.end(), [&](const Instruction* other) { return group->Has(other); }, nullptr);
  const std::string config = fmt::format("{}{}]}}", kTilesConfig, fmt::join(trips, ","));
  OutlineRegion(*seed->parent(), OwnMembers(*group), config.c_str(), "tiles");
  return true;
}

// --- one tile's program ---

std::vector<int64_t> TripsOf(const Instruction& tiles) {
  std::vector<int64_t> trips;
  const std::string& config = tiles.backend_config;
  const char* at = config.data() + std::string_view(kTilesConfig).size();
  const char* const end = config.data() + config.size();
  do {
    const auto [next, error] = std::from_chars(at, end, trips.emplace_back());
    HLORUN_CHECK(error == std::errc() && next < end);
    at = next;
  } while (*at++ == ',');
  return trips;
}

std::vector<const Instruction*> MembersOf(const Computation& whole) {
  std::vector<const Instruction*> members;
  for (const Instruction* instruction : whole.PostOrder()) {
    if (!instruction->Is(Opcode::kParameter) && !instruction->Is(Opcode::kTuple)) members.push_back(instruction);
  }
  return members;
}

class TileMaker {
 public:
  explicit TileMaker(const Instruction& tiles)
      : whole_(*tiles.called()),
        members_(MembersOf(whole_)),
        loops_(members_),
        cuts_(loops_, loops_.Of(*SeedOfTiles(tiles)), TripsOf(tiles)) {
    program_.module = std::make_unique<hlo::Module>("tile");
    program_.trips = cuts_.trips();
  }

  TileProgram Make() {
    for (const Instruction* member : members_) {
      for (const Computation* called : member->called_computations())
        CopyComputation(*called, *program_.module, computations_);
    }
    tile_ = program_.module->AddComputation("tile");
    program_.module->set_entry(tile_);
    for (const Instruction* member : members_) images_[member] = Clone(*member);
    const Instruction* root = whole_.root();
    if (!root->Is(Opcode::kTuple)) {
      tile_->set_root(Result(*root));
      return std::move(program_);
    }
    std::vector<Instruction*> results;
    for (const Instruction* result : root->operands()) results.push_back(Result(*result));
    hlo::Builder build(tile_);
    tile_->set_root(build.Tuple(results));
    return std::move(program_);
  }

 private:
  Instruction* Clone(const Instruction& member) {
    std::vector<Instruction*> operands;
    for (int64_t i = 0; i < member.operand_count(); ++i) {
      const Instruction* operand = member.operand(i);
      operands.push_back(operand->Is(Opcode::kParameter) ? Part(*operand, loops_.OfOperand(member, i))
                                                         : images_.at(operand));
    }
    const Shape shape(member.shape().element_type(), cuts_.TileOf(loops_.Of(member)));
    auto clone = member.CloneWithOperands(shape, std::move(operands));
    for (size_t i = 0; i < member.called_computations().size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      clone->set_called(number, computations_.at(member.called(number)));
    }
    return tile_->Add(std::move(clone));
  }

  // A parameter for each way in which an operand is cut.
  Instruction* Part(const Instruction& operand, const SharedLoops::Tensor& tensor) {
    std::vector<int64_t> steps = StepsOf(tensor);
    Dims dims = cuts_.TileOf(tensor);
    Instruction*& part = parts_[{operand.parameter_number(), steps, dims}];
    if (part != nullptr) return part;
    const auto number = static_cast<int64_t>(program_.parameters.size());
    program_.parameters.push_back({operand.parameter_number(), std::move(steps)});
    const Shape shape(operand.shape().element_type(), std::move(dims));
    return part = tile_->AddParameter(number, shape, fmt::format("p{}", number));
  }

  Instruction* Result(const Instruction& result) {
    const auto leaf = static_cast<int64_t>(program_.results.size());
    program_.results.push_back({leaf, StepsOf(loops_.Of(result))});
    return images_.at(&result);
  }

  std::vector<int64_t> StepsOf(const SharedLoops::Tensor& tensor) const {
    std::optional<std::vector<int64_t>> steps = cuts_.StepsOf(tensor);
    HLORUN_CHECK(steps.has_value());
    return std::move(*steps);
  }

  const Computation& whole_;
  const std::vector<const Instruction*> members_;
  const SharedLoops loops_;
  const TileCuts cuts_;
  TileProgram program_;
  Computation* tile_ = nullptr;
  hlo::ComputationMap computations_;
  std::unordered_map<const Instruction*, Instruction*> images_;
  std::map<std::tuple<int64_t, std::vector<int64_t>, Dims>, Instruction*> parts_;
};

}  // namespace

bool FormTiles::Run(hlo::Module& module, PassContext& context) {
  // Kernels of arrays whose sizes vary end at the sizes, each by itself.
  if (context.device.device_class != DeviceClass::kCpu || !SignatureOf(module).empty()) return false;
  const Limits limits = Limits::Of(context.device);
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    std::vector<Instruction*> seeds;
    for (Instruction* instruction : computation->PostOrder()) {
      if (IsSeed(*instruction, limits)) seeds.push_back(instruction);
    }
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (seeds[i] != nullptr) changed |= FormTile(seeds[i], limits, context, seeds);
    }
  }
  return changed;
}

TileProgram TileProgramOf(const Instruction& tiles) { return TileMaker(tiles).Make(); }

const Instruction* SeedOfTiles(const Instruction& tiles) { return LargestProduct(MembersOf(*tiles.called())); }

void FuseTile(hlo::Module& tile, PassContext& context) {
  SinkReshapes().Run(tile, context);
  Fusion().Run(tile, context);
  FlattenControl().Run(tile, context);
  FuseOperands().Run(tile, context);
  Schedule().Run(tile, context);
  CopyInsertion().Run(tile, context);
}

}  // namespace hlorun::passes
