#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/interleaved.h"
#include "backends/opencl/codegen/load_strides.h"
#include "backends/opencl/codegen/schedule.h"
#include "backends/opencl/codegen/staged_tile.h"
#include "backends/opencl/codegen/turned_loads.h"
#include "backends/opencl/codegen/turned_rows.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;

constexpr int64_t kShortVector = 8;      // shorter minor dimensions leave the vectors to another dimension
constexpr int64_t kTileQuantum = 64;     // elements: whole cache lines of floats
constexpr int64_t kBlockElements = 256;  // along the result's rows, that one block of a transpose writes

// The elements that one kernel computes: outputs of equal element count.
using OutputGroup = std::vector<size_t>;

// A loop over one dimension, or several merged; with an extent it ends at extent * scale. With `exchanged`, over two of
// the result, the first of them, of that size, inside of the second.
struct LoopDim {
  int64_t size = 1;
  std::optional<passes::OperandExtent> extent = {};
  int64_t scale = 1;
  int64_t exchanged = 1;
};
using LoopDims = std::vector<LoopDim>;

Dims SizesOf(const LoopDims& loops) {
  Dims sizes;
  for (const LoopDim& loop : loops) sizes.push_back(loop.size);
  return sizes;
}

// Those of the result that the loops are over.
Dims DimensionsOf(const LoopDims& loops) {
  Dims dimensions;
  for (const LoopDim& loop : loops) {
    if (loop.exchanged > 1) dimensions.push_back(loop.exchanged);
    dimensions.push_back(loop.size / loop.exchanged);
  }
  return dimensions;
}

class LoopKernel {
 public:
  LoopKernel(const EmitRequest& request, const OutputGroup& group, const LoopDims& loops)
      : e_(request.instruction, request.aliases, request.context),
        group_(group),
        loops_(loops),
        dims_(SizesOf(loops)) {}

  // The loops' body at the place that `at` names, one index a loop dimension.
  void Build() {
    for (size_t d = 0; d < dims_.size(); ++d) loop_vars_.push_back(e_.IndexVar("i" + std::to_string(d), dims_[d]));
    inner_ = BodyAt({AtVariables()});
  }

  // Of each element, where rows that are written out share them.
  double Divisions() {
    const size_t v = VectorDimension();
    const std::optional<ir::Stmt>& row = RowBody(v);
    return row ? static_cast<double>(DivisionsIn(*row)) / static_cast<double>(ElementsInside(v))
               : static_cast<double>(DivisionsIn(inner_));
  }

  // The loops of a transpose that reads runs too short for squares, [9, 512, 512] of weights [512, 512, 3, 3], in the
  // order of what is read, where the next dimension prolongs its runs; none elsewhere.
  std::optional<LoopDims> WithLongerRuns() {
    const size_t v = VectorDimension();
    const std::optional<Crossed> crossed = CrossedDimension(v);
    if (!crossed || loops_.size() < 3) return std::nullopt;
    const size_t d = crossed->dimension, next = d + 1;
    if (dims_[d] >= e_.Lanes() || next == v || next == dims_.size()) return std::nullopt;
    const LoadStrides strides(inner_);
    const bool prolongs = std::any_of(strides.loads().begin(), strides.loads().end(), [&](const ir::Expr& load) {
      return strides.Of(load, loop_vars_[d]) == 1 && strides.Of(load, loop_vars_[next]) == dims_[d];
    });
    if (!prolongs) return std::nullopt;
    LoopDims loops = loops_;
    loops[d] = {dims_[d] * dims_[next], {}, 1, dims_[d]};
    loops.erase(loops.begin() + static_cast<ptrdiff_t>(next));
    return loops;
  }

