#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/reducers.h"
#include "hlo/builder.h"
#include "passes/fusion/cumulative_window.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;
using ir::Expr;
using ir::Var;

// Rows whose running values are kept at once. Each waits for its own last addition only; more rows a page apart would
// not fit one set of the first-level cache, their results beside them.
constexpr int64_t kChains = 4;
constexpr int64_t kWidestTile = 4096;
constexpr int64_t kTileQuantum = 64;

std::optional<passes::CumulativeWindow> FormOf(const Instruction& op) {
  const auto form = passes::CumulativeWindowOf(op);
  return form && HasLanes(op) ? form : std::nullopt;
}

// The dimensions before or behind the one that values run along. Up to the last whose size is data each is a parallel
// loop of its own; from there on they are counted together.
struct Side {
  std::vector<Var> loops;
  Dims sizes;  // of the loops
  std::vector<Expr> ends;
  Dims together;
  int64_t count = 1;  // of all elements together
  Expr end;           // how many of them are needed
  bool is_sized = false;
};

class CumulativeKernel {
 public:
  CumulativeKernel(const EmitRequest& request, const passes::CumulativeWindow& form)
      : e_(request.instruction, request.aliases, request.context),
        op_(*request.hero.instruction),
        form_(form),
        length_(op_.shape().dimension(form.dimension)),
        opcode_(hlo::ReducerOpcode(*op_.called()).value()),
        type_(op_.shape().element_type()),
        outer_(SideOf(0, form.dimension)),
        inner_(SideOf(form.dimension + 1, op_.shape().rank())) {
    const auto extent = form.reverse ? passes::ExtentsOf(request.instruction).contraction : ExtentOf(form.dimension);
    is_sized_ = extent.has_value();
    end_ = extent ? e_.ValueOf(*extent, length_) : e_.IndexInt(length_);
  }

  EmittedLaunch Emit() { return inner_.count == 1 && inner_.loops.empty() ? Rows() : Columns(); }

 private:
  std::optional<passes::OperandExtent> ExtentOf(int64_t dimension) {
    return e_.SharedExtent([dimension](const Emission::Output&) { return dimension; });
  }

  Side SideOf(int64_t begin, int64_t end) {
    Side side;
    int64_t first = begin;  // of those that are counted together
    for (int64_t d = begin; d < end; ++d) {
      if (ExtentOf(d)) first = d;
    }
    for (int64_t d = begin; d < end; ++d) {
      const int64_t size = op_.shape().dimension(d);
      const auto extent = ExtentOf(d);
      if (d < first) {
        side.loops.push_back(e_.IndexVar("d" + std::to_string(d), size));
        side.sizes.push_back(size);
        side.ends.push_back(extent ? e_.ValueOf(*extent, size) : e_.IndexInt(size));
        continue;
      }
      if (d == first && extent) {
        side.is_sized = true;
        side.end = e_.ValueOf(*extent, size);
      }
      side.together.push_back(size);
      side.count *= size;
    }
    if (side.is_sized)
      side.end = side.end * (side.count / side.together.front());
    else
      side.end = e_.IndexInt(side.count);
    return side;
  }

  void AppendPlace(const Side& side, const Index& linear, Indices& place) {
    for (const Var& loop : side.loops) place.push_back(e_.math().Of(loop));
    const Indices rest = e_.math().Delinearize(linear, side.together);
    place.insert(place.end(), rest.begin(), rest.end());
  }
  Indices Place(const Index& outer, const Index& i, const Index& inner) {
    Indices place;
    AppendPlace(outer_, outer, place);
    place.push_back(i);
    AppendPlace(inner_, inner, place);
    return place;
  }
  // One step after the other, where the running values have come to.
  void Steps(const std::function<void(const Index&)>& body) {
    const auto step = [&](const Index& i) {
      if (!form_.reverse) return body(i);
      if (!is_sized_) return body(e_.math().Sub(length_ - 1, i));
      const Var at = e_.IndexVar(e_.body().FreshName("at"), length_);
      e_.body().Add(ir::Let(at, end_ - 1 - e_.math().ToExpr(i)));
      body(e_.math().Of(at));
    };
    if (is_sized_)
      e_.values().SerialLoop(length_, end_, step);
    else
      e_.values().SerialLoop(length_, step);
  }
  Value Initial() { return e_.values().Get(e_.frame(), *op_.operand(1), {}); }
  Value Next(const Value& before, const Indices& place) {
    return EmitBinary(opcode_, type_, before, e_.values().Get(e_.frame(), *op_.operand(0), place), e_.body());
  }
  void StoreAt(const Indices& place, const Value& value) {
    const auto& output = e_.outputs()[0];
    StoreElement(e_.values(), output.buffer, output.shape, place, value);
  }

