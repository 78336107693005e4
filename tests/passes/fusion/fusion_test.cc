// Fusion: text in, the kernels that come out, and the evaluator's word that they compute the same.
#include "passes/fusion/fusion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text/parser.h"
#include "hlo/verifier.h"
#include "passes/fusion/hero.h"
#include "passes/generic_context.h"
#include "tests/passes/fusion/fused.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::string Recurrence(int64_t columns) {
  return fmt::format(R"(
  half = f32[] constant(0.5)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  x = f16[9,{0}] parameter(0)
  a = f32[9,{0}] broadcast(half), dimensions={{}}
  b = f32[9,{0}] convert(x)
  w = (f32[9,{0}], f32[9,{0}]) reduce-window(a, b, one, zero), window={{size=9x1 pad=8_0x0_0}}, to_apply=recurrence
  ROOT r = f32[9,{0}] get-tuple-element(w), index=1)",
                     columns);
}

TEST(CumulativeFusion, NumbersAndConvertedArraysGoIn) {
  const Fused fused = Fuse(Recurrence(5));
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduceWindow));
  EXPECT_EQ(fused.Kernel(0)->operand_count(), 1);
}

TEST(CumulativeFusion, LargeOnesDoNotWriteWhatNobodyReads) {
  EXPECT_TRUE(Fuse(Recurrence(5)).Kernel(0)->shape().IsTuple());
  EXPECT_TRUE(Fuse(Recurrence(2000)).Kernel(0)->shape().IsArray());
}

TEST(Fusion, ElementwiseChainIsOneLoop) {
  const Fused fused = Fuse(R"(
  x = f32[8,16] parameter(0)
  b = f32[16] parameter(1)
  c = f32[] constant(2)
  cs = f32[8,16] broadcast(c), dimensions={}
  bs = f32[8,16] broadcast(b), dimensions={1}
  y = f32[8,16] add(x, bs)
  z = f32[8,16] multiply(y, cs)
  ROOT t = f32[8,16] tanh(z))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
  // The scalar is a constant of the kernel, not an operand.
  EXPECT_EQ(fused.Kernel(0)->operand_count(), 2);
}

TEST(Fusion, IndexOpsAreLoops) {
  const Fused fused = Fuse(R"(
  x = f32[4,8] parameter(0)
  i = s32[] parameter(1)
  zero = f32[] constant(0)
  t = f32[8,4] transpose(x), dimensions={1,0}
  s = f32[4,4] slice(t), slice={[0:4], [0:4]}
  p = f32[6,4] pad(s, zero), padding=1_1x0_0
  d = f32[2,4] dynamic-slice(x, i, i), dynamic_slice_sizes={2,4}
  r = f32[2,4] reverse(d), dimensions={0}
  c = f32[8,4] concatenate(p, r), dimensions={0}
  n = f32[8,4] iota(), iota_dimension=0
  ROOT y = f32[8,4] add(c, n))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
}

TEST(Fusion, CheapProducersAreComputedTwice) {
  const Fused fused = Fuse(R"(
  x = f32[64,64] parameter(0)
  y = f32[64,64] negate(x)
  zero = f32[] constant(0)
  r = f32[64] reduce(y, zero), dimensions={0}, to_apply=add
  t = f32[64,64] transpose(y), dimensions={1,0}
  ROOT o = (f32[64], f32[64,64]) tuple(r, t))");
  EXPECT_THAT(fused.kernels, UnorderedElementsAre(KernelKind::kReduction, KernelKind::kLoop));
}

TEST(Fusion, ExpensiveProducersAreNotComputedForEachBroadcastElement) {
  const Fused fused = Fuse(R"(
  x = f32[64] parameter(0)
  y = f32[256,64] parameter(1)
  e = f32[64] exponential(x)
  b = f32[256,64] broadcast(e), dimensions={1}
  ROOT o = f32[256,64] multiply(y, b))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop, KernelKind::kLoop));
  EXPECT_TRUE(fused.Kernel(0)->Is(Opcode::kExp));
}

TEST(Fusion, ShortRunsForManyRowsAreStored) {
  const Fused fused = Fuse(R"(x = f32[2,64,4,10] parameter(0)
                              s = f32[2,4] parameter(1)
                              b = f32[2,64,4,10] broadcast(s), dimensions={0,2}
                              ROOT r = f32[2,64,4,10] multiply(x, b))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop, KernelKind::kLoop));
  EXPECT_EQ(fused.Kernel(0)->shape().ToString(), "f32[2,4,10]");
}

