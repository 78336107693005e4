// Scatters on GPU class.
//
// Where updates may meet, each row of the result has one owner: some neighbouring work-items of one group, side by side
// along the row. A group looks through all updates for those of its rows, and applies them in their order: the same
// bits on every run and device. Rows are dealt to groups in turn, since indices are often close to each other.
#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/marked_updates.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/scatter_updates.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using ir::Expr;

// More groups than that, and looking through the updates is most of the work.
constexpr int64_t kMostOwners = 1024;
// So many groups are enough without cutting rows, unless few updates are to be looked through: where many of them meet
// in a row, its tiles take them side by side.
constexpr int64_t kEnoughGroups = 512, kFewUpdates = 4096;

Dims Sizes(const hlo::Shape& shape, const std::vector<int64_t>& dims) {
  Dims sizes;
  for (const int64_t d : dims) sizes.push_back(shape.dimension(d));
  return sizes;
}

class OwnedScatter {
 public:
  explicit OwnedScatter(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context), updates_(e_, *request.hero.instruction) {
    const hlo::Shape& shape = updates_.updates_shape();
    parallel_dims_ = updates_.OperandBatchDims();
    for (const int64_t d : updates_.batch_dims()) {
      if (std::find(parallel_dims_.begin(), parallel_dims_.end(), d) == parallel_dims_.end()) walked_dims_.push_back(d);
    }
    count_ = hlo::CheckedProduct(Sizes(shape, walked_dims_));
    width_ = hlo::CheckedProduct(Sizes(shape, updates_.window_dims()));
    rows_ = hlo::CheckedProduct(Sizes(updates_.operand_shape(), updates_.RowDims()));
    group_ = PowerUpTo(GroupLanes(e_.device()));
    across_ = std::min(group_, PowerFrom(width_));
    teams_ = group_ / across_;
    owners_ = PowerFrom(std::min({kMostOwners, count_, rows_}));
    update_.resize(static_cast<size_t>(shape.rank()));
  }

  EmittedLaunch Emit() { return updates_.IsIndependent() || count_ == 1 ? EachElement() : ByOwners(); }

 private:
  // No update meets another.
  EmittedLaunch EachElement() {
    const hlo::Shape& shape = updates_.updates_shape();
    return OverElements(e_, shape.rank() == 0 ? Dims{1} : shape.dimensions(), [&](const Indices& loop) {
      const Indices update = shape.rank() == 0 ? Indices{} : loop;
      const ScatterUpdates::Start start = updates_.StartOf(update);
      e_.values().Open();
      updates_.Store(updates_.Combined(start, update));
      const ir::Stmt stores = e_.values().Close();
      e_.body().Add(ir::If(e_.body().Name(start.inside, "inside"), stores));
    });
  }

  EmittedLaunch ByOwners() {
    IndexMath& math = e_.math();
    OpenNest();
    const ir::Var item = e_.IndexVar("item", group_);
    item_ = math.Of(item);
    e_.values().Open();
    MarkedUpdates marked(e_, count_, group_, item_);
    marked.ForEach([&](const Index& number, const Expr& mask) { return IsMine(number, mask); },
                   [&](const Index& number) { Apply(number); });
    ir::Stmt body =
        ir::For(ir::LoopRole::kVector, item, e_.IndexInt(0), e_.IndexInt(group_), e_.values().Close(), 1, e_.Lanes());
    for (size_t i = nest_.size(); i-- > 0;) {
      body = ir::For(ir::LoopRole::kParallel, nest_[i], e_.IndexInt(0), e_.IndexInt(nest_[i]->max + 1), body);
    }
    e_.GroupOf(group_);
    return e_.Finish(body, 1);
  }

  // Groups: for each batch of the operand, owner, and tile of a row.
  void OpenNest() {
    IndexMath& math = e_.math();
    int64_t groups = owners_;
    for (const int64_t d : parallel_dims_) {
      const int64_t size = updates_.updates_shape().dimension(d);
      nest_.push_back(e_.IndexVar("batch" + std::to_string(d), size));
      update_[static_cast<size_t>(d)] = math.Of(nest_.back());
      groups *= size;
    }
    nest_.push_back(e_.IndexVar("owner", owners_));
    owner_ = math.Of(nest_.back());
    // The items of one group wait for each other between windows that overlap; those of several could not.
    const bool has_enough = groups >= kEnoughGroups && count_ > kFewUpdates;
    are_tiled_ = !has_enough && tiles() > 1 && !updates_.WindowsSlide();
    if (!are_tiled_) return;
    nest_.push_back(e_.IndexVar("tile", tiles()));
    tile_ = math.Of(nest_.back());
  }

  int64_t tile_size() const { return across_ * kTogether; }
  int64_t tiles() const { return CeilDiv(width_, tile_size()); }

  void SetBatch(const Index& number) {
    const Indices at = e_.math().Delinearize(number, Sizes(updates_.updates_shape(), walked_dims_));
    for (size_t i = 0; i < walked_dims_.size(); ++i) update_[static_cast<size_t>(walked_dims_[i])] = at[i];
  }