  // The loops of a transpose that writes runs too short for squares, [512, 512, 9] of weights' gradients [9, 512, 512],
  // with the next dimension's runs as one; none elsewhere.
  std::optional<LoopDims> WithLongerResults() const {
    if (loops_.size() < 3 || e_.IsGpu() || e_.InPlace()) return std::nullopt;
    const size_t minor = dims_.size() - 1;
    const LoopDim &inner = loops_[minor], &outer = loops_[minor - 1];
    if (inner.size >= e_.Lanes() || inner.size * outer.size < e_.Lanes() || inner.extent || outer.extent)
      return std::nullopt;
    const LoadStrides strides(inner_);
    const bool crosses = std::any_of(strides.loads().begin(), strides.loads().end(), [&](const ir::Expr& load) {
      const auto along = strides.Of(load, loop_vars_[minor]);
      if (!along || std::abs(*along) * hlo::BytesOf(load->buffer->storage) < kLineBytes) return false;
      for (size_t d = 0; d + 1 < minor; ++d) {
        if (dims_[d] >= e_.Lanes() && strides.Of(load, loop_vars_[d]) == 1) return true;
      }
      return false;
    });
    if (!crosses) return std::nullopt;
    LoopDims loops = loops_;
    loops[minor - 1] = {inner.size * outer.size};
    loops.pop_back();
    return loops;
  }

  // Whether these loops make a transpose that a GPU does by tiles in local memory.
  bool HasStagedTile() const { return StagedTileOf().has_value(); }

  EmittedLaunch Finish() {
    size_t v = VectorDimension();
    if (const auto staged = StagedTileOf()) return FinishStaged(staged->dimension, staged->tile);
    const std::optional<Crossed> crossed = CrossedDimension(v);
    const bool is_blocked = crossed && !e_.IsGpu(), is_narrow = is_blocked && dims_[crossed->dimension] < e_.Lanes();
    // Squares would be too narrow to be turned, and a row is put together at least.
    const bool by_rows = (!is_blocked || (is_narrow && crossed->dimension > v)) && WriteRowsOut(v);
    if (is_blocked && !by_rows) return FinishBlocked(v, *crossed);
    if (!by_rows) v = TurnRows(v);
    ir::Stmt body = VectorLoop(v);
    // To find the place of a few elements would cost more than they do.
    const bool has_line = v + 1 == dims_.size() && v > 0 && dims_[v] < kShortVector && !e_.IsGpu() && HasLines(v - 1);
    if (has_line) body = ir::For(ir::LoopRole::kSerial, loop_vars_[v - 1], e_.IndexInt(0), EndOf(v - 1), body);
    int64_t work = WorkOf(body);
    for (size_t d = dims_.size(); d-- > 0;) {
      if (d == v || (by_rows && d > v) || (has_line && d + 1 == v)) continue;
      body = ir::For(ir::LoopRole::kParallel, loop_vars_[d], e_.IndexInt(0), EndOf(d), body);
    }
    if (tile_var_) body = ir::For(ir::LoopRole::kParallel, tile_var_, e_.IndexInt(0), e_.IndexInt(tiles_), body);
    return e_.Finish(body, GrainOf(work),
                     turned_rows_ ? turned_rows_->Helpers(e_.device().has_inline_assembly) : std::vector<ir::Helper>());
  }

 private:
  // Whether the dimensions outside of `d` are work for all cores by themselves.
  bool HasLines(size_t d) const {
    const Dims outside(dims_.begin(), dims_.begin() + static_cast<ptrdiff_t>(d));
    return hlo::CheckedProduct(outside) >= e_.device().compute_units * kGroupsPerUnit;
  }

  Indices AtVariables() {
    Indices at;
    for (const ir::Var& variable : loop_vars_) at.push_back(e_.math().Of(variable));
    return at;
  }