TEST(Fusion, ShortRunsForAFewRowsAreNot) {
  const Fused fused = Fuse(R"(x = f32[2,8,4,10] parameter(0)
                              s = f32[2,4] parameter(1)
                              b = f32[2,8,4,10] broadcast(s), dimensions={0,2}
                              ROOT r = f32[2,8,4,10] multiply(x, b))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
}

TEST(Fusion, RunsThatAreMergedAreStoredWhateverTheirLength) {
  for (const int64_t run : {16, 100}) {
    const Fused fused = Fuse(fmt::format(R"(x = f32[2,64,{1}] parameter(0)
                                            s = f32[2,4] parameter(1)
                                            b = f32[2,4,{0}] broadcast(s), dimensions={{0,1}}
                                            m = f32[2,{1}] reshape(b)
                                            w = f32[2,64,{1}] broadcast(m), dimensions={{0,2}}
                                            ROOT r = f32[2,64,{1}] multiply(x, w))",
                                         run, 4 * run));
    EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop, KernelKind::kLoop));
    EXPECT_TRUE(fused.Kernel(0)->Is(Opcode::kBroadcast));
  }
}

// What is read twice at one place of what a reduction walks is computed once, however much it costs.
TEST(Fusion, SquareOfALongChainJoinsItsReduction) {
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  y = f32[32,64] parameter(1)
  z = f32[32,64] parameter(2)
  a = f32[32,64] add(x, y)
  b = f32[32,64] multiply(a, z)
  e = f32[32,64] exponential(b)
  t = f32[32,64] tanh(e)
  q = f32[32,64] multiply(t, t)
  zero = f32[] constant(0)
  ROOT s = f32[64] reduce(q, zero), dimensions={0}, to_apply=add)");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction));
}

TEST(Fusion, LongChainsAreStoredForTheirReaders) {
  // Six transcendental steps, read by two kernels: computing them twice costs more than a store.
  const Fused fused = Fuse(R"(
  x = f32[64,64] parameter(0)
  a = f32[64,64] tanh(x)
  b = f32[64,64] exponential(a)
  c = f32[64,64] tanh(b)
  d = f32[64,64] exponential(c)
  zero = f32[] constant(0)
  r = f32[64] reduce(d, zero), dimensions={0}, to_apply=add
  t = f32[64,64] transpose(d), dimensions={1,0}
  ROOT o = (f32[64], f32[64,64]) tuple(r, t))");
  EXPECT_EQ(fused.kernels.size(), 3u);
}

TEST(Fusion, ReductionTakesProducersAndItsOwnEpilogue) {
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  y = f32[32,64] multiply(x, x)
  zero = f32[] constant(0)
  r = f32[64] reduce(y, zero), dimensions={0}, to_apply=add
  n = f32[] constant(0.03125)
  ns = f32[64] broadcast(n), dimensions={}
  m = f32[64] multiply(r, ns)
  ROOT s = f32[64] sqrt(m))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction));
  EXPECT_EQ(fused.Kernel(0)->As<hlo::attr::Fusion>().kind, hlo::FusionKind::kInput);
}

TEST(Fusion, SiblingReductionsReadOnce) {
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  y = f32[32,64] multiply(x, x)
  zero = f32[] constant(0)
  r = f32[64] reduce(x, zero), dimensions={0}, to_apply=add
  s = f32[64] reduce(y, zero), dimensions={0}, to_apply=add
  ROOT o = (f32[64], f32[64]) tuple(r, s))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction));
  EXPECT_TRUE(fused.Kernel(0)->shape().IsTuple());
}

TEST(Fusion, ConcatenatedReductionsAreStoredInTheWhole) {
  const Fused fused = Fuse(R"(
  x = f32[256,64] parameter(0)
  y = f32[256,64] multiply(x, x)
  zero = f32[] constant(0)
  r = f32[256] reduce(x, zero), dimensions={1}, to_apply=add
  s = f32[256] reduce(y, zero), dimensions={1}, to_apply=add
  root = f32[256] sqrt(s)
  a = f32[256,1] reshape(r)
  b = f32[256,1] reshape(root)
  ROOT c = f32[256,2] concatenate(a, b), dimensions={1})");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction));
  EXPECT_TRUE(fused.Kernel(0)->called()->root()->Is(Opcode::kConcatenate));
}

