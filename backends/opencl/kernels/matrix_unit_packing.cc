#include "backends/opencl/kernels/matrix_unit_packing.h"

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/kernels/bf16_parts.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/matrix_unit_helpers.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

constexpr int64_t kSide = MatrixUnitPlan::kSide;
constexpr int kLanes = static_cast<int>(kSide);
constexpr ir::Type kWords{hlo::ElementType::kU32, kLanes};
constexpr int64_t kPartWords = MatrixUnitPlan::kPartWords;
// Steps, or blocks, that one work-group copies at least.
constexpr int64_t kRunOfShare = 16;

// One side of a product.
struct Side {
  ArgumentRef argument;
  hlo::ElementType type;
  int64_t extent, blocks;  // of rows or columns
  bool depth_is_inner;     // elements along the depth lie side by side
  bool wants_depth_inner;  // so do those of a tile's row

  bool Turns() const { return depth_is_inner != wants_depth_inner; }
  bool IsComputed() const { return argument.kind == ArgumentRef::Kind::kComputed; }
};

class SidePacking {
 public:
  // Adds the side to `parameters`.
  SidePacking(const MatrixUnitPlan& plan, const Side& side, const ir::BufferRef& square, KernelParameters& parameters)
      : plan_(plan), side_(side), square_(square) {
    const int64_t elements = plan.shape.batch * side.extent * plan.shape.k;
    const std::string number = std::to_string(parameters.buffers().size());
    source_ = parameters.Add("source" + number, SourceType(), elements, side.argument);
  }

  const MatrixUnitPlan& plan() const { return plan_; }
  bool Turns() const { return side_.Turns(); }

  // Where copies go.
  void set_tiles(const ir::BufferRef& tiles) { tiles_ = tiles; }

  // What Copy calls.
  std::vector<std::string_view> Functions() const {
    if (IsCut()) return {kUnitPart, kUnitFirstPart, kUnitPairs, kUnitRun};
    if (LoadsNumbers()) return {side_.depth_is_inner ? kUnitRun : kUnitPairs};
    if (!side_.depth_is_inner) return {};
    return side_.IsComputed() ? std::vector<std::string_view>{kUnitBytes}
                              : std::vector<std::string_view>{kUnitRow, kUnitPartOfRow};
  }

  // A work-group's share walks along what lies side by side in the source.
  int64_t Shares() const { return plan_.shape.batch * Outer() * Chunks(); }

  Stmt Copy(const Expr& share) {
    const ir::Var batch = IndexVar("batch", plan_.shape.batch), outer = IndexVar("outer", Outer()),
                  inner = IndexVar("inner", Inner());
    const Expr block = ir::Ref(side_.depth_is_inner ? outer : inner),
               step = ir::Ref(side_.depth_is_inner ? inner : outer);
    const Expr place = ((ir::Ref(batch) * side_.blocks + block) * plan_.steps + step) * plan_.StepWords();
    const Stmt tiles = Step(ir::Ref(batch), block, step, place);
    const Expr begin = Remainder(share, Chunks()) * kRunOfShare;
    const Expr end = ir::Min(begin + kRunOfShare, Index(Inner()));
    return ir::Block({ir::Let(batch, Quotient(share, Outer() * Chunks())),
                      ir::Let(outer, Remainder(Quotient(share, Chunks()), Outer())), Loop(inner, begin, end, tiles)});
  }

  // Both tiles of a step of a block, to tiles[place] on.
  Stmt Step(const Expr& batch, const Expr& block, const Expr& step, const Expr& place) {
    const ir::Var side = IndexVar("side", 2), to = ir::MakeVar("to", kIndex);
    const ir::Var first = ir::MakeIndex("first", 0, side_.blocks * MatrixUnitPlan::kBlock - kSide, kIndex);
    batch_ = batch;
    step_ = step;
    first_ = ir::Ref(first);
    to_ = ir::Ref(to);
    const Stmt tile = ir::Block({ir::Let(first, block * MatrixUnitPlan::kBlock + ir::Ref(side) * kSide),
                                 ir::Let(to, place + ir::Ref(side) * MatrixUnitPlan::kTileWords), Tile()});
    return Loop(side, Index(0), Index(2), tile);
  }

 private:
  int64_t Outer() const { return side_.depth_is_inner ? side_.blocks : plan_.steps; }
  int64_t Inner() const { return side_.depth_is_inner ? plan_.steps : side_.blocks; }
  int64_t Chunks() const { return CeilDiv(Inner(), kRunOfShare); }