  // What happens at these places, one index a loop each.
  ir::Stmt BodyAt(const std::vector<Indices>& loop_places) {
    struct Result {
      const Emission::Output& output;
      Indices place;
      Value value;
    };
    const Dims dimensions = DimensionsOf(loops_);
    e_.values().Open();
    std::vector<Result> results;
    for (const Indices& loop_place : loop_places) {
      Indices at;
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (loops_[d].exchanged > 1) at.push_back(e_.math().Mod(loop_place[d], loops_[d].exchanged));
        at.push_back(e_.math().FloorDiv(loop_place[d], loops_[d].exchanged));
      }
      const Index linear = e_.math().Linearize(at, dimensions);
      for (const size_t i : group_) {
        const Emission::Output& output = e_.outputs()[i];
        const Indices place =
            output.shape.dimensions() == dimensions ? at : e_.math().Delinearize(linear, output.shape.dimensions());
        results.push_back({output, place, e_.ValueOf(output, place)});
      }
    }
    // All loads come before the stores: a result may share an operand's buffer. Elements of one array side by side.
    for (const size_t i : group_) {
      for (const Result& r : results) {
        if (&r.output == &e_.outputs()[i]) e_.Store(r.output, r.place, r.value);
      }
    }
    return e_.values().Close();
  }

  size_t VectorDimension() {
    const size_t minor = dims_.size() - 1;
    if (dims_[minor] >= kShortVector) return minor;
    size_t best = minor;
    double best_cost = 0;
    for (size_t d = 0; d < minor; ++d) {
      if (dims_[d] < kShortVector) continue;
      const double cost = VectorCost(d);
      const bool is_better = best == minor || cost < best_cost || (cost == best_cost && dims_[d] > dims_[best]);
      if (!is_better) continue;
      best = d;
      best_cost = cost;
    }
    return best != minor && MovesRuns(minor) ? minor : best;
  }

  // Pixels that change places: copies of a few elements side by side along `d`, where vectors along any other dimension
  // would load or store elements that are far apart.
  bool MovesRuns(size_t d) const {
    constexpr int64_t kFar = 4 * kLineBytes;
    if (e_.IsGpu() || group_.size() > 1 || !IsCopy(inner_)) return false;
    const LoadStrides strides(inner_);
    const auto is_run = [&](const ir::Expr& load) {
      const auto along = strides.Of(load, loop_vars_[d]);
      return along && (*along == 0 || *along == 1);
    };
    const int64_t stored = hlo::BytesOf(e_.outputs()[group_.front()].buffer->storage);
    for (size_t other = 0; other < d; ++other) {
      if (dims_[other] < kShortVector || ElementsInside(other) * stored >= kFar) continue;
      const bool loads_far = std::any_of(strides.loads().begin(), strides.loads().end(), [&](const ir::Expr& load) {
        const auto along = strides.Of(load, loop_vars_[other]);
        return along && std::abs(*along) * hlo::BytesOf(load->buffer->storage) >= kFar;
      });
      if (!loads_far) return false;
    }
    return !strides.loads().empty() && std::all_of(strides.loads().begin(), strides.loads().end(), is_run);
  }

  // What an element's loads and the store cost whose vectors run along `d`: those of elements side by side, close
  // together, in a cache line each.
  double VectorCost(size_t d) {
    constexpr double kTogether = 1, kClose = 16, kApart = 64;
    const auto cost_of = [](int64_t bytes_apart, int64_t element) {
      if (bytes_apart <= element) return kTogether;
      return bytes_apart < kLineBytes ? kClose : kApart;
    };
    const int64_t elements = ElementsInside(d);
    double stores = 0, loads = 0;
    for (const size_t i : group_) {
      const int64_t bytes = hlo::BytesOf(e_.outputs()[i].buffer->storage);
      stores += cost_of(elements * bytes, bytes);
    }
    const std::optional<ir::Stmt>& row = RowBody(d);
    const LoadStrides strides(row.value_or(inner_));
    for (const ir::Expr& load : strides.loads()) {
      const int64_t bytes = hlo::BytesOf(load->buffer->storage);
      const auto along = strides.Of(load, loop_vars_[d]);
      loads += along ? cost_of(std::abs(*along) * bytes, bytes) : kApart;
    }
    return stores + (row ? loads / static_cast<double>(elements) : loads);
  }

  // Rows of a few elements, points, pixels and small matrices: vectors go along the dimension outside of them, and a
  // row's elements are put together in registers before they are stored (interleaved.h). Where columns are put side by
  // side, each element is known to be of one of them. Whether it is so; inner_ is a row's then.
  bool WriteRowsOut(size_t v) {
    const std::optional<ir::Stmt>& row = RowBody(v);
    if (!row) return false;
    inner_ = *row;
    elements_together_ = ElementsInside(v);
    return true;
  }

  int64_t ElementsInside(size_t v) const {
    return hlo::CheckedProduct(Dims(dims_.begin() + static_cast<ptrdiff_t>(v) + 1, dims_.end()));
  }

  // What happens at all places of a row inside of dimension `v`, where rows are written out.
  const std::optional<ir::Stmt>& RowBody(size_t v) {
    const auto [known, is_new] = row_bodies_.try_emplace(v);
    if (is_new) known->second = MakeRowBody(v);
    return known->second;
  }

  std::optional<ir::Stmt> MakeRowBody(size_t v) {
    constexpr int64_t kMostWork = 128;  // an element
    const Dims inside(dims_.begin() + static_cast<ptrdiff_t>(v) + 1, dims_.end());
    const int64_t row = ElementsInside(v);
    const bool is_row = row > 1 && row <= (inside.size() == 1 ? kLongestLine : kLongestStoredRow) &&
                        std::none_of(loops_.begin() + static_cast<ptrdiff_t>(v) + 1, loops_.end(),
                                     [](const LoopDim& loop) { return loop.extent.has_value(); });
    if (!is_row || e_.IsGpu() || dims_[v] < std::min<int64_t>(e_.Lanes(), kShortVector) || HasLoop(inner_))
      return std::nullopt;
    if (WorkOf(inner_) > kMostWork * row) return std::nullopt;
    std::vector<Indices> places;
    Dims element(inside.size(), 0);
    do {
      places.push_back(AtVariables());
      std::copy(element.begin(), element.end(), places.back().begin() + static_cast<ptrdiff_t>(v) + 1);
    } while (hlo::NextIndex(element, inside));
    const ir::Stmt body = BodyAt(places);
    return WorkOf(body) > kMostWork * row ? std::nullopt : std::optional(body);
  }

  // Where a load strides along the vectors: the dimension along which it is contiguous.
  struct Crossed {
    size_t dimension;
    int64_t element_bytes;
  };
  std::optional<Crossed> CrossedDimension(size_t v) const {
    const bool is_sized =
        std::any_of(loops_.begin(), loops_.end(), [](const LoopDim& loop) { return loop.extent.has_value(); });
    const bool has_vectors = e_.IsGpu() || (e_.Lanes() > 1 && dims_[v] >= e_.Lanes());
    if (is_sized || e_.InPlace() || !has_vectors) return std::nullopt;
    const LoadStrides strides(inner_);
    for (const ir::Expr& load : strides.loads()) {
      const auto along = strides.Of(load, loop_vars_[v]);
      const int64_t bytes = hlo::BytesOf(load->buffer->storage);
      if (along && std::abs(*along) * bytes < kLineBytes) continue;
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (d == v || dims_[d] == 1 || strides.Of(load, loop_vars_[d]) != 1) continue;
        // Rows at places of their own are read by squares or not at all.
        if (along || (!e_.IsGpu() && dims_[d] >= e_.Lanes() && HasSquares(v, d))) return Crossed{d, bytes};
      }
    }
    return std::nullopt;
  }

  bool HasSquares(size_t along, size_t across) const {
    const TurnedLoads turned(inner_, loop_vars_[along], loop_vars_[across]);
    return !turned.empty() && e_.Lanes() * turned.element_bytes() <= kLineBytes;
  }

  // Tiles over the last dimension and the one that crosses it.
  struct Staged {
    size_t dimension;
    StagedTile tile;
  };
  std::optional<Staged> StagedTileOf() const {
    const size_t v = dims_.size() - 1;
    const auto crossed = e_.IsGpu() ? CrossedDimension(v) : std::nullopt;
    if (!crossed) return std::nullopt;
    const size_t d = crossed->dimension;
    auto tile = StagedTile::Of(inner_, loop_vars_[v], dims_[v], loop_vars_[d], dims_[d], e_.device());
    return tile ? std::optional(Staged{d, std::move(*tile)}) : std::nullopt;
  }

  EmittedLaunch FinishStaged(size_t d, const StagedTile& tile) {
    const size_t v = dims_.size() - 1;
    const auto tiles = [&](const std::string& name, size_t i) {
      return e_.IndexVar(name, CeilDiv(dims_[i], StagedTile::kSide));
    };
    const ir::Var along = tiles("tile_along", v), across = tiles("tile_across", d);
    ir::Stmt body = tile.Body(ir::Ref(along) * StagedTile::kSide, ir::Ref(across) * StagedTile::kSide);
    const auto parallel = [&](const ir::Var& variable) {
      body = ir::For(ir::LoopRole::kParallel, variable, e_.IndexInt(0), e_.IndexInt(variable->max + 1), body);
    };
    parallel(along);
    parallel(across);
    for (size_t i = dims_.size(); i-- > 0;) {
      if (i != v && i != d) parallel(loop_vars_[i]);
    }
    std::vector<ir::Stmt> statements = tile.Declarations();
    statements.push_back(body);
    e_.GroupOf(tile.items());
    return e_.Finish(ir::Block(std::move(statements)), 1);
  }

  // What a block of a transpose takes at a time: `side` elements across by `width` along the vectors.
  struct Patch {
    int64_t width, side;
  };
  // Whole cache lines of what is read, and of the results where the loads are turned in registers; they are not where
  // a dimension is too short for squares.
  Patch TurnedPatch(const TurnedLoads& turned, int64_t length, int64_t across) const {
    Patch patch{e_.Lanes(), kLineBytes / turned.element_bytes()};
    for (const size_t i : group_)
      patch.width = std::max<int64_t>(patch.width, kLineBytes / hlo::BytesOf(e_.outputs()[i].buffer->storage));
    while (patch.width > length) patch.width /= 2;
    while (patch.side > across) patch.side /= 2;
    return patch;
  }

  // A block takes whole cache lines of what is read across: line by line of it, patch by patch of the result. The last
  // ones reach back over elements of those before.
  EmittedLaunch FinishBlocked(size_t v, const Crossed& crossed) {
    const int lanes = e_.Lanes();
    const ir::Var &along = loop_vars_[v], &across = loop_vars_[crossed.dimension];
    const int64_t length = dims_[v], others = dims_[crossed.dimension];
    TurnedLoads turned(inner_, along, across);
    Patch patch = TurnedPatch(turned, length, others);
    const bool turns = !turned.empty() && patch.side >= lanes;
    if (!turns) patch = {lanes, std::clamp<int64_t>(kLineBytes / crossed.element_bytes, 1, others)};
    e_.StreamRowsOf(length, patch.width);

    const int64_t strips = CeilDiv(length, patch.width), strips_of_block = CeilDiv(kBlockElements, patch.width),
                  blocks = CeilDiv(strips, strips_of_block), sides = CeilDiv(others, patch.side);
    const ir::Var strip = e_.IndexVar("strip", strips), block = e_.IndexVar("block", blocks),
                  line = e_.IndexVar("line", sides), begin = e_.IndexVar("begin", length - patch.width + 1),
                  first = e_.IndexVar("first", others - patch.side + 1);
    begin->factor = std::gcd(length, patch.width);
    first->factor = std::gcd(others, patch.side);
    const TurnedLoads::Block place{ir::Ref(begin), ir::Ref(first), patch.width, patch.side, lanes};
    std::vector<ir::Stmt> statements = {
        ir::Let(first, ir::Min(ir::Ref(line) * patch.side, e_.IndexInt(others - patch.side)))};
    if (turns) {
      for (const ir::Stmt& array : turned.Declare(patch.width, patch.side)) statements.push_back(array);
    }
    ir::Stmt body = ir::For(ir::LoopRole::kVector, along, ir::Ref(begin), ir::Ref(begin) + patch.width,
                            turns ? turned.Body(place) : inner_, 1, lanes);
    body = ir::For(ir::LoopRole::kSerial, across, ir::Ref(first), ir::Ref(first) + patch.side, body);
    body = ir::Block({ir::Let(begin, ir::Min(ir::Ref(strip) * patch.width, e_.IndexInt(length - patch.width))),
                      turns ? turned.Fill(place) : nullptr, body});
    const ir::Expr last_strip = ir::Min(ir::Ref(block) * strips_of_block + strips_of_block, e_.IndexInt(strips));
    statements.push_back(ir::For(ir::LoopRole::kSerial, strip, ir::Ref(block) * strips_of_block, last_strip, body));
    const int64_t vectors = std::min(length, kBlockElements) / lanes * patch.side;
    const int64_t work = std::max<int64_t>(1, WorkOf(inner_) * vectors);
    // The next line of the same rows lies in pages that are known, and is on its way.
    body = ir::For(ir::LoopRole::kParallel, line, e_.IndexInt(0), e_.IndexInt(sides), ir::Block(statements));
    body = ir::For(ir::LoopRole::kParallel, block, e_.IndexInt(0), e_.IndexInt(blocks), body);
    for (size_t d = dims_.size(); d-- > 0;) {
      if (d == v || d == crossed.dimension) continue;
      body = ir::For(ir::LoopRole::kParallel, loop_vars_[d], e_.IndexInt(0), e_.IndexInt(dims_[d]), body);
    }
    return e_.Finish(body, GrainOf(work),
                     turns ? turned.Helpers(lanes, e_.device().has_inline_assembly) : std::vector<ir::Helper>());
  }

  ir::Expr EndOf(size_t d) {
    const LoopDim& loop = loops_[d];
    return loop.extent ? e_.ValueOf(*loop.extent, loop.size / loop.scale) * loop.scale : e_.IndexInt(loop.size);
  }

  // Tiles of equal parts of what is there.
  ir::Stmt SizedTiles(size_t v) {
    tile_var_ = e_.IndexVar("tile", tiles_);
    const ir::Type type = e_.math().type();
    const ir::Var length = ir::MakeVar("tile_length", type), begin = ir::MakeVar("begin", type);
    const ir::Expr end = EndOf(v);
    const auto over = [&](const ir::Expr& x, int64_t by) { return ir::Binary(ir::Op::kFloorDiv, x, e_.IndexInt(by)); };
    return ir::Block(
        {ir::Let(length, over(over(end + (tiles_ - 1), tiles_) + (kTileQuantum - 1), kTileQuantum) * kTileQuantum),
         ir::Let(begin, ir::Min(ir::Ref(tile_var_) * ir::Ref(length), end)),
         ir::For(ir::LoopRole::kVector, loop_vars_[v], ir::Ref(begin), ir::Min(ir::Ref(begin) + ir::Ref(length), end),
                 inner_, 1, e_.Lanes())});
  }

  // A tile's elements all at once, `kTogether` an item; those of a last one that is not whole one by one.
  ir::Stmt TogetherOnGpu(size_t v, int64_t tile) {
    const int64_t extent = dims_[v], lanes = GroupLanes(e_.device());
    const ir::Var lane = e_.IndexVar("lane", extent - (tile - lanes)), begin = ir::MakeVar("begin", e_.math().type());
    std::vector<Indices> places;
    for (int64_t i = 0; i < kTogether; ++i) {
      places.push_back(AtVariables());
      places.back()[v] = e_.math().Add(e_.math().Of(lane), i * lanes);
    }
    const auto loop = [&](const ir::Var& variable, const ir::Expr& end, const ir::Stmt& body) {
      return ir::For(ir::LoopRole::kVector, variable, ir::Ref(begin), end, body, 1, e_.Lanes());
    };
    tiles_ = CeilDiv(extent, tile);
    tile_var_ = e_.IndexVar("tile", tiles_);
    const ir::Stmt whole = loop(lane, ir::Ref(begin) + lanes, BodyAt(places)),
                   rest = loop(loop_vars_[v], e_.IndexInt(extent), inner_);
    const ir::Expr is_whole = ir::Compare(ir::Op::kLe, ir::Ref(begin), e_.IndexInt(extent - tile));
    return ir::Block(
        {ir::Let(begin, ir::Ref(tile_var_) * tile), extent % tile == 0 ? whole : ir::If(is_whole, whole, rest)});
  }

  // Elements along the vector dimension `v` that a group takes: fewer where the other dimensions do not keep all cores
  // busy, or where rows of short vectors lie between them, which cores would write to the same cache lines.
  int64_t TileAlong(size_t v) const {
    if (e_.IsGpu()) return GroupLanes(e_.device()) * (HasLoop(inner_) ? 1 : kTogether);
    const int64_t extent = dims_[v], inside = std::max<int64_t>(extent * elements_together_, 1);
    const int64_t others = std::max<int64_t>(1, hlo::CheckedProduct(dims_) / inside);
    const int64_t wanted = CeilDiv(e_.device().compute_units * kGroupsPerUnit, others);
    const int64_t worth = std::max<int64_t>(1, WorkOf(inner_) * extent / kWorkOfGroup);
    const int64_t tile = CeilDiv(CeilDiv(extent, std::min(wanted, worth)), kTileQuantum) * kTileQuantum;
    return std::min(tile, MostElementsOf(v));
  }

  // Of dimension `v`, together with those inside of it, where cores would share lines; else any number.
  int64_t MostElementsOf(size_t v) const {
    constexpr int64_t kBytesTogether = 8192;
    int64_t bytes = hlo::BytesOf(e_.outputs()[group_.front()].buffer->storage);
    for (size_t d = v + 1; d < dims_.size(); ++d) bytes *= dims_[d];
    if (v + 1 == dims_.size() || bytes * e_.Lanes() > kBytesTogether) return INT64_MAX;
    return kBytesTogether / bytes / e_.Lanes() * e_.Lanes();
  }

  // Where rows are reduced that vectors read whole: the dimension of the rows, `v` unless it has too few; else `v`.
  size_t TurnRows(size_t v) {
    if (e_.IsGpu() || e_.InPlace()) return v;
    const bool is_short = dims_[v] < e_.Lanes();
    for (size_t d = is_short ? 0 : v; d <= v; ++d) {
      if (loops_[d].extent || dims_[d] < e_.Lanes()) continue;
      turned_rows_ = TurnedRows::Of(inner_, loop_vars_[d], e_.Lanes());
      if (turned_rows_) return d;
    }
    return v;
  }

  // Elements begin .. end along the vectors.
  ir::Stmt Elements(size_t v, const ir::Expr& begin, const ir::Expr& end) {
    if (turned_rows_) return turned_rows_->Loop(begin, end);
    return ir::For(ir::LoopRole::kVector, loop_vars_[v], begin, end, inner_, 1, e_.Lanes());
  }

  // The vector dimension, cut into tiles.
  ir::Stmt VectorLoop(size_t v) {
    const int64_t extent = dims_[v], tile = TileAlong(v);
    if (tile >= extent) return Elements(v, e_.IndexInt(0), EndOf(v));
    if (e_.IsGpu() && !loops_[v].extent && GoesTogether(inner_)) return TogetherOnGpu(v, tile);

    tiles_ = CeilDiv(extent, tile);
    if (loops_[v].extent) return SizedTiles(v);
    tile_var_ = e_.IndexVar("tile", tiles_);
    const ir::Expr first = ir::Ref(tile_var_) * tile;
    const ir::Var begin = ir::MakeVar("begin", e_.math().type());
    if (extent % tile == 0 || e_.InPlace()) begin->factor = tile;
    if (extent % tile == 0) {
      return ir::Block({ir::Let(begin, first), Elements(v, ir::Ref(begin), ir::Ref(begin) + tile)});
    }
    if (e_.InPlace() || e_.IsGpu()) {
      const ir::Expr end = ir::Min(ir::Ref(begin) + tile, e_.IndexInt(extent));
      return ir::Block({ir::Let(begin, first), Elements(v, ir::Ref(begin), end)});
    }
    // The last tile reaches back and writes some elements again, with the same values, so that all tiles are whole.
    return ir::Block({ir::Let(begin, ir::Min(first, e_.IndexInt(extent - tile))),
                      Elements(v, ir::Ref(begin), ir::Ref(begin) + tile)});
  }

  Emission e_;
  OutputGroup group_;
  LoopDims loops_;
  Dims dims_;
  std::vector<ir::Var> loop_vars_;
  ir::Stmt inner_;
  std::map<size_t, std::optional<ir::Stmt>> row_bodies_;  // by dimension
  std::optional<TurnedRows> turned_rows_;
  ir::Var tile_var_;
  int64_t tiles_ = 1;
  int64_t elements_together_ = 1;  // of a row, in inner_
};