TEST(Fusion, ConcatenatedReductionsOfRowsThatNeedOneAnother) {
  const Fused fused = Fuse(R"(
  x = f32[256,64] parameter(0)
  zero = f32[] constant(0)
  r = f32[256] reduce(x, zero), dimensions={1}, to_apply=add
  w = f32[256,64] broadcast(r), dimensions={0}
  d = f32[256,64] subtract(x, w)
  q = f32[256,64] multiply(d, d)
  s = f32[256] reduce(q, zero), dimensions={1}, to_apply=add
  ROOT c = f32[512] concatenate(r, s), dimensions={0})");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kRow));
}

TEST(Fusion, OneReductionInTwoForms) {
  const Fused fused = Fuse(R"(
  x = f32[2048,10] parameter(0)
  zero = f32[] constant(0)
  r = f32[2048] reduce(x, zero), dimensions={1}, to_apply=add
  e = f32[2048] exponential(r)
  a = f32[2048,1] reshape(r)
  b = f32[2048,1] reshape(e)
  ROOT c = f32[2048,2] concatenate(a, b), dimensions={1})");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction));
}

TEST(Fusion, SmallConcatenatedReductionsAreCopied) {
  const Fused fused = Fuse(R"(
  x = f32[255,64] parameter(0)
  zero = f32[] constant(0)
  r = f32[255] reduce(x, zero), dimensions={1}, to_apply=add
  n = f32[255] negate(r)
  ROOT c = f32[510] concatenate(r, n), dimensions={0})");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction, KernelKind::kLoop));
}

TEST(Fusion, ConcatenatedReductionsThatAreReadElsewhereAreCopied) {
  const Fused fused = Fuse(R"(
  x = f32[64,256] parameter(0)
  y = f32[64,256] multiply(x, x)
  zero = f32[] constant(0)
  r = f32[256] reduce(x, zero), dimensions={0}, to_apply=add
  s = f32[256] reduce(y, zero), dimensions={0}, to_apply=add
  c = f32[512] concatenate(r, s), dimensions={0}
  ROOT o = (f32[512], f32[256]) tuple(c, s))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction, KernelKind::kLoop));
}

TEST(Fusion, ReductionsBesideOtherPartsAreCopied) {
  const Fused of_a_parameter = Fuse(R"(
  x = f32[64,256] parameter(0)
  p = f32[256] parameter(1)
  zero = f32[] constant(0)
  r = f32[256] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT c = f32[512] concatenate(r, p), dimensions={0})");
  EXPECT_THAT(of_a_parameter.kernels, ElementsAre(KernelKind::kReduction, KernelKind::kLoop));
  // Each element of the second part is made of another one's sum.
  const Fused turned = Fuse(R"(
  x = f32[64,256] parameter(0)
  zero = f32[] constant(0)
  r = f32[256] reduce(x, zero), dimensions={0}, to_apply=add
  t = f32[256] reverse(r), dimensions={0}
  ROOT c = f32[512] concatenate(r, t), dimensions={0})");
  EXPECT_THAT(turned.kernels, ElementsAre(KernelKind::kReduction, KernelKind::kLoop));
}

TEST(Fusion, ProductTakesItsEpilogueThroughAReshape) {
  const Fused fused = Fuse(R"(
  x = f32[24,16] parameter(0)
  w = f32[16,32] parameter(1)
  b = f32[32] parameter(2)
  res = f32[4,6,32] parameter(3)
  d = f32[24,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[4,6,32] reshape(d)
  bs = f32[4,6,32] broadcast(b), dimensions={2}
  y = f32[4,6,32] add(r, bs)
  z = f32[4,6,32] add(y, res)
  ROOT t = f32[4,6,32] tanh(z))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kDot));
  const Instruction* kernel = fused.Kernel(0);
  EXPECT_EQ(kernel->As<hlo::attr::Fusion>().kind, hlo::FusionKind::kOutput);
  EXPECT_EQ(kernel->shape().ToString(false), "f32[24,32]");
  for (const auto& member : kernel->called()->instructions()) EXPECT_FALSE(member->Is(Opcode::kReshape));
}

TEST(Fusion, BroadcastThatCutsAProductsRowsKeepsTheReshape) {
  const Fused fused = Fuse(R"(
  x = f32[24,16] parameter(0)
  w = f32[16,32] parameter(1)
  b = f32[6] parameter(2)
  d = f32[24,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[4,6,32] reshape(d)
  bs = f32[4,6,32] broadcast(b), dimensions={1}
  ROOT y = f32[4,6,32] add(r, bs))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kDot, KernelKind::kLoop));
}