  // Along the minor dimension: some rows side by side, the last block reaching back over rows of the one before.
  EmittedLaunch Rows() {
    const int64_t rows = outer_.count, chains = std::min(kChains, rows), blocks = (rows + chains - 1) / chains;
    const Var block = e_.IndexVar("block", blocks), first = e_.IndexVar("first", rows - chains + 1);
    e_.values().Open();
    e_.body().Add(ir::Let(first, ir::Min(ir::Ref(block) * chains, e_.IndexInt(rows - chains))));
    std::vector<Var> re, im;
    const Value initial = Initial();
    for (int64_t c = 0; c < chains; ++c) {
      re.push_back(e_.body().Mutable(initial.re));
      im.push_back(initial.im ? e_.body().Mutable(initial.im) : nullptr);
    }
    Steps([&](const Index& i) {
      for (size_t c = 0; c < re.size(); ++c) {
        const Indices place = Place(e_.math().Add(e_.math().Of(first), static_cast<int64_t>(c)), i, 0);
        const Value sum = Next({ir::Ref(re[c]), im[c] ? ir::Ref(im[c]) : nullptr}, place);
        e_.body().Add(ir::Assign(re[c], sum.re));
        if (im[c]) e_.body().Add(ir::Assign(im[c], sum.im));
        StoreAt(place, {ir::Ref(re[c]), im[c] ? ir::Ref(im[c]) : nullptr});
      }
    });
    const ir::Stmt body = e_.values().Close();
    const Expr end = outer_.is_sized ? Over(outer_.end + (chains - 1), chains) : e_.IndexInt(blocks);
    return Finish(ir::For(ir::LoopRole::kParallel, block, e_.IndexInt(0), end, body), body);
  }

  // Along another dimension: vectors of running values.
  EmittedLaunch Columns() {
    const int64_t columns = inner_.count,
                  others = outer_.count * hlo::CheckedProduct(outer_.sizes) * hlo::CheckedProduct(inner_.sizes);
    const int64_t wanted = std::max<int64_t>(1, (e_.device().compute_units + others - 1) / others);
    const int64_t share = ((columns + wanted - 1) / wanted + kTileQuantum - 1) / kTileQuantum * kTileQuantum;
    const int64_t tile = std::min({columns, share, kWidestTile}), tiles = (columns + tile - 1) / tile;
    const Var outer = e_.IndexVar("outer", outer_.count), tile_var = e_.IndexVar("tile", tiles);
    e_.values().Open();
    const auto [first, width] = inner_.is_sized ? SizedTile(tile_var, tiles) : WholeTile(tile_var, tile);
    const bool complex = hlo::IsComplex(type_);
    const ir::BufferRef re = Sums(tile), im = complex ? Sums(tile) : nullptr;
    const auto over_tile = [&](const std::function<void(const Index&, const Expr&)>& body) {
      const Var l = e_.IndexVar(e_.body().FreshName("l"), tile);
      e_.values().Open();
      body(e_.math().Add(e_.math().Of(first), e_.math().Of(l)), ir::Ref(l));
      e_.body().Add(ir::For(ir::LoopRole::kVector, l, e_.IndexInt(0), width, e_.values().Close(), 1, e_.Lanes()));
    };
    const auto keep = [&](const Expr& l, const Value& value) {
      e_.body().Add(ir::Store(re, l, value.re));
      if (im) e_.body().Add(ir::Store(im, l, value.im));
    };
    over_tile([&](const Index&, const Expr& l) { keep(l, Initial()); });
    Steps([&](const Index& i) {
      over_tile([&](const Index& column, const Expr& l) {
        const Indices place = Place(e_.math().Of(outer), i, column);
        const Value sum =
            Next({e_.body().Name(ir::Load(re, l)), im ? e_.body().Name(ir::Load(im, l)) : nullptr}, place);
        keep(l, sum);
        StoreAt(place, sum);
      });
    });
    const ir::Stmt body = e_.values().Close();
    const ir::Stmt loop = ir::For(ir::LoopRole::kParallel, tile_var, e_.IndexInt(0), e_.IndexInt(tiles), body);
    return Finish(ir::For(ir::LoopRole::kParallel, outer, e_.IndexInt(0), outer_.end, loop), body);
  }

