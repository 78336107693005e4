#include <algorithm>
#include <bit>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/extent_expr.h"
#include "backends/opencl/codegen/reducers.h"
#include "hlo/builder.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;
using ir::Expr;

// Columns of a tile. Many rows are walked in wide tiles, whose accumulators still stay in the first-level cache: 2 KiB
// of each row come from half a page each, which neither the prefetcher nor the TLB likes. Few rows would have more
// partial results than elements in the parts that wide tiles are cut into.
constexpr int64_t kTile = 512;
constexpr int64_t kWideTileBytes = 16 << 10;
constexpr int64_t kManyRows = 256;
// Of many rows, so many are added to a column's accumulator each time that it is loaded, in their order. Not rows of
// less than two pages, of which the prefetcher then loses count, nor where the fused computation has more ops than
// this.
constexpr int64_t kRowsTogether = 4;
constexpr int64_t kLongRowBytes = 8 << 10;
constexpr size_t kMostOpsOfRow = 16;
constexpr int64_t kTasks = 16;  // independent of the device, so that results are
constexpr int64_t kMostParts = 64;
constexpr int64_t kPartElements = 1 << 14;  // that make a part worth its group

// An operand whose last dimension stays: columns are summed side by side.
struct ColumnShape {
  Dims dimensions;
  std::vector<size_t> kept, reduced;
  Dims Of(const std::vector<size_t>& numbers) const {
    Dims d;
    for (const size_t n : numbers) d.push_back(dimensions[n]);
    return d;
  }
  int64_t columns() const { return dimensions[kept.back()]; }
  int64_t rows() const { return hlo::CheckedProduct(Of(reduced)); }
  int64_t results() const { return hlo::CheckedProduct(Of(kept)); }
};

ColumnShape ColumnShapeOf(const Instruction& reduce) {
  ColumnShape shape{reduce.operand(0)->shape().dimensions(), {}, {}};
  for (size_t d = 0; d < shape.dimensions.size(); ++d) {
    const bool is_reduced = std::find(reduce.dimensions().begin(), reduce.dimensions().end(),
                                      static_cast<int64_t>(d)) != reduce.dimensions().end();
    (is_reduced ? shape.reduced : shape.kept).push_back(d);
  }
  return shape;
}

int64_t TileOf(const ColumnShape& shape, const std::vector<const Instruction*>& reduces) {
  int64_t bytes = 0;  // of a column's accumulators
  for (const Instruction* reduce : reduces) {
    const hlo::ElementType type = reduce->shape().element_type();
    bytes += hlo::BytesOf(PartialType(type)) * (hlo::IsComplex(type) ? 2 : 1);
  }
  const auto wide = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kWideTileBytes / bytes)));
  return std::min(shape.rows() < kManyRows ? kTile : std::max(kTile, wide), shape.columns());
}

int64_t PartsOf(const ColumnShape& shape, int64_t tile) {
  const int64_t tasks = shape.results() / shape.columns() * ((shape.columns() + tile - 1) / tile);
  if (tasks >= kTasks) return 1;
  const int64_t elements = shape.rows() * shape.results();
  return std::max<int64_t>(
      1, std::min({kMostParts, elements / kPartElements, shape.rows(), (kTasks + tasks - 1) / tasks}));
}

class ColumnKernel {
 public:
  explicit ColumnKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        shape_(ColumnShapeOf(*request.hero.instruction)),
        reduces_(ReduceLevels(request.instruction)[0]),
        tile_(TileOf(shape_, reduces_)) {}

  // All rows at once.
  EmittedLaunch Whole() {
    OpenTile();
    const Accumulators sums = SumRows(e_.IndexInt(0), LiveRows());
    OverTile([&](const Index& l) {
      Finish(
          l, [&](size_t i) { return LoadAt(sums, i, l); }, 1);
    });
    return CloseTile(nullptr, 1);
  }

  // The first of two launches: the rows of part p, without initial values, into scratch.
  EmittedLaunch Parts(int64_t parts) {
    const ir::Var part = e_.IndexVar("part", parts);
    const std::vector<ir::BufferRef> scratch = Scratch(parts, true);
    OpenTile();
    const Expr live = LiveRows();
    const Expr size = ir::Binary(ir::Op::kFloorDiv, live + (parts - 1), e_.IndexInt(parts));
    const Expr begin = e_.body().Name(ir::Ref(part) * size, "begin");
    const Accumulators sums = SumRows(begin, e_.body().Name(ir::Min(begin + size, live), "end"));
    OverTile([&](const Index& l) {
      const Index at = e_.math().Add(e_.math().Mul(e_.math().Of(part), shape_.results()), Result(l));
      for (size_t i = 0; i < reduces_.size(); ++i) StoreAt(scratch[i], at, LoadAt(sums, i, l));
    });
    return CloseTile(part, parts);
  }