// The loops over an array, with the extents that all outputs of the group have.
LoopDims LoopsOver(const EmitRequest& request, const OutputGroup& group, const std::vector<ResultPart>& parts) {
  const passes::KernelExtents extents = passes::ExtentsOf(request.instruction);
  const Dims& dims = parts[group.front()].shape.dimensions();
  const bool alike =
      std::all_of(group.begin(), group.end(), [&](size_t i) { return parts[i].shape.dimensions() == dims; });
  LoopDims loops;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    LoopDim loop{dims[d]};
    const auto extent_of = [&](size_t i) -> std::optional<passes::OperandExtent> {
      if (!parts[i].IsWhole()) return std::nullopt;
      return extents.Of(parts[i].leaf, static_cast<int64_t>(d));
    };
    const auto first = extent_of(group.front());
    if (alike && std::all_of(group.begin(), group.end(), [&](size_t i) { return extent_of(i) == first; }))
      loop.extent = first;
    loops.push_back(loop);
  }
  if (loops.empty()) loops.push_back({});
  return loops;
}

// Two neighbouring loops as one: the inner one must be whole.
std::optional<LoopDim> Merged(const LoopDim& outer, const LoopDim& inner) {
  if (inner.extent) return std::nullopt;
  return LoopDim{outer.size * inner.size, outer.extent, outer.scale * inner.size};
}

