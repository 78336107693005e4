#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/cumulative_chains.h"
#include "backends/opencl/codegen/element_expr.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/gpu_cumulative.h"
#include "backends/opencl/codegen/reducers.h"
#include "hlo/builder.h"
#include "passes/fusion/cumulative_fusion.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;
using ir::Expr;
using ir::Var;

// Rows whose running values are kept at once. Each waits for its own last addition only; more rows a page apart would
// not fit one set of the first-level cache, their results beside them.
constexpr int64_t kChains = 4;
// Those whose vectors are parts of a cache line and are written past the caches: more lines in the making than the
// write buffers keep go to memory in parts (f32[4096,4096] by vectors of 32 bytes: 25 ms instead of 4).
constexpr int64_t kChainsOfParts = 2;
constexpr int64_t kWidestTile = 4096;
constexpr int64_t kTileQuantum = 64;
constexpr int64_t kLongChain = 256, kLongSum = 4096;

// A row of them, in private arrays.
struct RunningRow {
  std::vector<ir::BufferRef> re, im;
};

class CumulativeKernel : private CumulativeChains {
 public:
  CumulativeKernel(const EmitRequest& request, const hlo::CumulativeWindow& form)
      : CumulativeChains(request, form), part_(PartOf(op_, length_)) {}

  // A reducer of its own rounds in each of its ops, most of them the same way: parts of some sqrt(length) elements, and
  // what came before each of them, keep the errors of long chains small; those of a sum grow slower. 0: in one go.
  static int64_t PartOf(const Instruction& op, int64_t length) {
    const auto opcode = op.operand_count() == 2 ? hlo::ReducerOpcode(*op.called()) : std::nullopt;
    const bool rounds =
        !opcode || (opcode == hlo::Opcode::kAdd && hlo::IsFloating(op.operand(0)->shape().element_type()));
    if (!rounds || length < (opcode ? kLongSum : kLongChain)) return 0;
    int64_t part = 1;
    while (part * part < length) part *= 2;
    return part;
  }

  EmittedLaunch Emit() { return inner_.count == 1 && inner_.loops.empty() ? Rows() : Columns(); }

 private:
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
  // The same part by part: `first` takes the first of each, which nothing of its part comes before.
  void Steps(const std::function<void(const Index&)>& first, const std::function<void(const Index&)>& body,
             const std::function<void()>& end) {
    const int64_t parts = (length_ + part_ - 1) / part_;
    const Expr needed = is_sized_ ? Over(end_ + (part_ - 1), part_) : e_.IndexInt(parts);
    const auto at_step = [&](const Expr& step, const std::function<void(const Index&)>& at_index) {
      const Var at = e_.IndexVar(e_.body().FreshName("at"), length_);
      e_.body().Add(ir::Let(at, form_.reverse ? end_ - 1 - step : step));
      at_index(e_.math().Of(at));
    };
    e_.values().SerialLoop(parts, needed, [&](const Index& number) {
      const Var start = e_.IndexVar("start", length_);
      e_.body().Add(ir::Let(start, e_.math().ToExpr(number) * part_));
      at_step(ir::Ref(start), first);
      const Expr others = ir::Min(e_.IndexInt(part_), end_ - ir::Ref(start)) - 1;
      e_.values().SerialLoop(part_ - 1, others,
                             [&](const Index& i) { at_step(ir::Ref(start) + 1 + e_.math().ToExpr(i), body); });
      end();
    });
  }
  // Along the minor dimension: some rows side by side, the last block reaching back over rows of the one before.
  EmittedLaunch Rows() {
    const auto opcode = OpcodeOfVectors();
    const int64_t pieces = opcode ? PiecesOfLine() : 1;
    e_.StreamRowsOf(length_, pieces * e_.Lanes());
    const int64_t rows = outer_.count, chains = std::min(pieces > 1 ? kChainsOfParts : kChains, rows),
                  blocks = (rows + chains - 1) / chains;
    const Var block = e_.IndexVar("block", blocks), first = e_.IndexVar("first", rows - chains + 1);
    e_.values().Open();
    e_.body().Add(ir::Let(first, ir::Min(ir::Ref(block) * chains, e_.IndexInt(rows - chains))));
    // Of each row what has been combined of its part, and all before that. Chains of vectors are shorter.
    std::vector<Running> running, earlier;
    const Values initial = Initial();
    const bool has_parts = part_ > 0 && (!opcode || length_ / e_.Lanes() >= kLongSum / 4);
    for (int64_t c = 0; c < chains; ++c) {
      running.push_back(Variables(opcode && has_parts ? NoSum() : initial));
      if (has_parts) earlier.push_back(Variables(initial));
    }
    const auto place_of = [&](size_t chain, const Index& i) {
      return Place(e_.math().Add(e_.math().Of(first), static_cast<int64_t>(chain)), i, 0);
    };
    const auto store = [&](size_t c, const Indices& place) {
      StoreAt(place, has_parts ? Combine(earlier[c].Current(), running[c].Current()) : running[c].Current());
    };
    const auto step = [&](const Index& i) {
      for (size_t c = 0; c < running.size(); ++c) {
        const Indices place = place_of(c, i);
        running[c].Set(e_.body(), Next(running[c].Current(), place));
        store(c, place);
      }
    };
    const auto first_step = [&](const Index& i) {
      for (size_t c = 0; c < running.size(); ++c) {
        const Indices place = place_of(c, i);
        running[c].Set(e_.body(), ElementsAt(place));
        store(c, place);
      }
    };
    const auto end_part = [&] {
      for (size_t c = 0; c < running.size(); ++c)
        earlier[c].Set(e_.body(), Combine(earlier[c].Current(), running[c].Current()));
    };
    if (opcode) {
      const Expr done = VectorSteps(*opcode, pieces, first, {running, earlier}, end_part);
      StepsBehind(done, step);
    } else if (has_parts) {
      Steps(first_step, step, end_part);
    } else {
      Steps(step);
    }
    const ir::Stmt body = e_.values().Close();
    const Expr end = outer_.is_sized ? Over(outer_.end + (chains - 1), chains) : e_.IndexInt(blocks);
    return Finish(ir::For(ir::LoopRole::kParallel, block, e_.IndexInt(0), end, body), body);
  }

