#include "backends/opencl/kernels/pixel_tiles.h"

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/kernels/bf16_parts.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/matrix_unit_helpers.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using ir::Expr;
using ir::kIndex;
using ir::Op;
using ir::Stmt;

constexpr int64_t kSide = MatrixUnitPlan::kSide, kStepPixels = MatrixUnitGradientPlan::kStepPixels;
constexpr int64_t kBlock = MatrixUnitGradientPlan::kBlock;
constexpr int kLanes = static_cast<int>(kSide);
constexpr ir::Type kWords{ElementType::kU32, kLanes};
// Steps that one work-group copies.
constexpr int64_t kRun = 8;

// Where along a dimension of `in` elements the pixels of a phase are: `apart` elements from one to the next, the first
// so many before the array as `low` says, phases one after another.
struct Spacing {
  int64_t in, apart, low, phases;
};

class PixelCopy {
 public:
  // `run`: elements of a pixel, its `channels` and as many of those behind it as there are more.
  PixelCopy(const MatrixUnitGradientPlan& plan, const ArgumentRef& source, int64_t channels, int64_t run,
            const Spacing& rows, const Spacing& columns)
      : plan_(plan), channels_(channels), run_(run), rows_(rows), columns_(columns) {
    const int64_t elements = plan.shape.images * rows.in * columns.in * channels;
    source_ = parameters.Add("source", plan.parts == 1 ? ElementType::kU16 : ElementType::kF32, elements, source);
    places_ = MakeStaging("places", ElementType::kS64, kStepPixels);
    lefts_ = MakeStaging("lefts", ElementType::kS32, kStepPixels);
  }

  // tile(phase, image, step, block, side) copies 16 elements of a step's pixels.
  template <typename Tile>
  Stmt Nest(int64_t steps, const Tile& tile) {
    const int64_t phases = rows_.phases * columns_.phases, runs = CeilDiv(steps, kRun);
    const ir::Var image = IndexVar("image", plan_.shape.images), phase = IndexVar("phase", phases);
    const ir::Var run = IndexVar("run", runs), step = IndexVar("step", steps);
    const ir::Var block = IndexVar("block", CeilDiv(run_, kBlock)), side = IndexVar("side", 2);
    const Stmt blocks = Loop(block, Index(0), Index(block->max + 1),
                             Loop(side, Index(0), Index(2),
                                  tile(ir::Ref(phase), ir::Ref(image), ir::Ref(step), ir::Ref(block), ir::Ref(side))));
    const Expr begin = ir::Ref(run) * kRun, end = ir::Min(begin + kRun, Index(steps));
    const Stmt body =
        Loop(step, begin, end, ir::Block({Places(ir::Ref(image), ir::Ref(phase), ir::Ref(step)), blocks}));
    return ir::Block(
        {ir::DeclareArray(places_), IsPlain() ? nullptr : ir::DeclareArray(lefts_),
         ParallelNest({{phase, Index(phases)}, {image, Index(plan_.shape.images)}, {run, Index(runs)}}, body)});
  }

  // Words of 16 channels from `first` on, of pixels `pair` * 2 and the one behind it: save(part, words).
  Stmt Pair(const Expr& pair, const Expr& first, const std::function<Stmt(int64_t, const Expr&)>& save) const {
    const Expr low = Pixel(pair * 2, first), high = Pixel(pair * 2 + 1, first);
    if (plan_.parts > 1) return SaveBf16Parts(low, high, plan_.parts, kUnitPairs, save);
    return save(0, ir::Binary(Op::kOr, low, ir::Binary(Op::kShl, high, ir::Int(16, high->type))));
  }

  std::vector<ir::Helper> Helpers() const {
    if (plan_.parts == 1) return {};
    return UnitHelpers({kUnitPart, kUnitFirstPart, kUnitPairs});
  }

  KernelParameters parameters;