std::optional<LoopDim> Flat(const LoopDims& loops) {
  LoopDim all = loops[0];
  for (size_t d = 1; d < loops.size(); ++d) {
    const std::optional<LoopDim> merged = Merged(all, loops[d]);
    if (!merged) return std::nullopt;
    all = *merged;
  }
  return all;
}

using KernelBuilder = std::function<std::unique_ptr<LoopKernel>(const LoopDims&)>;

// Neighbouring loop dimensions merged where that costs no division: found by trying.
std::unique_ptr<LoopKernel> MergedKernel(const KernelBuilder& build, const LoopDims& dims) {
  auto best = build(dims);
  double fewest = best->Divisions();
  LoopDims merged = dims;
  for (size_t d = dims.size() - 1; d-- > 0;) {
    LoopDims trial = merged;
    const std::optional<LoopDim> both = Merged(trial[d], trial[d + 1]);
    if (!both) continue;
    trial[d] = *both;
    trial.erase(trial.begin() + static_cast<ptrdiff_t>(d) + 1);
    auto kernel = build(trial);
    const double divisions = kernel->Divisions();
    if (divisions > fewest) continue;
    fewest = divisions;
    best = std::move(kernel);
    merged = trial;
  }
  return best;
}

// The loops over a group of results.
std::unique_ptr<LoopKernel> BestKernel(const EmitRequest& request, const OutputGroup& group, const LoopDims& dims) {
  const auto build = [&](const LoopDims& d) {
    auto kernel = std::make_unique<LoopKernel>(request, group, d);
    kernel->Build();
    return kernel;
  };
  const bool is_gpu = request.context.device.device_class == DeviceClass::kGpu;
  if (const std::optional<LoopDim> all = Flat(dims)) {
    auto flat = build({*all});
    if (dims.size() == 1 || flat->Divisions() == 0) return flat;
    if (is_gpu) {
      auto merged = MergedKernel(build, dims);
      return merged->HasStagedTile() ? std::move(merged) : std::move(flat);
    }
  }
  auto best = MergedKernel(build, dims);
  if (const std::optional<LoopDims> longer = best->WithLongerRuns()) return build(*longer);
  if (const std::optional<LoopDims> longer = best->WithLongerResults()) return build(*longer);
  return best;
}

}  // namespace

Launches EmitLoop(const EmitRequest& request) {
  std::map<int64_t, OutputGroup> groups;  // by element count
  const std::vector<ResultPart> parts = ResultPartsOf(request.instruction);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].shape.ElementCount() > 0) groups[parts[i].shape.ElementCount()].push_back(i);
  }
  Launches launches;
  for (const auto& [count, group] : groups) {
    launches.push_back(BestKernel(request, group, LoopsOver(request, group, parts))->Finish());
  }
  return launches;
}

}  // namespace hlorun::opencl