  struct Tile {
    Var first;
    Expr width;
  };
  // The last one reaches back over columns of the one before.
  Tile WholeTile(const Var& number, int64_t width) {
    const int64_t columns = inner_.count;
    const Var first = e_.IndexVar("first", columns - width + 1);
    if (columns % width == 0) first->factor = width;
    e_.body().Add(ir::Let(first, ir::Min(ir::Ref(number) * width, e_.IndexInt(columns - width))));
    return {first, e_.IndexInt(width)};
  }
  // Equal parts of the columns that are needed.
  Tile SizedTile(const Var& number, int64_t tiles) {
    const Var first = e_.IndexVar("first", inner_.count + 1), share = ir::MakeVar("share", e_.math().type()),
              width = ir::MakeVar("width", e_.math().type());
    const Expr part = Over(inner_.end + (tiles - 1), tiles);
    e_.body().Add(ir::Let(share, Over(part + (kTileQuantum - 1), kTileQuantum) * kTileQuantum));
    e_.body().Add(ir::Let(first, ir::Min(ir::Ref(number) * ir::Ref(share), inner_.end)));
    e_.body().Add(ir::Let(width, ir::Min(ir::Ref(share), inner_.end - ir::Ref(first))));
    return {first, ir::Ref(width)};
  }
  Expr Over(const Expr& x, int64_t by) const { return ir::Binary(ir::Op::kFloorDiv, x, e_.IndexInt(by)); }

  ir::BufferRef Sums(int64_t tile) {
    const ir::BufferRef buffer =
        ir::MakeBuffer(e_.body().FreshName("sums"), PartialType(type_), tile, ir::Buffer::Space::kPrivate, true);
    e_.body().Add(ir::DeclareArray(buffer));
    return buffer;
  }

  // `loops` inside of those of the dimensions that are not counted together.
  EmittedLaunch Finish(ir::Stmt loops, const ir::Stmt& body) {
    for (const Side* side : {&inner_, &outer_}) {
      for (size_t i = side->loops.size(); i-- > 0;) {
        loops = ir::For(ir::LoopRole::kParallel, side->loops[i], e_.IndexInt(0), side->ends[i], loops);
      }
    }
    return e_.Finish(loops, std::max<int64_t>(1, kWorkOfGroup / std::max<int64_t>(1, WorkOf(body))));
  }

  Emission e_;
  const Instruction& op_;
  passes::CumulativeWindow form_;
  int64_t length_;
  hlo::Opcode opcode_;
  hlo::ElementType type_;
  Side outer_, inner_;
  bool is_sized_ = false;
  Expr end_;  // of the steps
};

}  // namespace

bool HasCumulativeKernel(const Instruction& instruction, const passes::Hero& hero) {
  if (!FormOf(*hero.instruction)) return false;
  return hero.instruction == &instruction ||
         (instruction.Is(hlo::Opcode::kFusion) && instruction.called()->root() == hero.instruction);
}

Launches EmitReduceWindow(const EmitRequest& request) {
  if (!HasCumulativeKernel(request.instruction, request.hero)) return EmitLoop(request);
  Launches launches;
  launches.push_back(CumulativeKernel(request, *FormOf(*request.hero.instruction)).Emit());
  return launches;
}

}  // namespace hlorun::opencl