  // The second: parts in order, then the results.
  EmittedLaunch Join(int64_t parts) {
    const std::vector<ir::BufferRef> scratch = Scratch(parts, false);
    OpenTile();
    OverTile([&](const Index& l) {
      Finish(l, nullptr, parts, [&](size_t i, const Index& p) {
        const Index at = e_.math().Add(e_.math().Mul(p, shape_.results()), Result(l));
        return LoadFrom(scratch[i], nullptr, reduces_[i]->shape().element_type(), at);
      });
    });
    return CloseTile(nullptr, 1);
  }

 private:
  // Accumulators of a tile, a private array for each part of a number.
  struct Accumulators {
    std::vector<ir::BufferRef> re, im;
  };

  std::vector<ir::BufferRef> Scratch(int64_t parts, bool written) {
    std::vector<ir::BufferRef> buffers;
    int64_t offset = 0;
    for (const Instruction* reduce : reduces_) {
      const hlo::ElementType type = reduce->shape().element_type();
      const int64_t count = shape_.results() * parts * (hlo::IsComplex(type) ? 2 : 1);
      buffers.push_back(e_.Scratch("part" + std::to_string(buffers.size()), PartialType(type), count, offset, written));
      offset += PartialBytes(*reduce, shape_.results() * parts);
    }
    return buffers;
  }

  void OpenTile() {
    for (size_t i = 0; i + 1 < shape_.kept.size(); ++i) {
      outer_.push_back(e_.IndexVar("c" + std::to_string(i), shape_.dimensions[shape_.kept[i]]));
    }
    tiles_ = (shape_.columns() + tile_ - 1) / tile_;
    tile_var_ = e_.IndexVar("tile", tiles_);
    first_ = ir::MakeIndex("first", 0, shape_.columns() - tile_, e_.math().type());
    if (shape_.columns() % tile_ == 0) first_->factor = tile_;
    e_.values().Open();
    // The last tile reaches back over columns of the one before.
    e_.body().Add(ir::Let(first_, ir::Min(ir::Ref(tile_var_) * tile_, e_.IndexInt(shape_.columns() - tile_))));
  }

  EmittedLaunch CloseTile(const ir::Var& part, int64_t parts) {
    ir::Stmt body = e_.values().Close();
    const int64_t grain = GrainOfVectors(WorkOf(body), e_.Lanes());
    Expr tiles = e_.IndexInt(tiles_);
    if (const auto columns = KeptExtent(shape_.kept.size() - 1)) {
      tiles = ir::Binary(ir::Op::kFloorDiv, e_.ValueOf(*columns, shape_.columns()) + (tile_ - 1), e_.IndexInt(tile_));
    }
    body = ir::For(ir::LoopRole::kParallel, tile_var_, e_.IndexInt(0), tiles, body);
    for (size_t i = outer_.size(); i-- > 0;) {
      const int64_t size = outer_[i]->max + 1;
      const auto extent = KeptExtent(i);
      body = ir::For(ir::LoopRole::kParallel, outer_[i], e_.IndexInt(0),
                     extent ? e_.ValueOf(*extent, size) : e_.IndexInt(size), body);
    }
    if (part) body = ir::For(ir::LoopRole::kParallel, part, e_.IndexInt(0), e_.IndexInt(parts), body);
    return e_.Finish(body, grain);
  }

  // How far kept dimension `i` is needed.
  std::optional<passes::OperandExtent> KeptExtent(size_t i) const {
    return e_.SharedExtent([&](const Emission::Output& output) {
      return output.shape.dimensions() == shape_.Of(shape_.kept) ? static_cast<int64_t>(i) : Emission::kUnknown;
    });
  }

  // Rows from which on all reductions meet neutral elements only, or all rows.
  Expr LiveRows() {
    const size_t d = shape_.reduced.front();
    const Instruction* size = CommonSize(reduces_, static_cast<int64_t>(d));
    if (size == nullptr) return e_.IndexInt(shape_.rows());
    const int64_t slowest = shape_.dimensions[d];
    const Expr value = ir::Cast(e_.values().Get(e_.frame(), *size, {}).re, e_.math().type().element);
    return e_.body().Name(ExtentExpr(value, {}, slowest) * (shape_.rows() / slowest), "live");
  }