// Heads are brought together by the kernel that makes them, and apart by the one that is done with them.
TEST(Fusion, ProductPutsItsResultElsewhere) {
  const Fused fused = Fuse(R"(
  x = f32[24,16] parameter(0)
  w = f32[16,96] parameter(1)
  b = f32[6,16] parameter(2)
  v = f32[24,6,16] parameter(3)
  d = f32[24,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[4,6,6,16] reshape(d)
  bs = f32[4,6,6,16] broadcast(b), dimensions={2,3}
  y = f32[4,6,6,16] add(r, bs)
  t = f32[4,6,6,16] transpose(y), dimensions={0,2,1,3}
  q = f32[24,6,16] reshape(t)
  s = f32[24,6,6] dot(q, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  c = f32[24,6,16] dot(s, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  cr = f32[4,6,6,16] reshape(c)
  ROOT o = f32[4,6,6,16] transpose(cr), dimensions={0,2,1,3})");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kDot, KernelKind::kDot, KernelKind::kDot));
  EXPECT_TRUE(fused.Kernel(0)->called()->root()->Is(Opcode::kTranspose));
  EXPECT_TRUE(fused.Kernel(2)->called()->root()->Is(Opcode::kTranspose));
}

TEST(Fusion, ProductKeepsWhatWouldBeTornApart) {
  const auto kernels_of = [](const std::string& reshaped, const std::string& dimensions, const std::string& result) {
    return Fuse(fmt::format(R"(
  x = f32[24,16] parameter(0)
  w = f32[16,96] parameter(1)
  d = f32[24,96] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[{}] reshape(d)
  ROOT t = f32[{}] transpose(r), dimensions={{{}}})",
                            reshaped, result, dimensions))
        .kernels;
  };
  EXPECT_THAT(kernels_of("24,6,16", "1,0,2", "6,24,16"), ElementsAre(KernelKind::kDot));
  // Columns that move, runs that are no vectors, and runs of several rows.
  EXPECT_THAT(kernels_of("24,6,16", "1,2,0", "6,16,24"), ElementsAre(KernelKind::kDot, KernelKind::kLoop));
  EXPECT_THAT(kernels_of("24,12,8", "1,0,2", "12,24,8"), ElementsAre(KernelKind::kDot, KernelKind::kLoop));
  EXPECT_THAT(kernels_of("6,2,192", "1,0,2", "2,6,192"), ElementsAre(KernelKind::kDot, KernelKind::kLoop));
}

TEST(Fusion, ProductReadTwiceIsStored) {
  const Fused fused = Fuse(R"(
  x = f32[24,16] parameter(0)
  w = f32[16,16] parameter(1)
  d = f32[24,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[24,16] tanh(d)
  u = f32[16,24] transpose(d), dimensions={1,0}
  ROOT o = (f32[24,16], f32[16,24]) tuple(t, u))");
  EXPECT_THAT(fused.kernels, UnorderedElementsAre(KernelKind::kDot, KernelKind::kLoop, KernelKind::kLoop));
}

// The kernels of an update of a[i..i+4] by the tanh of what `slice` is.
std::vector<KernelKind> KernelsOfUpdate(const std::string& slice, const std::string& new_part = "tanh(s)") {
  return Fuse(fmt::format(R"(
  x = f32[64] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  seven = s32[] constant(7)
  a = f32[64] negate(x)
  s = f32[4] {}
  t = f32[4] {}
  ROOT d = f32[64] dynamic-update-slice(a, t, i))",
                          slice, new_part))
      .kernels;
}

TEST(Fusion, UpdateThatReadsItsOwnArrayElsewhereReadsItBefore) {
  const std::vector<KernelKind> three = {KernelKind::kLoop, KernelKind::kLoop, KernelKind::kInPlace};
  EXPECT_EQ(KernelsOfUpdate("dynamic-slice(a, j), dynamic_slice_sizes={4}"), three);
  EXPECT_EQ(KernelsOfUpdate("slice(a), slice={[7:11]}"), three);
  // Each element, but not where it is stored.
  EXPECT_EQ(KernelsOfUpdate("dynamic-slice(a, i), dynamic_slice_sizes={4}", "reverse(s), dimensions={0}"), three);
}

TEST(Fusion, UpdateReadsThePartThatItWrites) {
  const std::vector<KernelKind> two = {KernelKind::kLoop, KernelKind::kInPlace};
  EXPECT_EQ(KernelsOfUpdate("dynamic-slice(a, i), dynamic_slice_sizes={4}"), two);
  EXPECT_EQ(KernelsOfUpdate("dynamic-slice(a, i), dynamic_slice_sizes={4}", "add(s, s)"), two);
  EXPECT_EQ(Fuse(R"(
  x = f32[64] parameter(0)
  i = s32[] constant(62)
  a = f32[64] negate(x)
  s = f32[4] slice(a), slice={[60:64]}
  t = f32[4] tanh(s)
  ROOT d = f32[64] dynamic-update-slice(a, t, i))")
                .kernels,
            two);
}

// x.at[i].set(x[j]), then .at[j].set(x[i]): what the second one stores is read in front of the first, or all of x would
// have to be copied for it.
TEST(Fusion, PartsAreReadBeforeTheArrayIsUpdated) {
  const Fused fused = Fuse(R"(
  x = f32[64] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  a = f32[64] negate(x)
  first = f32[4] dynamic-slice(a, i), dynamic_slice_sizes={4}
  second = f32[4] dynamic-slice(a, j), dynamic_slice_sizes={4}
  t = f32[4] tanh(second)
  b = f32[64] dynamic-update-slice(a, t, i)
  u = f32[4] tanh(first)
  ROOT c = f32[64] dynamic-update-slice(b, u, j))");
  const Instruction* last = fused.module->entry()->root();
  const Instruction* before = last->operand(HeroOf(*last).instruction->operand(0)->parameter_number());
  EXPECT_EQ(HeroOf(*before).kind, KernelKind::kInPlace);
  for (const Instruction* operand : last->operands()) {
    EXPECT_TRUE(operand == before || operand->shape().ElementCount() <= 4) << operand->name();
  }
}

// So is a part that meets what is made of the updated array.
TEST(Fusion, PartsThatMeetTheUpdatedArrayAreReadBefore) {
  const Fused fused = Fuse(R"(
  x = f32[64] parameter(0)
  i = s32[] parameter(1)
  a = f32[64] negate(x)
  old = f32[4] dynamic-slice(a, i), dynamic_slice_sizes={4}
  t = f32[4] tanh(old)
  b = f32[64] dynamic-update-slice(a, t, i)
  zero = f32[] constant(0)
  sum = f32[] reduce(b, zero), dimensions={0}, to_apply=add
  sums = f32[4] broadcast(sum), dimensions={}
  ROOT c = f32[4] subtract(old, sums))");
  for (const Instruction* operand : fused.module->entry()->root()->operands())
    EXPECT_LE(operand->shape().ElementCount(), 4) << operand->name();
}

TEST(Fusion, ReshapesOfMemoryAreBitcasts) {
  const Fused fused = Fuse(R"(
  x = f32[4,8] parameter(0)
  r = f32[32] reshape(x)
  n = f32[32] negate(r)
  ROOT o = f32[8,4] reshape(n))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
  EXPECT_TRUE(fused.Kernel(0)->Is(Opcode::kNegate));
  EXPECT_TRUE(fused.module->entry()->root()->Is(Opcode::kBitcast));
}

TEST(Fusion, IndexVectorsAreReadWhereTheyComeFrom) {
  const Fused fused = Fuse(R"(
  x = f32[3,20,24] parameter(0)
  i = s32[7] iota(), iota_dimension=0
  rows = s32[7,9,1] broadcast(i), dimensions={0}
  j = s32[9] iota(), iota_dimension=0
  columns = s32[7,9,1] broadcast(j), dimensions={1}
  at = s32[7,9,2] concatenate(rows, columns), dimensions={2}
  ROOT g = f32[3,7,9] gather(x, at), offset_dims={0}, collapsed_slice_dims={1,2}, start_index_map={1,2}, index_vector_dim=2, slice_sizes={3,1,1})");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
}

// Two columns are asked for lane by lane once they are merged with what is around them.
TEST(Fusion, MergedColumnsAreStored) {
  constexpr const char* kColumns = R"(
  x = f32[40,29,1] parameter(0)
  y = f32[40,29,1] parameter(1)
  n = f32[40,29,1] negate(x)
  c = f32[40,29,2] concatenate(n, y), dimensions={2}
)";
  const Fused merged = Fuse(std::string(kColumns) + R"(
  r = f32[40,58] reshape(c)
  s = f32[40,57] slice(r), slice={[0:40], [1:58]}
  ROOT m = f32[40,57] multiply(s, s))");
  EXPECT_THAT(merged.kernels, ElementsAre(KernelKind::kLoop, KernelKind::kLoop));
  const Fused apart = Fuse(std::string(kColumns) + R"(
  s = f32[39,29,2] slice(c), slice={[1:40], [0:29], [0:2]}
  ROOT m = f32[39,29,2] multiply(s, s))");
  EXPECT_THAT(apart.kernels, ElementsAre(KernelKind::kLoop));
}

// As many columns as a window has pixels, of one element each; of more elements each, they are read where they are.
TEST(Fusion, StacksThatOthersReadAreStored) {
  const auto kernels = [](int64_t parts, int64_t elements) {
    std::string body, names;
    for (int64_t i = 0; i < parts; ++i) {
      body += fmt::format("x{0} = f32[40,30,{1}] parameter({0})\n", i, elements);
      names += fmt::format("{}x{}", i == 0 ? "" : ", ", i);
    }
    return Fuse(body + fmt::format("c = f32[40,30,{0}] concatenate({1}), dimensions={{2}}\n"
                                   "s = f32[39,30,{0}] slice(c), slice={{[1:40], [0:30], [0:{0}]}}\n"
                                   "ROOT m = f32[39,30,{0}] multiply(s, s)\n",
                                   parts * elements, names))
        .kernels.size();
  };
  EXPECT_EQ(kernels(9, 1), 2);
  EXPECT_EQ(kernels(2, 1), 1);
  EXPECT_EQ(kernels(4, 10), 1);
}

// A polynomial of 30 coefficients in each of two layers, which share the coefficients' broadcasts.
TEST(Fusion, LayersShareConstants) {
  std::string body = "x = f32[8,16] parameter(0)\nw = f32[16,16] parameter(1)\n";
  for (int i = 0; i < 30; ++i) {
    body +=
        fmt::format("c{} = f32[] constant({})\nb{} = f32[8,16] broadcast(c{}), dimensions={{}}\n", i, 0.01 * i, i, i);
  }
  std::string last = "x";
  for (int layer = 0; layer < 2; ++layer) {
    const std::string product = fmt::format("d{}", layer);
    body += fmt::format("{} = f32[8,16] dot({}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n", product,
                        last);
    last = product;
    for (int i = 0; i < 30; ++i) {
      body += fmt::format("m{0}_{1} = f32[8,16] multiply({2}, {3})\na{0}_{1} = f32[8,16] add(m{0}_{1}, b{1})\n", layer,
                          i, last, product);
      last = fmt::format("a{}_{}", layer, i);
    }
  }
  const Fused fused = Fuse(body + fmt::format("ROOT o = f32[8,16] negate({})", last));
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kDot, KernelKind::kDot));
}

