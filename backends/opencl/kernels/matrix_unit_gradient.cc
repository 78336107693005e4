#include "backends/opencl/kernels/matrix_unit_gradient.h"

#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/kernels/combine_parts.h"
#include "backends/opencl/kernels/epilogue.h"
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
constexpr int64_t kSums = MatrixUnitGradientPlan::kSumsOfBlock;

// Slices of scratch. What is only written at first lies in front: another product's copy that is kept from run to run
// may share the place (kept_work.h).
ArgumentRef GradientTiles(const MatrixUnitGradientPlan& plan, bool written) {
  return ScratchSlice(0, plan.GradientBytes(), written);
}
ArgumentRef InputChannels(const MatrixUnitGradientPlan& plan, bool written) {
  return ScratchSlice(plan.GradientBytes(), plan.InputBytes(), written);
}
ArgumentRef Sums(const MatrixUnitGradientPlan& plan, bool written) {
  return ScratchSlice(plan.GradientBytes() + plan.InputBytes(), plan.SumsBytes(), written);
}

// Where the sums of a block of channels by a block of features are in those of a part; taps that are copied as one are
// one.
Expr BlockPlace(const MatrixUnitGradientPlan& plan, const Expr& tap, const Expr& channels, const Expr& features) {
  return ((tap * plan.channel_blocks + channels) * plan.feature_blocks + features) * kSums;
}

class UnitGradient {
 public:
  explicit UnitGradient(const MatrixUnitGradientPlan& plan)
      : plan_(plan), shape_(plan.shape), columns_(plan.Columns()) {
    input_ = parameters_.Add("input", hlo::ElementType::kU16, plan.InputBytes() / 2, InputChannels(plan, false));
    gradient_ =
        parameters_.Add("gradient", hlo::ElementType::kU32, plan.GradientBytes() / 4, GradientTiles(plan, false));
    sums_ = parameters_.Add("sums", shape_.compute_type, plan.SumsBytes() / 4, Sums(plan, true));
    first_sums_ = MakeStaging("first_sums", shape_.compute_type, kSums);
  }

  KernelDraft Emit() {
    const ir::Var apart = IndexVar("apart", plan_.SumsApart());
    const ir::Var channels = IndexVar("channel_group", plan_.ChannelGroups());
    const ir::Var features = IndexVar("feature_group", plan_.FeatureGroups());
    const Stmt group = ir::Block(
        {CallUnit(kUnitBegin), Group(ir::Ref(apart), ir::Ref(channels), ir::Ref(features)), CallUnit(kUnitEnd)});
    const Stmt nest = ParallelNest({{apart, Index(plan_.SumsApart())},
                                    {features, Index(plan_.FeatureGroups())},
                                    {channels, Index(plan_.ChannelGroups())}},
                                   group);
    if (plan_.parts == 1)
      return MakeDraft("weight_gradient_tiles", parameters_, nest,
                       UnitHelpers({kUnitBegin, kUnitEnd, kUnitZero, kUnitLoad, kUnitStore, kUnitBf16}));
    return MakeDraft("weight_gradient_tiles", parameters_, ir::Block({ir::DeclareArray(first_sums_), nest}),
                     UnitHelpers({kUnitBegin, kUnitEnd, kUnitZero, kUnitLoad, kUnitStore, kUnitF32Rows, kUnitFirstParts,
                                  kUnitHasNan, kUnitReplaceNan}));
  }

 private:
  // Blocks of channels and features with each other, and a tap.
  struct Block {
    Expr channels, features, tap_row, tap_column;
  };