  // What combines whole vectors of a row, where that is one op on one array.
  std::optional<hlo::Opcode> OpcodeOfVectors() const {
    const hlo::ElementType type = shape_.element_type();
    if (arrays_ != 1 || e_.IsGpu() || e_.Lanes() == 1 || length_ < int64_t{2} * e_.Lanes() || hlo::IsComplex(type) ||
        type == hlo::ElementType::kPred || ir::ComputeType(type) != type) {
      return std::nullopt;
    }
    const std::optional<hlo::Opcode> opcode = hlo::ReducerOpcode(*op_.called());
    // Extremes of floats ask for NaN and signs of zero: one by one they are found sooner than five times a vector.
    const bool is_extreme = opcode == hlo::Opcode::kMaximum || opcode == hlo::Opcode::kMinimum;
    return is_extreme && hlo::IsFloating(type) ? std::nullopt : opcode;
  }

  // Vectors that make a cache line of each result that is written past the caches; 1 where rows are no whole lines.
  int64_t PiecesOfLine() const {
    int64_t pieces = 1;
    for (const auto& output : e_.outputs()) {
      const int64_t bytes = int64_t{e_.Lanes()} * hlo::BytesOf(output.buffer->storage);
      if (output.buffer->streams) pieces = std::max(pieces, kLineBytes / bytes);
    }
    return is_sized_ || length_ % (pieces * e_.Lanes()) != 0 ? 1 : pieces;
  }

  // Of each row what has been combined of its part, and of all parts before, where there are parts.
  struct Chains {
    const std::vector<Running>&running, &earlier;
  };
  // What a part of a sum begins with.
  Values NoSum() const { return {NeutralOf(hlo::Opcode::kAdd, shape_.element_type()).value()}; }

  // Some vectors of each row at a time, while there are whole ones: sums of 2, 4, 8 ... neighbours, then what came
  // before. Gives how many elements that were.
  Expr VectorSteps(hlo::Opcode opcode, int64_t pieces, const Var& first_row, const Chains& chains,
                   const std::function<void()>& end_part) {
    const int64_t step = e_.Lanes() * pieces, steps = length_ / step;
    const Expr whole = is_sized_ ? Over(end_, step) : e_.IndexInt(steps);
    const ir::BufferRef values = RowOf(shape_.element_type(), step);
    const auto at_step = [&](const Index& number) { VectorStep(opcode, pieces, first_row, chains, values, number); };
    if (chains.earlier.empty()) {
      e_.values().SerialLoop(steps, whole, at_step);
      return whole * step;
    }
    // As many vectors, however many are stored together.
    const int64_t part = part_ / pieces, parts = (steps + part - 1) / part;
    const Expr needed = is_sized_ ? Over(whole + (part - 1), part) : e_.IndexInt(parts);
    e_.values().SerialLoop(parts, needed, [&](const Index& number) {
      const Index first = e_.math().Mul(number, part);
      const Expr count = ir::Min(e_.IndexInt(part), whole - e_.math().ToExpr(first));
      e_.values().SerialLoop(part, count, [&](const Index& i) {
        const Var at = e_.IndexVar(e_.body().FreshName("step"), steps);
        e_.body().Add(ir::Let(at, e_.math().ToExpr(first) + e_.math().ToExpr(i)));
        at_step(e_.math().Of(at));
      });
      end_part();
      for (const Running& chain : chains.running) chain.Set(e_.body(), NoSum());
    });
    return whole * step;
  }