// An optimiser's step: moments and parameters of one array, which read the gradient and one another.
TEST(Fusion, LoopsThatReadOneAnotherAreOne) {
  const Fused fused = Fuse(R"(  g = f32[40,30] parameter(0)
  m0 = f32[40,30] parameter(1)
  v0 = f32[40,30] parameter(2)
  p0 = f32[40,30] parameter(3)
  c = f32[] constant(0.9)
  cb = f32[40,30] broadcast(c), dimensions={}
  md = f32[40,30] multiply(m0, cb)
  m = f32[40,30] add(md, g)
  vd = f32[40,30] multiply(v0, cb)
  gg = f32[40,30] multiply(g, g)
  v = f32[40,30] add(vd, gg)
  h = f32[40,30] exponential(v)
  q = f32[40,30] divide(m, h)
  p = f32[40,30] subtract(p0, q)
  ROOT t = (f32[40,30], f32[40,30], f32[40,30]) tuple(m, v, p))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
  EXPECT_EQ(fused.Kernel(0)->operand_count(), 4);
}

// A comparison that two loops read is no result any more once both are one kernel.
TEST(Fusion, WhatOnlyJoinedLoopsReadIsNotStored) {
  const Fused fused = Fuse(R"(  x = f32[64,32] parameter(0)
  n = f32[64,32] parameter(1)
  e = f32[64,32] exponential(x)
  l = f32[64,32] exponential(e)
  y = f32[64,32] add(l, x)
  k = f32[64,32] add(l, n)
  ROOT t = (f32[64,32], f32[64,32]) tuple(y, k))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kLoop));
  EXPECT_EQ(hlo::FlattenShape(fused.Kernel(0)->shape()).size(), 2U);
}

