#include "backends/opencl/kernels/matrix_unit_gradient.h"

#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/kernels/combine_parts.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/matrix_unit_helpers.h"
#include "backends/opencl/kernels/pixel_tiles.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::Op;
using ir::Stmt;

constexpr int64_t kBlock = MatrixUnitGradientPlan::kBlock, kStepPixels = MatrixUnitGradientPlan::kStepPixels;
constexpr int64_t kStepWords = MatrixUnitGradientPlan::kStepWords, kSums = MatrixUnitGradientPlan::kSumsOfBlock;

// Slices of scratch.
ArgumentRef Sums(const MatrixUnitGradientPlan& plan, bool written) {
  return ScratchSlice(0, plan.SumsBytes(), written);
}
ArgumentRef GradientTiles(const MatrixUnitGradientPlan& plan, bool written) {
  return ScratchSlice(plan.SumsBytes(), plan.GradientBytes(), written);
}
ArgumentRef InputChannels(const MatrixUnitGradientPlan& plan, bool written) {
  return ScratchSlice(plan.SumsBytes() + plan.GradientBytes(), plan.InputBytes(), written);
}

// Where the sums of a block of channels by a block of features are in those of a part; taps that are copied as one are
// one.
Expr BlockPlace(const MatrixUnitGradientPlan& plan, const Expr& tap, const Expr& channels, const Expr& features) {
  return ((tap * plan.channel_blocks + channels) * plan.feature_blocks + features) * kSums;
}

Stmt CallUnit(const char* function, std::vector<Expr> arguments = {}) {
  return ir::CallStatement(ir::Call(kIndex, function, std::move(arguments)));
}

class UnitGradient {
 public:
  explicit UnitGradient(const MatrixUnitGradientPlan& plan)
      : plan_(plan), shape_(plan.shape), columns_(plan.Columns()) {
    input_ = parameters_.Add("input", hlo::ElementType::kU16, plan.InputBytes() / 2, InputChannels(plan, false));
    gradient_ =
        parameters_.Add("gradient", hlo::ElementType::kU32, plan.GradientBytes() / 4, GradientTiles(plan, false));
    sums_ = parameters_.Add("sums", shape_.compute_type, plan.SumsBytes() / 4, Sums(plan, true));
  }

  KernelDraft Emit() {
    const ir::Var part = IndexVar("part", plan_.Parts()), channels = IndexVar("channel_group", plan_.ChannelGroups());
    const ir::Var features = IndexVar("feature_group", plan_.FeatureGroups());
    const Stmt group = ir::Block(
        {CallUnit(kUnitBegin), Group(ir::Ref(part), ir::Ref(channels), ir::Ref(features)), CallUnit(kUnitEnd)});
    const Stmt nest = ParallelNest({{part, Index(plan_.Parts())},
                                    {features, Index(plan_.FeatureGroups())},
                                    {channels, Index(plan_.ChannelGroups())}},
                                   group);
    return MakeDraft("weight_gradient_tiles", parameters_, nest,
                     UnitHelpers({kUnitBegin, kUnitEnd, kUnitZero, kUnitLoad, kUnitStore, kUnitBf16}));
  }

 private:
  static Expr End(const Expr& first, int64_t count, int64_t limit) {
    return limit % count == 0 ? first + count : ir::Min(first + count, Index(limit));
  }

  // A chunk of a block of features, and one of channels with all taps, stay in the first cache.
  Stmt Group(const Expr& part, const Expr& channel_group, const Expr& feature_group) const {
    const ir::Var chunk = IndexVar("chunk", plan_.Chunks()), features = IndexVar("features", plan_.feature_blocks);
    const ir::Var channels = IndexVar("channels", plan_.channel_blocks), tap_row = IndexVar("tap_row", shape_.rows.out);
    const ir::Var tap_column = IndexVar("tap_column", columns_.out);
    const Expr first_chunk = part * plan_.chunks_of_part;
    const Expr first_feature = feature_group * plan_.feature_blocks_per_group;
    const Expr first_channel = channel_group * plan_.channel_blocks_per_group;
    const Expr is_first = ir::Compare(Op::kEq, ir::Ref(chunk), first_chunk);
    const Expr tap = ir::Ref(tap_row) * columns_.out + ir::Ref(tap_column);
    const Expr sums =
        ir::Address(sums_, part * plan_.SumsOfPart() + BlockPlace(plan_, tap, ir::Ref(channels), ir::Ref(features)));
    const ir::Var to = ir::MakeVar("to", sums->type);
    const Stmt one =
        ir::Block({ir::Let(to, sums), ir::If(is_first, CallUnit(kUnitZero), CallUnit(kUnitLoad, {ir::Ref(to)})),
                   Chunk(ir::Ref(chunk), ir::Ref(channels), ir::Ref(features), ir::Ref(tap_row), ir::Ref(tap_column)),
                   CallUnit(kUnitStore, {ir::Ref(to)})});
    const Stmt taps =
        Loop(tap_row, Index(0), Index(shape_.rows.out), Loop(tap_column, Index(0), Index(columns_.out), one));
    const Stmt blocks = Loop(
        features, first_feature, End(first_feature, plan_.feature_blocks_per_group, plan_.feature_blocks),
        Loop(channels, first_channel, End(first_channel, plan_.channel_blocks_per_group, plan_.channel_blocks), taps));
    return Loop(chunk, first_chunk, End(first_chunk, plan_.chunks_of_part, plan_.Chunks()), blocks);
  }