 private:
  // Of a step's pixels, where they begin, -1: there is none; and of longer runs, where in a row that is.
  Stmt Places(const Expr& image, const Expr& phase, const Expr& step) const {
    const int64_t pitch = plan_.RowPitch();
    const ir::Var pixel = IndexVar("pixel", kStepPixels);
    const ir::Var at = ir::MakeIndex("at", 0, plan_.ImagePitch() - 1, kIndex);
    const ir::Var row = ir::MakeIndex("row", 0, plan_.ImagePitch() - 1, kIndex), column = IndexVar("column", pitch);
    const ir::Var y = ir::MakeVar("y", kIndex), x = ir::MakeVar("x", kIndex);
    const auto inside = [](const Expr& place, const Spacing& spacing) {
      return ir::And(ir::Compare(Op::kGe, place, Index(0)), ir::Compare(Op::kLt, place, Index(spacing.in)));
    };
    const Expr phase_row = Quotient(phase, columns_.phases), phase_column = Remainder(phase, columns_.phases);
    const Expr place = ((image * rows_.in + ir::Ref(y)) * columns_.in + ir::Ref(x)) * channels_;
    std::vector<Stmt> body = {
        ir::Let(at, step * kStepPixels + ir::Ref(pixel)), ir::Let(row, Quotient(ir::Ref(at), pitch)),
        ir::Let(column, Remainder(ir::Ref(at), pitch)), ir::Let(y, ir::Ref(row) * rows_.apart + phase_row - rows_.low),
        ir::Let(x, ir::Ref(column) * columns_.apart + phase_column - columns_.low)};
    if (IsPlain()) {
      const Expr is_inside = ir::And(inside(ir::Ref(y), rows_), inside(ir::Ref(x), columns_));
      body.push_back(ir::Store(places_, ir::Ref(pixel), ir::Select(is_inside, place, Index(-1))));
    } else {
      const Expr left = ir::Select(inside(ir::Ref(y), rows_), ir::Ref(x) * channels_, Index(-run_));
      body.push_back(ir::Store(places_, ir::Ref(pixel), place));
      body.push_back(ir::Store(lefts_, ir::Ref(pixel), ir::Cast(left, ElementType::kS32)));
    }
    return Loop(pixel, Index(0), Index(kStepPixels), ir::Block(std::move(body)));
  }

  ir::Type Moved() const { return plan_.parts == 1 ? kWords : ir::Type{ElementType::kF32, kLanes}; }
  bool IsPlain() const { return run_ == channels_; }

  Expr Pixel(const Expr& pixel, const Expr& first) const {
    const Expr place = ir::Load(places_, pixel);
    const Expr lanes = ir::Ramp(first, kLanes);
    const Expr is_of_run = run_ % kBlock == 0 ? nullptr : ir::Compare(Op::kLt, lanes, Index(run_));
    const auto loaded = [&](const Expr& from, const Expr& predicate) {
      return ir::Cast(ir::Load(source_, ir::Ramp(from + first, kLanes), predicate), Moved().element);
    };
    if (IsPlain()) {
      const Expr is_there = ir::Compare(Op::kGe, place, Index(0));
      return ir::Select(ir::Splat(is_there, kLanes), loaded(ir::Max(place, Index(0)), is_of_run), ir::Zero(Moved()));
    }
    // What lies within the row; of rows that are not there, nothing.
    const Expr in_row = ir::Ramp(first + ir::Cast(ir::Load(lefts_, pixel), kIndex.element), kLanes);
    const Expr is_inside =
        ir::And(ir::Compare(Op::kGe, in_row, Index(0)), ir::Compare(Op::kLt, in_row, Index(columns_.in * channels_)));
    return loaded(place, is_of_run == nullptr ? is_inside : ir::And(is_inside, is_of_run));
  }

  const MatrixUnitGradientPlan& plan_;
  int64_t channels_, run_;
  Spacing rows_, columns_;
  ir::BufferRef source_, places_, lefts_;
};

}  // namespace