TEST(Fusion, LoopsStayApart) {
  // Neighbours of the other's result are read: they would be computed again.
  EXPECT_EQ(Fuse(R"(  x = f32[64] parameter(0)
  y = f32[64] exponential(x)
  z = f32[64] exponential(y)
  a = f32[32] slice(z), slice={[1:33]}
  b = f32[32] slice(z), slice={[0:32]}
  r = f32[32] subtract(a, b)
  ROOT t = (f32[64], f32[32]) tuple(z, r))")
                .kernels.size(),
            2U);
  // A product lies between.
  EXPECT_THAT(Fuse(R"(  x = f32[32,32] parameter(0)
  y = f32[32,32] exponential(x)
  d = f32[32,32] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[32,32] exponential(d)
  m = f32[32,32] dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  mm = f32[32,32] exponential(m)
  r = f32[32,32] add(mm, y)
  ROOT t = (f32[32,32], f32[32,32]) tuple(n, r))")
                  .kernels,
              UnorderedElementsAre(KernelKind::kLoop, KernelKind::kDot, KernelKind::kDot));
  // One array is all that they share.
  EXPECT_EQ(Fuse(R"(  x = f32[64,32] parameter(0)
  y = f32[64,32] exponential(x)
  z = f32[64,32] tanh(x)
  ROOT t = (f32[64,32], f32[64,32]) tuple(y, z))")
                .kernels.size(),
            2U);
}