  // A tile within the matrix, or one that its end cuts.
  Stmt Tile() {
    const int64_t whole_steps = plan_.shape.k / plan_.ElementsOfStep();
    const Expr is_whole =
        ir::And(ir::Compare(Op::kLe, first_ + kSide, Index(side_.extent)), step_ < Index(whole_steps));
    const bool always = side_.extent % MatrixUnitPlan::kBlock == 0 && whole_steps == plan_.steps;
    if (always) return WholeTile();
    const Stmt cut = CutTile();
    return ir::If(is_whole, side_.IsComputed() ? Within(whole_steps) : WholeTile(), cut);
  }

  // A tile within the matrix whose place says so: an operand that is computed finds its line without dividing.
  Stmt Within(int64_t whole_steps) {
    if (whole_steps == 0 || side_.extent < kSide) return ir::Block({});
    const ir::Var first = ir::MakeIndex("first_within", 0, side_.extent - kSide, kIndex);
    const ir::Var step = IndexVar("step_within", whole_steps);
    const Stmt first_is = ir::Let(first, first_), step_is = ir::Let(step, step_);
    first_ = ir::Ref(first);
    step_ = ir::Ref(step);
    return ir::Block({first_is, step_is, WholeTile()});
  }

  // Words along the depth are put together from integers of the elements' size; parts are made of numbers, and so is
  // what is computed.
  hlo::ElementType SourceType() const {
    if (IsCut() || side_.IsComputed()) return side_.type;
    return hlo::BytesOf(side_.type) == 1 ? hlo::ElementType::kU8 : hlo::ElementType::kU16;
  }
  bool IsCut() const { return plan_.parts > 1; }  // elements into parts
  // Lines of bf16, or in parts of it, are loaded as numbers.
  bool LoadsNumbers() const { return IsCut() || (side_.IsComputed() && side_.type == hlo::ElementType::kBF16); }

  Stmt WholeTile() const {
    if (LoadsNumbers()) return ir::Block({LinesOfParts(false), TurnParts()});
    if (side_.IsComputed()) return ir::Block({LinesOfBytes(false), TurnParts()});
    std::vector<Stmt> body;
    for (int64_t i = 0; i < kSide; ++i)
      body.push_back(Save(0, Index(i), side_.depth_is_inner ? Row(i) : Words(Index(i))));
    body.push_back(TurnParts());
    return ir::Block(std::move(body));
  }

  Stmt CutTile() const {
    if (LoadsNumbers()) return ir::Block({LinesOfParts(true), TurnParts()});
    if (side_.IsComputed()) return ir::Block({LinesOfBytes(true), TurnParts()});
    const ir::Var line = IndexVar("line", kSide);
    const Stmt save =
        Save(0, ir::Ref(line), side_.depth_is_inner ? PartOfRow(ir::Ref(line)) : Words(ir::Ref(line), true));
    return ir::Block({Loop(line, Index(0), Index(kSide), save), TurnParts()});
  }

  Stmt LinesOfParts(bool is_cut) const {
    const ir::Var line = IndexVar("line", kSide);
    const auto [first, second] =
        side_.depth_is_inner ? std::pair(RunOfRow(ir::Ref(line), 0, is_cut), RunOfRow(ir::Ref(line), kLanes, is_cut))
                             : Pairs(ir::Ref(line), is_cut);
    const char* const join = side_.depth_is_inner ? kUnitRun : kUnitPairs;
    return Loop(line, Index(0), Index(kSide),
                SaveBf16Parts(first, second, plan_.parts, join,
                              [&](int64_t part, const Expr& words) { return Save(part, ir::Ref(line), words); }));
  }

  // Of s8 that are computed.
  Stmt LinesOfBytes(bool is_cut) const {
    const ir::Var line = IndexVar("line", kSide);
    if (!side_.depth_is_inner)
      return Loop(line, Index(0), Index(kSide), Save(0, ir::Ref(line), Words(ir::Ref(line), is_cut)));
    std::vector<Expr> quarters;
    for (int64_t from = 0; from < plan_.ElementsOfStep(); from += kLanes)
      quarters.push_back(RunOfRow(ir::Ref(line), from, is_cut));
    return Loop(line, Index(0), Index(kSide),
                Save(0, ir::Ref(line), ir::Call(kWords, kUnitBytes, std::move(quarters))));
  }