  Indices Kept(const Index& l) {
    Indices kept;
    for (const ir::Var& v : outer_) kept.push_back(e_.math().Of(v));
    kept.push_back(e_.math().Add(e_.math().Of(first_), l));
    return kept;
  }
  Index Result(const Index& l) { return e_.math().Linearize(Kept(l), shape_.Of(shape_.kept)); }

  void OverTile(const std::function<void(const Index&)>& body) {
    const ir::Var l = e_.IndexVar(e_.body().FreshName("l"), tile_);
    e_.values().Open();
    body(e_.math().Of(l));
    e_.body().Add(
        ir::For(ir::LoopRole::kVector, l, e_.IndexInt(0), e_.IndexInt(tile_), e_.values().Close(), 1, e_.Lanes()));
  }

  Value LoadFrom(const ir::BufferRef& re, const ir::BufferRef& im, hlo::ElementType type, const Index& at) {
    const Expr place = e_.math().ToExpr(at);
    if (!hlo::IsComplex(type)) return {e_.body().Name(ir::Load(re, place)), nullptr};
    if (im) return {e_.body().Name(ir::Load(re, place)), e_.body().Name(ir::Load(im, place))};
    return {e_.body().Name(ir::Load(re, place * 2)), e_.body().Name(ir::Load(re, place * 2 + 1))};
  }
  Value LoadAt(const Accumulators& sums, size_t i, const Index& l) {
    return LoadFrom(sums.re[i], sums.im[i], reduces_[i]->shape().element_type(), l);
  }
  void StoreAt(const ir::BufferRef& buffer, const Index& at, const Value& value) {
    const Expr place = e_.math().ToExpr(at);
    e_.body().Add(ir::Store(buffer, value.im ? place * 2 : place, value.re));
    if (value.im) e_.body().Add(ir::Store(buffer, place * 2 + 1, value.im));
  }
  void StoreSum(const Accumulators& sums, size_t i, const Index& l, const Value& value) {
    e_.body().Add(ir::Store(sums.re[i], e_.math().ToExpr(l), value.re));
    if (value.im) e_.body().Add(ir::Store(sums.im[i], e_.math().ToExpr(l), value.im));
  }

  hlo::Opcode OpcodeOf(size_t i) const { return hlo::ReducerOpcode(*reduces_[i]->called()).value(); }

  Accumulators SumRows(const Expr& begin, const Expr& end) {
    Accumulators sums;
    const auto array = [&](hlo::ElementType type) { return e_.PrivateArray("sums", PartialType(type), tile_); };
    for (const Instruction* reduce : reduces_) {
      const hlo::ElementType type = reduce->shape().element_type();
      sums.re.push_back(array(type));
      sums.im.push_back(hlo::IsComplex(type) ? array(type) : nullptr);
    }
    OverTile([&](const Index& l) {
      for (size_t i = 0; i < reduces_.size(); ++i)
        StoreSum(sums, i, l, NeutralOf(OpcodeOf(i), reduces_[i]->shape().element_type()).value());
    });
    if (!WalksRowsTogether()) {
      AddRows(sums, begin, end, 1);
      return sums;
    }
    const Expr whole = ir::Binary(ir::Op::kFloorDiv, end - begin, e_.IndexInt(kRowsTogether)) * kRowsTogether;
    const Expr middle = e_.body().Name(begin + whole, "middle");
    AddRows(sums, begin, middle, kRowsTogether);
    AddRows(sums, middle, end, 1);
    return sums;
  }

  // Expensive operands would be there as often as there are rows, to no avail.
  bool WalksRowsTogether() const {
    const int64_t row_bytes = shape_.columns() * hlo::BytesOf(reduces_.front()->operand(0)->shape().element_type());
    return shape_.rows() >= kManyRows && row_bytes >= kLongRowBytes &&
           e_.instruction().called()->instructions().size() <= kMostOpsOfRow;
  }

  // Rows begin .. end, `together` (of which there is a multiple) added to each sum one after another.
  void AddRows(const Accumulators& sums, const Expr& begin, const Expr& end, int64_t together) {
    const ir::Var row = e_.IndexVar(e_.body().FreshName("row"), shape_.rows() - together + 1);
    e_.values().Open();
    std::vector<Indices> rows;
    for (int64_t r = 0; r < together; ++r)
      rows.push_back(e_.math().Delinearize(e_.math().Add(e_.math().Of(row), r), shape_.Of(shape_.reduced)));
    OverTile([&](const Index& l) {
      Indices place(shape_.dimensions.size());
      const Indices kept = Kept(l);
      for (size_t i = 0; i < kept.size(); ++i) place[shape_.kept[i]] = kept[i];
      for (size_t i = 0; i < reduces_.size(); ++i) {
        Value sum = LoadAt(sums, i, l);
        for (const Indices& reduced : rows) {
          for (size_t d = 0; d < reduced.size(); ++d) place[shape_.reduced[d]] = reduced[d];
          const Value x = e_.values().Get(e_.frame(), *reduces_[i]->operand(0), place);
          sum = EmitBinary(OpcodeOf(i), reduces_[i]->shape().element_type(), sum, x, e_.body());
        }
        StoreSum(sums, i, l, sum);
      }
    });
    e_.body().Add(ir::For(ir::LoopRole::kSerial, row, begin, end, e_.values().Close(), together));
  }