// An array of one number that is a result too: one loop has it as its own, and the other reads it.
TEST(Fusion, LoopsThatReadASharedNumberStayInOrder) {
  Fuse(R"(  p = f32[64,64] parameter(0)
  q = f32[64,64] parameter(1)
  c = f32[] constant(3)
  b = f32[64,64] broadcast(c), dimensions={}
  s = f32[64,64] add(p, q)
  x = f32[64,64] multiply(s, b)
  r = f32[64,64] sine(q)
  v = f32[64,64] subtract(r, p)
  y = f32[64,64] divide(v, b)
  ROOT t = (f32[64,64], f32[64,64], f32[64,64]) tuple(x, y, b))");
}

// What one loop makes must have left before what the other reads can come.
TEST(Fusion, LoopsAreNotJoinedAroundWhatWaits) {
  const auto module = hlo::ParseModule(R"(HloModule m
  ENTRY e { p = f32[64,64] parameter(0)
    q = f32[64,64] parameter(1)
    a = f32[64,64] add(p, q)
    sent = token[] after-all()
    o = token[] outfeed(a, sent), outfeed_shape=f32[64,64]
    wanted = token[] after-all()
    i = (f32[64,64], token[]) infeed(wanted), control-predecessors={o}
    y = f32[64,64] get-tuple-element(i), index=0
    b = f32[64,64] multiply(p, q)
    s = f32[64,64] sine(b)
    r = f32[64,64] add(s, y)
    ROOT t = (f32[64,64], f32[64,64]) tuple(a, r) })");
  GenericContext context({}, DeviceSpec{});
  Fusion().Run(*module, context);
  hlo::VerifyModule(*module);
  EXPECT_EQ(module->entry()->PostOrder().back(), module->entry()->root());
}

// The numbers that it adds are no kernels of their own, full as its kernels are.
TEST(Fusion, KernelsStaySmall) {
  std::string body = "x = f32[64] parameter(0)\n";
  for (int i = 0; i < 40; ++i) {
    body += fmt::format("c{0} = f32[] constant({0})\nb{0} = f32[64] broadcast(c{0}), dimensions={{}}\n", i);
  }
  std::string last = "x";
  for (int i = 0; i < 400; ++i) {
    body += fmt::format("v{} = f32[64] add({}, {})\n", i, last, i % 2 == 0 ? "x" : fmt::format("b{}", i % 40));
    last = fmt::format("v{}", i);
  }
  const Fused fused = Fuse(body + fmt::format("ROOT o = f32[64] negate({})", last));
  EXPECT_GE(fused.kernels.size(), 3u);
  EXPECT_LE(fused.kernels.size(), 5u);
}

}  // namespace
}  // namespace hlorun::passes