KernelDraft PackGradientTiles(const MatrixUnitGradientPlan& plan, const ArgumentRef& gradient,
                              const ArgumentRef& tiles) {
  const WeightGradientShape& shape = plan.shape;
  const auto all = [](const ConvolutionDimension& d) { return Spacing{d.window, 1, 0, 1}; };
  PixelCopy copy(plan, gradient, shape.features, shape.features, all(shape.rows), all(shape.columns));
  const ir::BufferRef out = copy.parameters.Add("tiles", ElementType::kU32, tiles.bytes / 4, tiles);
  const ir::Var pair = IndexVar("pair", kSide), to = ir::MakeVar("to", kIndex);
  const auto tile = [&](const Expr&, const Expr& image, const Expr& step, const Expr& block, const Expr& side) {
    const Expr at = ((block * shape.images + image) * plan.steps_of_image + step) * plan.StepWords();
    const Stmt one = copy.Pair(ir::Ref(pair), block * kBlock + side * kSide, [&](int64_t part, const Expr& words) {
      const Expr place = ir::Ref(to) + (ir::Ref(pair) * kSide + part * MatrixUnitPlan::kPartWords);
      return ir::Store(out, ir::Ramp(place, kLanes), words);
    });
    return ir::Block({ir::Let(to, at + side * MatrixUnitPlan::kTileWords), Loop(pair, Index(0), Index(kSide), one)});
  };
  const Stmt nest = copy.Nest(plan.steps_of_image, tile);
  return Packing(MakeDraft("pack_gradient", copy.parameters, nest, copy.Helpers()));
}

KernelDraft PackInputChannels(const MatrixUnitGradientPlan& plan, const ArgumentRef& input,
                              const ArgumentRef& channels) {
  const WeightGradientShape& shape = plan.shape;
  const auto phased = [](const ConvolutionDimension& d) { return Spacing{d.in, d.dilation, d.low, PhasesOf(d)}; };
  PixelCopy copy(plan, input, shape.channels, plan.RunChannels(), phased(shape.rows), phased(plan.Columns()));
  // Words: pairs of pixels.
  const int64_t pitch = plan.ImagePitch() / 2;
  const ir::BufferRef out = copy.parameters.Add("channels", ElementType::kU32, channels.bytes / 4, channels);
  const ir::BufferRef square = MakeStaging("square", ElementType::kU32, plan.parts * kSide * kSide);
  const ir::Var pair = IndexVar("pair", kSide), part_of = IndexVar("part", plan.parts), to = ir::MakeVar("to", kIndex);
  const auto tile = [&](const Expr& phase, const Expr& image, const Expr& step, const Expr& block, const Expr& side) {
    const Expr block_of_image = (phase * plan.channel_blocks + block) * shape.images + image;
    const Stmt one = copy.Pair(ir::Ref(pair), block * kBlock + side * kSide, [&](int64_t part, const Expr& words) {
      return ir::Store(square, ir::Ramp(ir::Ref(pair) * kSide + part * (kSide * kSide), kLanes), words);
    });
    const Stmt turn = TurnSquare({square, ir::Ref(part_of) * (kSide * kSide)},
                                 {out, ir::Ref(to) + ir::Ref(part_of) * (kBlock * pitch), pitch});
    return ir::Block({ir::Let(to, (block_of_image * (plan.parts * kBlock) + side * kSide) * pitch + step * kSide),
                      Loop(pair, Index(0), Index(kSide), one), Loop(part_of, Index(0), Index(plan.parts), turn)});
  };
  const Stmt nest = copy.Nest(plan.ImagePitch() / kStepPixels, tile);
  std::vector<ir::Helper> helpers = copy.Helpers();
  for (ir::Helper& helper : TurnHelpers(ElementType::kU32, plan.inline_assembly)) helpers.push_back(std::move(helper));
  return Packing(
      MakeDraft("pack_channels", copy.parameters, ir::Block({ir::DeclareArray(square), nest}), std::move(helpers)));
}

}  // namespace hlorun::opencl