  // Initial value and partial results to the reduces' values at column l, and those to the outputs.
  void Finish(const Index& l, const std::function<Value(size_t)>& sum, int64_t parts,
              const std::function<Value(size_t, const Index&)>& partial = nullptr) {
    const Indices kept = Kept(l);
    for (size_t i = 0; i < reduces_.size(); ++i) {
      const hlo::ElementType type = reduces_[i]->shape().element_type();
      Value total = e_.values().Get(e_.frame(), *reduces_[i]->operand(1), {});
      if (sum) {
        total = EmitBinary(OpcodeOf(i), type, total, sum(i), e_.body());
      } else {
        const ir::Var re = e_.body().Mutable(total.re), im = total.im ? e_.body().Mutable(total.im) : nullptr;
        e_.values().SerialLoop(parts, [&](const Index& p) {
          const Value next =
              EmitBinary(OpcodeOf(i), type, {ir::Ref(re), im ? ir::Ref(im) : nullptr}, partial(i, p), e_.body());
          e_.body().Add(ir::Assign(re, next.re));
          if (im) e_.body().Add(ir::Assign(im, next.im));
        });
        total = {ir::Ref(re), im ? ir::Ref(im) : nullptr};
      }
      e_.values().Remember(e_.frame(), *reduces_[i], kept, {total});
    }
    const Dims kept_dims = shape_.Of(shape_.kept);
    const Index linear = e_.math().Linearize(kept, kept_dims);
    std::vector<std::pair<Indices, Value>> results;
    for (const auto& output : e_.outputs()) {
      const Indices at =
          output.shape.dimensions() == kept_dims ? kept : e_.math().Delinearize(linear, output.shape.dimensions());
      results.emplace_back(at, e_.ValueOf(output, at));
    }
    // Side by side: parts of one array that lie in turns are stored together.
    for (size_t i = 0; i < results.size(); ++i) e_.Store(e_.outputs()[i], results[i].first, results[i].second);
  }

  Emission e_;
  ColumnShape shape_;
  std::vector<const Instruction*> reduces_;
  int64_t tile_, tiles_ = 1;
  ir::Var tile_var_, first_;
  std::vector<ir::Var> outer_;
};

}  // namespace

bool HasColumns(const Instruction& instruction, const Instruction& reduce) {
  const ColumnShape shape = ColumnShapeOf(reduce);
  if (shape.kept.empty() || shape.kept.back() + 1 != shape.dimensions.size() || shape.reduced.empty()) return false;
  if (shape.columns() < 2 || shape.rows() < 2) return false;
  const auto levels = ReduceLevels(instruction);
  if (levels.size() != 1) return false;
  for (const Instruction* other : levels[0]) {
    if (!HasLanes(*other) || !ReduceAlike(*other, reduce)) return false;
  }
  for (const hlo::Shape& leaf : PartShapesOf(instruction)) {
    if (leaf.ElementCount() != shape.results()) return false;
  }
  return true;
}

int64_t ColumnsScratchBytes(const Instruction& instruction, const Instruction& reduce) {
  const ColumnShape shape = ColumnShapeOf(reduce);
  const std::vector<const Instruction*> reduces = ReduceLevels(instruction)[0];
  const int64_t parts = PartsOf(shape, TileOf(shape, reduces));
  int64_t bytes = 0;
  for (const Instruction* each : reduces) bytes += PartialBytes(*each, shape.results() * parts);
  return parts == 1 ? 0 : bytes;
}

Launches EmitColumns(const EmitRequest& request) {
  const ColumnShape shape = ColumnShapeOf(*request.hero.instruction);
  const int64_t parts = PartsOf(shape, TileOf(shape, ReduceLevels(request.instruction)[0]));
  Launches launches;
  if (parts == 1) {
    launches.push_back(ColumnKernel(request).Whole());
    return launches;
  }
  launches.push_back(ColumnKernel(request).Parts(parts));
  launches.push_back(ColumnKernel(request).Join(parts));
  return launches;
}

}  // namespace hlorun::opencl
