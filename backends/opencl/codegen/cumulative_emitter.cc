#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/reducers.h"
#include "hlo/builder.h"

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

struct Cumulative {
  size_t dimension = 0;
  bool reverse = false;
};

bool IsPointwise(const hlo::WindowDimension& w) {
  return w.size == 1 && w.stride == 1 && w.padding_low == 0 && w.padding_high == 0 && w.base_dilation == 1;
}

// A window that reaches from each element to the beginning (or end) of one dimension.
std::optional<Cumulative> CumulativeOf(const Instruction& op) {
  if (!op.Is(hlo::Opcode::kReduceWindow) || !op.shape().IsArray() || !HasLanes(op)) return std::nullopt;
  const hlo::Window& window = op.As<hlo::attr::Windowed>().window;
  std::optional<Cumulative> found;
  for (size_t d = 0; d < window.size(); ++d) {
    const hlo::WindowDimension& w = window[d];
    if (IsPointwise(w)) continue;
    const bool whole = w.stride == 1 && w.base_dilation == 1 && w.window_dilation == 1 &&
                       w.size >= op.operand(0)->shape().dimensions()[d];
    if (found || !whole) return std::nullopt;
    if (w.padding_low == w.size - 1 && w.padding_high == 0)
      found = Cumulative{d, false};
    else if (w.padding_low == 0 && w.padding_high == w.size - 1)
      found = Cumulative{d, true};
    else
      return std::nullopt;
  }
  return found;
}

class CumulativeKernel {
 public:
  CumulativeKernel(const EmitRequest& request, const Cumulative& form)
      : e_(request.instruction, request.aliases, request.context),
        op_(*request.hero.instruction),
        form_(form),
        dims_(op_.shape().dimensions()),
        length_(dims_[form.dimension]),
        opcode_(hlo::ReducerOpcode(*op_.called()).value()),
        type_(op_.shape().element_type()) {
    const auto at = dims_.begin() + static_cast<std::ptrdiff_t>(form.dimension);
    outer_dims_ = Dims(dims_.begin(), at);
    inner_dims_ = Dims(at + 1, dims_.end());
    outer_ = hlo::CheckedProduct(outer_dims_);
    inner_ = hlo::CheckedProduct(inner_dims_);
  }

  EmittedLaunch Emit() { return inner_ == 1 ? Rows() : Columns(); }

 private:
  Indices Place(const Index& outer, const Index& i, const Index& inner) {
    Indices place = e_.math().Delinearize(outer, outer_dims_);
    place.push_back(form_.reverse ? e_.math().Sub(length_ - 1, i) : i);
    const Indices tail = e_.math().Delinearize(inner, inner_dims_);
    place.insert(place.end(), tail.begin(), tail.end());
    return place;
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
    const int64_t chains = std::min(kChains, outer_), blocks = (outer_ + chains - 1) / chains;
    const Var block = e_.IndexVar("block", blocks), first = e_.IndexVar("first", outer_ - chains + 1);
    e_.values().Open();
    e_.body().Add(ir::Let(first, ir::Min(ir::Ref(block) * chains, e_.IndexInt(outer_ - chains))));
    std::vector<Var> re, im;
    const Value initial = Initial();
    for (int64_t c = 0; c < chains; ++c) {
      re.push_back(e_.body().Mutable(initial.re));
      im.push_back(initial.im ? e_.body().Mutable(initial.im) : nullptr);
    }
    e_.values().SerialLoop(length_, [&](const Index& i) {
      for (size_t c = 0; c < re.size(); ++c) {
        const Indices place = Place(e_.math().Add(e_.math().Of(first), static_cast<int64_t>(c)), i, 0);
        const Value sum = Next({ir::Ref(re[c]), im[c] ? ir::Ref(im[c]) : nullptr}, place);
        e_.body().Add(ir::Assign(re[c], sum.re));
        if (im[c]) e_.body().Add(ir::Assign(im[c], sum.im));
        StoreAt(place, {ir::Ref(re[c]), im[c] ? ir::Ref(im[c]) : nullptr});
      }
    });
    const ir::Stmt body = e_.values().Close();
    return Finish(ir::For(ir::LoopRole::kParallel, block, e_.IndexInt(0), e_.IndexInt(blocks), body), body);
  }

  // Along another dimension: vectors of running values.
  EmittedLaunch Columns() {
    const int64_t wanted = std::max<int64_t>(1, (e_.device().compute_units + outer_ - 1) / outer_);
    const int64_t share = ((inner_ + wanted - 1) / wanted + kTileQuantum - 1) / kTileQuantum * kTileQuantum;
    const int64_t tile = std::min({inner_, share, kWidestTile}), tiles = (inner_ + tile - 1) / tile;
    const Var outer = e_.IndexVar("outer", outer_), tile_var = e_.IndexVar("tile", tiles),
              first = e_.IndexVar("first", inner_ - tile + 1);
    if (inner_ % tile == 0) first->factor = tile;
    e_.values().Open();
    e_.body().Add(ir::Let(first, ir::Min(ir::Ref(tile_var) * tile, e_.IndexInt(inner_ - tile))));
    const bool complex = hlo::IsComplex(type_);
    const ir::BufferRef re = Sums(tile), im = complex ? Sums(tile) : nullptr;
    const auto over_tile = [&](const std::function<void(const Index&, const Expr&)>& body) {
      const Var l = e_.IndexVar(e_.body().FreshName("l"), tile);
      e_.values().Open();
      body(e_.math().Add(e_.math().Of(first), e_.math().Of(l)), ir::Ref(l));
      e_.body().Add(
          ir::For(ir::LoopRole::kVector, l, e_.IndexInt(0), e_.IndexInt(tile), e_.values().Close(), 1, e_.Lanes()));
    };
    const auto keep = [&](const Expr& l, const Value& value) {
      e_.body().Add(ir::Store(re, l, value.re));
      if (im) e_.body().Add(ir::Store(im, l, value.im));
    };
    over_tile([&](const Index&, const Expr& l) { keep(l, Initial()); });
    e_.values().SerialLoop(length_, [&](const Index& i) {
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
    return Finish(ir::For(ir::LoopRole::kParallel, outer, e_.IndexInt(0), e_.IndexInt(outer_), loop), body);
  }

  ir::BufferRef Sums(int64_t tile) {
    const ir::BufferRef buffer =
        ir::MakeBuffer(e_.body().FreshName("sums"), PartialType(type_), tile, ir::Buffer::Space::kPrivate, true);
    e_.body().Add(ir::DeclareArray(buffer));
    return buffer;
  }

  EmittedLaunch Finish(const ir::Stmt& loops, const ir::Stmt& body) {
    return e_.Finish(loops, std::max<int64_t>(1, kWorkOfGroup / std::max<int64_t>(1, WorkOf(body))));
  }

  Emission e_;
  const Instruction& op_;
  Cumulative form_;
  Dims dims_, outer_dims_, inner_dims_;
  int64_t length_, outer_ = 1, inner_ = 1;
  hlo::Opcode opcode_;
  hlo::ElementType type_;
};

}  // namespace

Launches EmitReduceWindow(const EmitRequest& request) {
  const auto form = CumulativeOf(*request.hero.instruction);
  if (!form || request.hero.instruction != &request.instruction) return EmitLoop(request);
  Launches launches;
  launches.push_back(CumulativeKernel(request, *form).Emit());
  return launches;
}

}  // namespace hlorun::opencl