  Stmt Save(int64_t part, const Expr& line, const Expr& words) const {
    const Expr at = line * kSide;
    if (side_.Turns()) return ir::Store(square_, ir::Ramp(at + part * MatrixUnitPlan::kTileWords, kLanes), words);
    return ir::Store(tiles_, ir::Ramp(to_ + (at + part * kPartWords), kLanes), words);
  }

  // Of tiles that lie the other way.
  Stmt TurnParts() const {
    if (!side_.Turns()) return nullptr;
    if (!IsCut()) return Turn(Index(0));
    const ir::Var part = IndexVar("part", plan_.parts);
    return Loop(part, Index(0), Index(plan_.parts), Turn(ir::Ref(part)));
  }
  Stmt Turn(const Expr& part) const {
    return TurnSquare({square_, part * MatrixUnitPlan::kTileWords}, {tiles_, to_ + part * kPartWords});
  }

  // 16 elements along the depth of a row, `from` so many of a step.
  Expr RunOfRow(const Expr& line, int64_t from, bool is_cut) const {
    const Expr depth = step_ * plan_.ElementsOfStep();
    const Expr row = (batch_ * side_.extent + first_ + line) * plan_.shape.k;
    const Expr place = ir::Ramp(depth + from, kLanes);
    const Expr inside = ir::And(ir::Compare(Op::kLt, place, Index(plan_.shape.k)),
                                ir::Splat((first_ + line) < Index(side_.extent), kLanes));
    return ir::Load(source_, ir::Ramp(row + (depth + from), kLanes), is_cut ? inside : nullptr);
  }
  // And 16 rows or columns at two places of the depth, where those lie side by side.
  std::pair<Expr, Expr> Pairs(const Expr& line, bool is_cut) const {
    const Expr depth = step_ * plan_.ElementsOfStep() + line * plan_.ElementsOfWord();
    return {AtDepth(depth, is_cut), AtDepth(depth + 1, is_cut)};
  }
  Expr AtDepth(const Expr& depth, bool is_cut) const {
    const Expr inside = ir::Compare(Op::kLt, ir::Ramp(first_, kLanes), Index(side_.extent));
    const Expr there = ir::And(inside, ir::Splat(depth < Index(plan_.shape.k), kLanes));
    const Expr from = (batch_ * plan_.shape.k + depth) * side_.extent + first_;
    return ir::Load(source_, ir::Ramp(from, kLanes), is_cut ? there : nullptr);
  }

  // Where the elements along the depth of a row or column begin.
  Expr LineAddress(const Expr& line) const {
    const Expr row = batch_ * side_.extent + first_ + line;
    return ir::Address(source_, row * plan_.shape.k + step_ * plan_.ElementsOfStep());
  }
  Expr Row(int64_t line) const { return ir::Call(kWords, kUnitRow, {LineAddress(Index(line))}); }
  Expr PartOfRow(const Expr& line) const {
    const Expr left = (Index(plan_.shape.k) - step_ * plan_.ElementsOfStep()) * hlo::BytesOf(side_.type);
    const Expr inside = (first_ + line) < Index(side_.extent);
    return ir::Call(kWords, kUnitPartOfRow, {LineAddress(line), ir::Select(inside, left, Index(0))});
  }

  // Words of 16 rows or columns at one place of the depth, where those lie side by side.
  Expr Words(const Expr& line, bool is_cut = false) const {
    const int64_t elements = plan_.ElementsOfWord(), bits = 32 / elements;
    const Expr depth = step_ * plan_.ElementsOfStep() + line * elements;
    Expr joined;
    for (int64_t e = 0; e < elements; ++e) {
      const Expr number = AtDepth(depth + e, is_cut);
      const Expr narrow = side_.IsComputed() ? ir::BitCast(number, hlo::ElementType::kU8) : number;
      const Expr element = ir::Cast(narrow, hlo::ElementType::kU32);
      const Expr placed = e == 0 ? element : ir::Binary(Op::kShl, element, ir::Int(e * bits, element->type));
      joined = e == 0 ? placed : ir::Binary(Op::kOr, joined, placed);
    }
    return joined;
  }

  const MatrixUnitPlan& plan_;
  Side side_;
  ir::BufferRef square_, source_, tiles_;
  Expr batch_, step_, first_, to_;
};

ir::BufferRef MakeSquare(const MatrixUnitPlan& plan) {
  return MakeStaging("square", hlo::ElementType::kU32, plan.parts * MatrixUnitPlan::kTileWords);
}