  // A chunk of a block of features, and one of channels with all taps, stay in the first cache.
  Stmt Group(const Expr& apart, const Expr& channel_group, const Expr& feature_group) const {
    const ir::Var chunk = IndexVar("chunk", plan_.Chunks()), features = IndexVar("features", plan_.feature_blocks);
    const ir::Var channels = IndexVar("channels", plan_.channel_blocks), tap_row = IndexVar("tap_row", shape_.rows.out);
    const ir::Var tap_column = IndexVar("tap_column", columns_.out);
    const Expr first_chunk = apart * plan_.chunks_of_sum;
    const Expr end_chunk = EndOfRun(first_chunk, plan_.chunks_of_sum, plan_.Chunks());
    const Expr first_feature = feature_group * plan_.feature_blocks_per_group;
    const Expr first_channel = channel_group * plan_.channel_blocks_per_group;
    const Expr is_first = ir::Compare(Op::kEq, ir::Ref(chunk), first_chunk);
    const Expr tap = ir::Ref(tap_row) * columns_.out + ir::Ref(tap_column);
    const Block block{ir::Ref(channels), ir::Ref(features), ir::Ref(tap_row), ir::Ref(tap_column)};
    const Expr sums =
        ir::Address(sums_, apart * plan_.Sums() + BlockPlace(plan_, tap, ir::Ref(channels), ir::Ref(features)));
    const ir::Var to = ir::MakeVar("to", sums->type);
    std::vector<Stmt> one = {ir::Let(to, sums),
                             ir::If(is_first, CallUnit(kUnitZero), CallUnit(kUnitLoad, {ir::Ref(to)})),
                             Chunk(ir::Ref(chunk), block, StepsFunction()), CallUnit(kUnitStore, {ir::Ref(to)})};
    if (plan_.parts > 1)
      one.push_back(ir::If(ir::Compare(Op::kEq, ir::Ref(chunk) + 1, end_chunk),
                           Mend(ir::Ref(to), first_chunk, end_chunk, block)));
    const Stmt taps = Loop(tap_row, Index(0), Index(shape_.rows.out),
                           Loop(tap_column, Index(0), Index(columns_.out), ir::Block(std::move(one))));
    const Stmt blocks =
        Loop(features, first_feature, EndOfRun(first_feature, plan_.feature_blocks_per_group, plan_.feature_blocks),
             Loop(channels, first_channel,
                  EndOfRun(first_channel, plan_.channel_blocks_per_group, plan_.channel_blocks), taps));
    return Loop(chunk, first_chunk, end_chunk, blocks);
  }

  // All of the chunks again.
  Stmt Mend(const Expr& sums, const Expr& first_chunk, const Expr& end_chunk, const Block& block) const {
    const ir::Var chunk = IndexVar("again", plan_.Chunks());
    return MendSums(sums, ir::Address(first_sums_, Index(0)),
                    Loop(chunk, first_chunk, end_chunk, Chunk(ir::Ref(chunk), block, kUnitFirstParts)));
  }

  const char* StepsFunction() const { return plan_.parts == 1 ? kUnitBf16 : kUnitF32Rows; }

  // Of one block of channels with one of features, at one tap.
  Stmt Chunk(const Expr& chunk, const Block& block, const char* function) const {
    const int64_t chunks = plan_.ChunksOfImage();
    const ir::Var image = IndexVar("image", shape_.images);
    const Expr first_image = chunks == 1 ? chunk * plan_.images_of_chunk : Quotient(chunk, chunks);
    const Expr first_step = chunks == 1 ? Index(0) : Remainder(chunk, chunks) * plan_.steps_of_chunk;
    const Expr steps = EndOfRun(first_step, plan_.steps_of_chunk, plan_.steps_of_image) - first_step;
    const Expr lhs =
        ir::Address(input_, (PlaceOfTap(block) + ir::Ref(image) * plan_.ImageBlock()) + first_step * kStepPixels);
    const Expr place = (block.features * shape_.images + ir::Ref(image)) * plan_.steps_of_image + first_step;
    const Expr rhs = ir::Address(gradient_, place * plan_.StepWords()), row = Index(plan_.ImagePitch() * 2);
    std::vector<Expr> arguments = {lhs, row, Index(MatrixUnitPlan::kStepBytes), rhs, steps};
    if (function == kUnitF32Rows) arguments[2] = Index(plan_.PartOfBlock() * 2);
    if (function == kUnitBf16) arguments.insert(arguments.end(), {rhs, Index(0)});  // nothing is sent for
    return Loop(image, first_image, EndOfRun(first_image, plan_.images_of_chunk, shape_.images),
                CallUnit(function, std::move(arguments)));
  }

  // The first image's pixels of a block of channels that a tap meets.
  Expr PlaceOfTap(const Block& block) const {
    const ConvolutionDimension& rows = shape_.rows;
    const Expr y = block.tap_row * rows.stride, x = block.tap_column * columns_.stride;
    const Expr phase = Remainder(y, rows.dilation) * PhasesOf(columns_) + Remainder(x, columns_.dilation);
    return (phase * plan_.channel_blocks + block.channels) * (shape_.images * plan_.ImageBlock()) +
           Quotient(y, rows.dilation) * plan_.RowPitch() + Quotient(x, columns_.dilation);
  }

  const MatrixUnitGradientPlan& plan_;
  const WeightGradientShape& shape_;
  ConvolutionDimension columns_;
  KernelParameters parameters_;
  ir::BufferRef input_, gradient_, sums_, first_sums_;
};

GradientSums SumsOf(const MatrixUnitGradientPlan& plan) {
  GradientSums sums;
  sums.argument = Sums(plan, false);
  sums.parts = plan.SumsApart();
  sums.of_part = plan.Sums();
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