  // Of one block of channels with one of features, at one tap.
  Stmt Chunk(const Expr& chunk, const Expr& channels, const Expr& features, const Expr& tap_row,
             const Expr& tap_column) const {
    const int64_t chunks = plan_.ChunksOfImage();
    const ir::Var image = IndexVar("image", shape_.images);
    const Expr first_image = chunks == 1 ? chunk * plan_.images_of_chunk : Quotient(chunk, chunks);
    const Expr first_step = chunks == 1 ? Index(0) : Remainder(chunk, chunks) * plan_.steps_of_chunk;
    const Expr steps = End(first_step, plan_.steps_of_chunk, plan_.steps_of_image) - first_step;
    const Expr lhs = (PlaceOfTap(channels, tap_row, tap_column) + ir::Ref(image) * (kBlock * plan_.ImagePitch())) +
                     first_step * kStepPixels;
    const Expr rhs = ((features * shape_.images + ir::Ref(image)) * plan_.steps_of_image + first_step) * kStepWords;
    const Stmt one =
        CallUnit(kUnitBf16, {ir::Address(input_, lhs), Index(plan_.ImagePitch() * 2), Index(MatrixUnitPlan::kStepBytes),
                             ir::Address(gradient_, rhs), steps, ir::Address(gradient_, rhs), Index(0)});
    return Loop(image, first_image, End(first_image, plan_.images_of_chunk, shape_.images), one);
  }

  // The first image's pixels of a block of channels that a tap meets.
  Expr PlaceOfTap(const Expr& channels, const Expr& tap_row, const Expr& tap_column) const {
    const ConvolutionDimension& rows = shape_.rows;
    const Expr y = tap_row * rows.stride, x = tap_column * columns_.stride;
    const Expr phase = Remainder(y, rows.dilation) * PhasesOf(columns_) + Remainder(x, columns_.dilation);
    const int64_t block = shape_.images * kBlock * plan_.ImagePitch();
    return (phase * plan_.channel_blocks + channels) * block + Quotient(y, rows.dilation) * plan_.RowPitch() +
           Quotient(x, columns_.dilation);
  }

  const MatrixUnitGradientPlan& plan_;
  const WeightGradientShape& shape_;
  ConvolutionDimension columns_;
  KernelParameters parameters_;
  ir::BufferRef input_, gradient_, sums_;
};

GradientSums SumsOf(const MatrixUnitGradientPlan& plan) {
  GradientSums sums;
  sums.argument = Sums(plan, false);
  sums.parts = plan.Parts();
  sums.of_part = plan.SumsOfPart();
  sums.lanes = MatrixUnitPlan::kSide;
  sums.vectors = kBlock / MatrixUnitPlan::kSide;
  sums.panels = sums.panels_together = plan.feature_blocks;
  sums.features_together = plan.shape.features;
  sums.place = [&plan](const Expr& tap, const Expr& channel, const Expr& panel) {
    const int64_t together = plan.taps_together;
    const Expr of_run = together == 1 ? channel : Remainder(tap, together) * plan.shape.channels + channel;
    return BlockPlace(plan, Quotient(tap, together), Quotient(of_run, kBlock), panel) +
           Remainder(of_run, kBlock) * kBlock;
  };
  return sums;
}

}  // namespace

std::vector<KernelDraft> MatrixUnitGradientKernels(const WeightGradientTask& task, const MatrixUnitGradientPlan& plan) {
  return {PackGradientTiles(plan, task.gradient, GradientTiles(plan, true)),
          PackInputChannels(plan, task.input, InputChannels(plan, true)), UnitGradient(plan).Emit(),
          CombineParts(task, plan.shape, SumsOf(plan))};
}

}  // namespace hlorun::opencl