  void VectorStep(hlo::Opcode opcode, int64_t pieces, const Var& first_row, const Chains& chains,
                  const ir::BufferRef& values, const Index& number) {
    const int64_t lanes = e_.Lanes(), step = lanes * pieces;
    Index start = e_.math().Mul(number, step);
    if (form_.reverse) {
      const Var at = e_.IndexVar(e_.body().FreshName("at"), length_);
      at->factor = length_ % step == 0 && !is_sized_ ? step : 1;
      e_.body().Add(ir::Let(at, end_ - step - e_.math().ToExpr(start)));
      start = e_.math().Of(at);
    }
    for (size_t c = 0; c < chains.running.size(); ++c) {
      const Index row = e_.math().Add(e_.math().Of(first_row), static_cast<int64_t>(c));
      const auto over = [&](int64_t begin, int64_t end, const auto& body) {
        const Var l = e_.IndexVar(e_.body().FreshName("l"), step);
        e_.values().Open();
        body(Place(row, e_.math().Add(start, e_.math().Of(l)), 0), ir::Ref(l));
        e_.body().Add(ir::For(ir::LoopRole::kVector, l, e_.IndexInt(begin), e_.IndexInt(end), e_.values().Close(), 1,
                              static_cast<int>(lanes)));
      };
      for (int64_t piece = 0; piece < pieces; ++piece) {
        const int64_t begin = (form_.reverse ? pieces - 1 - piece : piece) * lanes;
        over(begin, begin + lanes, [&](const Indices& place, const Expr& l) {
          e_.body().Add(ir::Store(values, l, e_.values().Get(e_.frame(), *op_.operand(0), place).re));
        });
        RunAlong(opcode, values, begin, chains, c);
      }
      over(0, step, [&](const Indices& place, const Expr& l) {
        StoreAt(place, {{e_.body().Name(ir::Load(values, l)), nullptr}});
      });
    }
  }

  // The running values of a vector's elements, from `first` on, in their place, from those of all before.
  void RunAlong(hlo::Opcode opcode, const ir::BufferRef& vector, int64_t first, const Chains& chains, size_t chain) {
    const int lanes = e_.Lanes();
    const auto combined = [&](const Expr& before, const Expr& here) {
      const Expr &low = form_.reverse ? here : before, &high = form_.reverse ? before : here;
      return EmitBinary(opcode, shape_.element_type(), {low, nullptr}, {high, nullptr}, e_.body()).re;
    };
    const Expr all = ir::Ramp(e_.IndexInt(first), lanes), lane = ir::Ramp(ir::Int(0), lanes);
    Expr values = e_.body().Name(ir::Load(vector, all));
    for (int64_t by = 1; by < lanes; by *= 2) {
      const Expr before = e_.body().Name(ir::ShiftedLanes(values, form_.reverse ? -by : by));
      const Expr has_before = form_.reverse ? lane < ir::Splat(ir::Int(lanes - by), lanes)
                                            : ir::Compare(ir::Op::kGe, lane, ir::Splat(ir::Int(by), lanes));
      values = e_.body().Name(ir::Select(has_before, combined(before, values), values));
    }
    const auto behind = [&](const Running& before) {
      values = e_.body().Name(combined(ir::Splat(ir::Ref(before.re[0]), lanes), values));
    };
    const Running& running = chains.running[chain];
    behind(running);
    running.Set(e_.body(), {{ir::Lane(values, form_.reverse ? 0 : lanes - 1), nullptr}});
    if (!chains.earlier.empty()) behind(chains.earlier[chain]);
    e_.body().Add(ir::Store(vector, all, values));
  }

  // One step after the other behind the first `done` elements.
  void StepsBehind(const Expr& done, const std::function<void(const Index&)>& body) {
    const int64_t lanes = e_.Lanes();
    if (!is_sized_ && length_ % lanes == 0) return;
    e_.values().SerialLoop(lanes - 1, end_ - done, [&](const Index& i) {
      const Var at = e_.IndexVar(e_.body().FreshName("at"), length_);
      const Expr step = done + e_.math().ToExpr(i);
      e_.body().Add(ir::Let(at, form_.reverse ? end_ - 1 - step : step));
      body(e_.math().Of(at));
    });
  }