  // The row of an update that lies inside; of another, some number.
  Index RowOf(const ScatterUpdates::Start& start) {
    const std::vector<int64_t> dims = updates_.RowDims();
    if (dims.empty()) return 0;
    Indices at;
    for (const int64_t d : dims) at.push_back(start.at[static_cast<size_t>(d)]);
    const Index row = e_.math().Linearize(at, Sizes(updates_.operand_shape(), dims));
    const ir::Var variable = e_.IndexVar(e_.body().FreshName("row"), rows_);
    e_.body().Add(ir::Let(variable, ir::Max(e_.math().ToExpr(row), e_.IndexInt(0))));
    return e_.math().Of(variable);
  }

  Expr IsMine(const Index& number, const Expr& mask) {
    IndexMath& math = e_.math();
    SetBatch(number);
    const ScatterUpdates::Start start = updates_.StartOf(update_, mask);
    const Expr owner = math.ToExpr(math.Mod(RowOf(start), owners_));
    return e_.values().Both(e_.body().Name(start.inside, "inside"),
                            ir::Compare(ir::Op::kEq, owner, math.ToExpr(owner_)));
  }

  void Apply(const Index& number) {
    IndexMath& math = e_.math();
    SetBatch(number);
    const ScatterUpdates::Start start = updates_.StartOf(update_);
    const Index team = math.Mod(math.FloorDiv(RowOf(start), owners_), teams_);
    const Expr is_ours = ir::Compare(ir::Op::kEq, math.ToExpr(team), math.ToExpr(math.FloorDiv(item_, across_)));
    e_.values().Open();
    ApplyRow(start);
    const ir::Stmt row = e_.values().Close();
    e_.body().Add(teams_ > 1 ? ir::If(is_ours, row) : row);
    if (updates_.WindowsSlide()) e_.body().Add(ir::Barrier());
  }

  void ApplyRow(const ScatterUpdates::Start& start) {
    IndexMath& math = e_.math();
    const Index lane = math.Mod(item_, across_);
    if (width_ <= across_) {
      const Expr has_element = e_.values().Both(nullptr, math.Within(lane, 0, width_));
      const ir::Stmt element = ElementsAt(start, {lane});
      e_.body().Add(has_element ? ir::If(has_element, element) : element);
      return;
    }
    if (are_tiled_) return ApplyTile(start, lane, tile_);
    e_.values().SerialLoop(tiles(), [&](const Index& tile) { ApplyTile(start, lane, tile); });
  }

  // Whole tiles several elements an item, side by side; of the last one, element by element.
  void ApplyTile(const ScatterUpdates::Start& start, const Index& lane, const Index& tile) {
    IndexMath& math = e_.math();
    const Index begin = math.Add(math.Mul(tile, tile_size()), lane);
    const ir::Var element = e_.IndexVar(e_.body().FreshName("element"), width_);
    const ir::Stmt one = ElementsAt(start, {math.Of(element)});
    const Expr end = ir::Min(math.ToExpr(math.Mul(tile, tile_size())) + tile_size(), e_.IndexInt(width_));
    ir::Stmt elements = ir::For(ir::LoopRole::kSerial, element, math.ToExpr(begin), end, one, across_);
    if (GoesTogether(one) && width_ >= tile_size()) {
      std::vector<Index> places;
      for (int64_t i = 0; i < kTogether; ++i) places.push_back(math.Add(begin, i * across_));
      const ir::Stmt whole = ElementsAt(start, places);
      const Expr is_whole = ir::Compare(ir::Op::kLt, math.ToExpr(tile), e_.IndexInt(width_ / tile_size()));
      elements = width_ % tile_size() == 0 ? whole : ir::If(is_whole, whole, elements);
    }
    e_.body().Add(elements);
  }

  // All loads come before the stores: an update has no element twice.
  ir::Stmt ElementsAt(const ScatterUpdates::Start& start, const std::vector<Index>& places) {
    const std::vector<int64_t>& dims = updates_.window_dims();
    e_.values().Open();
    std::vector<ScatterUpdates::Element> elements;
    for (const Index& place : places) {
      const Indices at = e_.math().Delinearize(place, Sizes(updates_.updates_shape(), dims));
      for (size_t i = 0; i < dims.size(); ++i) update_[static_cast<size_t>(dims[i])] = at[i];
      elements.push_back(updates_.Combined(start, update_));
    }
    for (const ScatterUpdates::Element& element : elements) updates_.Store(element);
    return e_.values().Close();
  }

  Emission e_;
  ScatterUpdates updates_;
  std::vector<int64_t> parallel_dims_, walked_dims_;  // batch dimensions of the updates
  int64_t count_, width_, rows_;                      // updates of each batch, elements of each, rows of the result
  int64_t group_, across_, teams_, owners_;
  std::vector<ir::Var> nest_;
  bool are_tiled_ = false;  // rows: each of their tiles is another group's
  Index item_, owner_, tile_;
  Indices update_;
};

}  // namespace

EmittedLaunch EmitOwnedScatter(const EmitRequest& request) { return OwnedScatter(request).Emit(); }

}  // namespace hlorun::opencl