std::vector<ir::Helper> HelpersOf(const std::vector<std::string_view>& functions, bool turns,
                                  const MatrixUnitPlan& plan) {
  std::vector<ir::Helper> helpers = HelpersNamed(kUnitFunctions, functions);
  if (!turns) return helpers;
  for (ir::Helper& helper : TurnHelpers(hlo::ElementType::kU32, plan.inline_assembly))
    helpers.push_back(std::move(helper));
  return helpers;
}

// A side, and where all of it is copied to.
struct PackedSide {
  Side side;
  ArgumentRef out;
};

// Sides that are copied by one kernel.
KernelDraft PackSides(const MatrixUnitPlan& plan, const std::vector<PackedSide>& sides) {
  KernelParameters parameters;
  const ir::BufferRef square = MakeSquare(plan);
  const ir::Var share = ir::MakeVar("share", kIndex);
  Stmt copy;
  int64_t shares = 0;
  bool turns = false;
  std::vector<std::string_view> functions;
  for (const auto& [side, out] : sides) {
    const std::string name = "tiles" + std::to_string(parameters.buffers().size());
    SidePacking packing(plan, side, square, parameters);
    packing.set_tiles(parameters.Add(name, hlo::ElementType::kU32, out.bytes / 4, out));
    const Stmt one = packing.Copy(ir::Ref(share) - shares);
    copy = copy == nullptr ? one : ir::If(ir::Ref(share) < Index(shares), copy, one);
    shares += packing.Shares();
    const std::vector<std::string_view> called = packing.Functions();
    functions.insert(functions.end(), called.begin(), called.end());
    turns |= side.Turns();
  }
  const Stmt nest = ir::For(LoopRole::kParallel, share, Index(0), Index(shares), copy);
  std::vector<ir::Helper> helpers = HelpersOf(functions, turns, plan);
  if (!turns) return Packing(MakeDraft("pack_tiles", parameters, nest, std::move(helpers)));
  return Packing(MakeDraft("pack_tiles", parameters, ir::Block({ir::DeclareArray(square), nest}), std::move(helpers)));
}

Side LhsOf(const ProductTask& task, const MatrixUnitPlan& plan) {
  const ProductShape& shape = plan.shape;
  return {task.lhs, shape.lhs_type, shape.m, plan.row_blocks, !shape.lhs_transposed, true};
}
Side RhsOf(const ProductTask& task, const MatrixUnitPlan& plan) {
  const ProductShape& shape = plan.shape;
  return {task.rhs, shape.rhs_type, shape.n, plan.column_blocks, shape.rhs_transposed, false};
}

}  // namespace

struct ColumnCopy::State {
  ir::BufferRef square;
  SidePacking packing;
};

ColumnCopy::ColumnCopy(const ProductTask& task, const MatrixUnitPlan& plan, const ir::BufferRef& tiles,
                       KernelParameters& parameters) {
  const ir::BufferRef square = MakeSquare(plan);
  state_ = std::make_unique<State>(State{square, SidePacking(plan, RhsOf(task, plan), square, parameters)});
  state_->packing.set_tiles(tiles);
}
ColumnCopy::~ColumnCopy() = default;

Stmt ColumnCopy::Step(const Expr& batch, const Expr& block, const Expr& step, const Expr& to) {
  return state_->packing.Step(batch, block, step, to);
}

Stmt ColumnCopy::Declare() const { return state_->packing.Turns() ? ir::DeclareArray(state_->square) : nullptr; }

std::vector<ir::Helper> ColumnCopy::Helpers() const {
  return HelpersOf(state_->packing.Functions(), state_->packing.Turns(), state_->packing.plan());
}

std::vector<KernelDraft> PackTilesOfUnit(const ProductTask& task, const MatrixUnitPlan& plan) {
  const PackedSide lhs{LhsOf(task, plan), ScratchSlice(plan.LhsOffset(), plan.LhsBytes(), true)};
  const PackedSide rhs{RhsOf(task, plan), ScratchSlice(0, plan.RhsBytes(), true)};
  if (plan.CopiesColumns())
    return plan.PacksLhs() ? std::vector<KernelDraft>{PackSides(plan, {lhs})} : std::vector<KernelDraft>{};
  if (!plan.PacksLhs()) return {PackSides(plan, {rhs})};
  if (plan.shape.rhs_is_kept) return {PackSides(plan, {rhs}), PackSides(plan, {lhs})};
  return {PackSides(plan, {rhs, lhs})};
}

}  // namespace hlorun::opencl