  // Along another dimension: vectors of running values.
  EmittedLaunch Columns() {
    const int64_t columns = inner_.count,
                  others = outer_.count * hlo::CheckedProduct(outer_.sizes) * hlo::CheckedProduct(inner_.sizes);
    const int64_t wanted = std::max<int64_t>(1, (e_.device().compute_units + others - 1) / others);
    const int64_t share = ((columns + wanted - 1) / wanted + kTileQuantum - 1) / kTileQuantum * kTileQuantum;
    const int64_t tile = std::min({columns, share, kWidestTile / (arrays_ * (part_ > 0 ? 2 : 1))}),
                  tiles = (columns + tile - 1) / tile;
    const Var outer = e_.IndexVar("outer", outer_.count), tile_var = e_.IndexVar("tile", tiles);
    e_.values().Open();
    const auto [first, width] = inner_.is_sized ? SizedTile(tile_var, tiles) : WholeTile(tile_var, tile);
    const RunningRow running = PrivateRow(tile), earlier = part_ > 0 ? PrivateRow(tile) : RunningRow();
    const auto over_tile = [&, &first = first, &width = width](const auto& body) {
      const Var l = e_.IndexVar(e_.body().FreshName("l"), tile);
      e_.values().Open();
      body(e_.math().Add(e_.math().Of(first), e_.math().Of(l)), ir::Ref(l));
      e_.body().Add(ir::For(ir::LoopRole::kVector, l, e_.IndexInt(0), width, e_.values().Close(), 1, e_.Lanes()));
    };
    const auto take = [&](const Index& i, bool is_first) {
      over_tile([&](const Index& column, const Expr& l) {
        const Indices place = Place(e_.math().Of(outer), i, column);
        const Values next = is_first ? ElementsAt(place) : Next(Kept(running, l), place);
        Keep(running, l, next);
        StoreAt(place, part_ > 0 ? Combine(Kept(earlier, l), next) : next);
      });
    };
    const auto step = [&](const Index& i) { take(i, false); };
    const auto end_part = [&] {
      over_tile([&](const Index&, const Expr& l) { Keep(earlier, l, Combine(Kept(earlier, l), Kept(running, l))); });
    };
    over_tile([&](const Index&, const Expr& l) { Keep(part_ > 0 ? earlier : running, l, Initial()); });
    if (part_ > 0)
      Steps([&](const Index& i) { take(i, true); }, step, end_part);
    else
      Steps(step);
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

  RunningRow PrivateRow(int64_t tile) {
    RunningRow row;
    for (int64_t i = 0; i < arrays_; ++i) {
      const hlo::ElementType type = op_.operand(i)->shape().element_type();
      row.re.push_back(RowOf(type, tile));
      row.im.push_back(hlo::IsComplex(type) ? RowOf(type, tile) : nullptr);
    }
    return row;
  }
  void Keep(const RunningRow& row, const Expr& l, const Values& values) {
    for (size_t a = 0; a < values.size(); ++a) {
      e_.body().Add(ir::Store(row.re[a], l, values[a].re));
      if (row.im[a]) e_.body().Add(ir::Store(row.im[a], l, values[a].im));
    }
  }
  Values Kept(const RunningRow& row, const Expr& l) {
    Values values;
    for (size_t a = 0; a < row.re.size(); ++a) {
      values.push_back(
          {e_.body().Name(ir::Load(row.re[a], l)), row.im[a] ? e_.body().Name(ir::Load(row.im[a], l)) : nullptr});
    }
    return values;
  }
  ir::BufferRef RowOf(hlo::ElementType type, int64_t tile) {
    return e_.PrivateArray("running", ValueType(type).element, tile);
  }

  int64_t part_;
};

}  // namespace

bool HasCumulativeKernel(const Instruction& instruction, const passes::Hero& hero) {
  if (!hlo::CumulativeWindowOf(*hero.instruction)) return false;
  const Instruction* root = instruction.Is(hlo::Opcode::kFusion) ? instruction.called()->root() : &instruction;
  return passes::GivesResultsOf(*root, *hero.instruction);
}

int64_t CumulativeScratchBytes(const Instruction& instruction, const passes::Hero& hero, const DeviceSpec& device) {
  return HasCumulativeKernel(instruction, hero) ? GpuCumulativeScratchBytes(*hero.instruction, device) : 0;
}

Launches EmitReduceWindow(const EmitRequest& request) {
  if (!HasCumulativeKernel(request.instruction, request.hero)) return EmitLoop(request);
  if (auto launches = EmitGpuCumulative(request)) return std::move(*launches);
  Launches launches;
  launches.push_back(CumulativeKernel(request, *hlo::CumulativeWindowOf(*request.hero.instruction)).Emit());
  return launches;
}

}  // namespace hlorun::opencl
