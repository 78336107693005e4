// Rows: softmaxes, norms and whatever else reads a row again when it has been reduced, as one kernel.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/fusion/fused.h"

namespace hlorun::passes {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(RowFusion, DependentReductionsOfColumnsStayApart) {
  // The second needs the first; they are no rows, so nothing keeps them in one kernel.
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  zero = f32[] constant(0)
  r = f32[64] reduce(x, zero), dimensions={0}, to_apply=add
  b = f32[32,64] broadcast(r), dimensions={1}
  d = f32[32,64] subtract(x, b)
  q = f32[32,64] multiply(d, d)
  ROOT s = f32[64] reduce(q, zero), dimensions={0}, to_apply=add)");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction, KernelKind::kReduction));
}

TEST(RowFusion, SoftmaxIsOneRowKernel) {
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  zero = f32[] constant(0)
  inf = f32[] constant(-inf)
  m = f32[32] reduce(x, inf), dimensions={1}, to_apply=max
  mb = f32[32,64] broadcast(m), dimensions={0}
  d = f32[32,64] subtract(x, mb)
  e = f32[32,64] exponential(d)
  s = f32[32] reduce(e, zero), dimensions={1}, to_apply=add
  sb = f32[32,64] broadcast(s), dimensions={0}
  ROOT o = f32[32,64] divide(e, sb))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kRow));
  EXPECT_EQ(fused.Kernel(0)->operand_count(), 1);
}

// Each row is one group's there.
TEST(RowFusion, FewLongRowsStayApartOnGpus) {
  const auto kernels = [](int64_t rows, int64_t length, DeviceClass device_class) {
    DeviceSpec device;
    device.device_class = device_class;
    return Fuse(fmt::format(R"(
  x = f32[{0},{1}] parameter(0)
  inf = f32[] constant(-inf)
  m = f32[{0}] reduce(x, inf), dimensions={{1}}, to_apply=max
  mb = f32[{0},{1}] broadcast(m), dimensions={{0}}
  ROOT d = f32[{0},{1}] subtract(x, mb))",
                            rows, length),
                device)
        .kernels;
  };
  EXPECT_THAT(kernels(4, 20000, DeviceClass::kGpu), ElementsAre(KernelKind::kReduction, KernelKind::kLoop));
  EXPECT_THAT(kernels(4, 20000, DeviceClass::kCpu), ElementsAre(KernelKind::kRow));
  EXPECT_THAT(kernels(100, 800, DeviceClass::kGpu), ElementsAre(KernelKind::kRow));
  EXPECT_THAT(kernels(4, 1000, DeviceClass::kGpu), ElementsAre(KernelKind::kRow)) << "a launch costs more";
}

TEST(RowFusion, MaskedSoftmaxIsOneRowKernel) {
  const Fused fused = Fuse(R"(
  x = f32[2,3,8,64] parameter(0)
  m = f32[2,8,64] parameter(1)
  zero = f32[] constant(0)
  inf = f32[] constant(-inf)
  ms = f32[2,3,8,64] broadcast(m), dimensions={0,2,3}
  a = f32[2,3,8,64] add(x, ms)
  h = f32[2,3,8] reduce(a, inf), dimensions={3}, to_apply=max
  hb = f32[2,3,8,64] broadcast(h), dimensions={0,1,2}
  d = f32[2,3,8,64] subtract(a, hb)
  e = f32[2,3,8,64] exponential(d)
  s = f32[2,3,8] reduce(e, zero), dimensions={3}, to_apply=add
  sb = f32[2,3,8,64] broadcast(s), dimensions={0,1,2}
  ROOT o = f32[2,3,8,64] divide(e, sb))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kRow));
}

// What the variance is taken of is the mean's own reduction's result, after a chain too long to be computed twice.
TEST(RowFusion, NormalisationOfALongChainIsOneRowKernel) {
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  y = f32[32,64] parameter(1)
  z = f32[32,64] parameter(2)
  w = f32[64,64] parameter(3)
  zero = f32[] constant(0)
  p = f32[32,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  py = f32[32,64] add(p, y)
  r = f32[32,64] add(py, z)
  s = f32[32] reduce(r, zero), dimensions={1}, to_apply=add
  sb = f32[32,64] broadcast(s), dimensions={0}
  d = f32[32,64] subtract(r, sb)
  q = f32[32,64] multiply(d, d)
  v = f32[32] reduce(q, zero), dimensions={1}, to_apply=add
  vr = f32[32] rsqrt(v)
  vb = f32[32,64] broadcast(vr), dimensions={0}
  ROOT o = f32[32,64] multiply(d, vb))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kDot, KernelKind::kRow));
}

TEST(RowFusion, RowKernelAlsoReturnsWhatOthersRead) {
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  zero = f32[] constant(0)
  m = f32[32] reduce(x, zero), dimensions={1}, to_apply=add
  mb = f32[32,64] broadcast(m), dimensions={0}
  d = f32[32,64] subtract(x, mb)
  ROOT o = (f32[32,64], f32[32]) tuple(d, m))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kRow));
  EXPECT_TRUE(fused.Kernel(0)->shape().IsTuple());
}

TEST(RowFusion, RowsAreNotJoinedAroundAProduct) {
  // m -> dot -> d: m must be in memory before the dot, and d after it.
  const Fused fused = Fuse(R"(
  x = f32[32,64] parameter(0)
  w = f32[32,32] parameter(1)
  zero = f32[] constant(0)
  m = f32[32] reduce(x, zero), dimensions={1}, to_apply=add
  q = f32[32] dot(w, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  qb = f32[32,64] broadcast(q), dimensions={0}
  mb = f32[32,64] broadcast(m), dimensions={0}
  d = f32[32,64] subtract(x, mb)
  ROOT o = f32[32,64] add(d, qb))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kReduction, KernelKind::kDot, KernelKind::kLoop));
}

// Attention over the pixels [h, w] of images, biased by relative positions in h and in w: rows are [h, w], although the
// product and the softmax have them as one dimension, and the scaled product is read as it lies in memory.
TEST(RowFusion, SoftmaxOfRelativePositionsIsOneRowKernel) {
  const Fused fused = Fuse(R"(
  q = f32[4,24,8] parameter(0)
  k = f32[4,24,8] parameter(1)
  by_h = f32[4,4,6,4] parameter(2)
  by_w = f32[4,4,6,6] parameter(3)
  zero = f32[] constant(0)
  inf = f32[] constant(-inf)
  scale = f32[] constant(0.125)
  p = f32[4,24,24] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
  cs = f32[4,24,24] broadcast(scale), dimensions={}
  ps = f32[4,24,24] multiply(p, cs)
  r = f32[4,4,6,4,6] reshape(ps)
  bh = f32[4,4,6,4,6] broadcast(by_h), dimensions={0,1,2,3}
  bw = f32[4,4,6,4,6] broadcast(by_w), dimensions={0,1,2,4}
  a = f32[4,4,6,4,6] add(r, bh)
  x = f32[4,4,6,4,6] add(a, bw)
  xr = f32[4,24,24] reshape(x)
  m = f32[4,24] reduce(xr, inf), dimensions={2}, to_apply=max
  ms = f32[4,4,6] reshape(m)
  mb = f32[4,4,6,4,6] broadcast(ms), dimensions={0,1,2}
  d = f32[4,4,6,4,6] subtract(x, mb)
  e = f32[4,4,6,4,6] exponential(d)
  er = f32[4,24,24] reshape(e)
  s = f32[4,24] reduce(er, zero), dimensions={2}, to_apply=add
  ss = f32[4,4,6] reshape(s)
  sb = f32[4,4,6,4,6] broadcast(ss), dimensions={0,1,2}
  ROOT o = f32[4,4,6,4,6] divide(e, sb))");
  EXPECT_THAT(fused.kernels, ElementsAre(KernelKind::kDot, KernelKind::kRow));
  EXPECT_EQ(fused.Kernel(1)->operand_count(), 3);
}

// Behind a reshape that can sink no further stays what is more than one array and numbers.
TEST(RowFusion, OnlyScaledProductsAreScaledBehindTheirReshape) {
  const auto kernels = [](const std::string& made) {
    return Fuse(R"(
  x = f32[24,8] parameter(0)
  w = f32[8,16] parameter(1)
  v = f32[16] parameter(2)
  t = f32[6] parameter(3)
  two = f32[] constant(2)
  p = f32[24,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[24,16] broadcast(v), dimensions={1}
  twos = f32[24,16] broadcast(two), dimensions={}
  u = f32[6,64] broadcast(t), dimensions={0}
)" + made)
        .kernels;
  };
  EXPECT_THAT(kernels(R"(
  a = f32[24,16] add(p, b)
  s = f32[24,16] multiply(a, twos)
  r = f32[6,64] reshape(s)
  ROOT o = f32[6,64] add(r, u))"),
              ElementsAre(KernelKind::kDot, KernelKind::kLoop));
  EXPECT_THAT(kernels(R"(
  s = f32[24,16] multiply(p, twos)
  r = f32[6,64] reshape(s)
  d = f32[6,64] add(r, r)
  o = f32[6,64] add(d, u)
  ROOT e = (f32[6,64], f32[24,16]) tuple(o, b))"),
              UnorderedElementsAre(KernelKind::kDot, KernelKind::kLoop, KernelKind::kLoop));
  // A predicate of a product is no array of the values' dimensions.
  EXPECT_THAT(Fuse(R"(
  x = f32[1,8] parameter(0)
  w = f32[8,1] parameter(1)
  a = f32[4] parameter(2)
  b = f32[4] parameter(3)
  p = f32[1,1] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = pred[1,1] is-finite(p)
  r = pred[] reshape(f)
  ROOT s = f32[4] select(r, a, b))")
                  .kernels,
              Contains(KernelKind::kDot));
}

// What is read behind its reshape, too, is reduced there.
TEST(RowFusion, WhatIsReadInBothFormsIsReducedAsItWas) {
  const Fused fused = Fuse(R"(
  z = f32[4,8,8] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4,8,8] broadcast(zero), dimensions={}
  x = f32[4,8,8] sqrt(z)
  y = f32[4,8,8] maximum(x, zeros)
  f = f32[4,64] reshape(x)
  m = f32[4] reduce(f, zero), dimensions={1}, to_apply=add
  mb = f32[4,64] broadcast(m), dimensions={0}
  d = f32[4,64] subtract(f, mb)
  ROOT t = (f32[4,64], f32[4,8,8]) tuple(d, y))");
  ASSERT_EQ(fused.kernels.at(1), KernelKind::kReduction);
  EXPECT_EQ(HeroOf(*fused.Kernel(1)).instruction->operand(0)->shape().ToString(false), "f32[4,64]");
}

}  // namespace
}  // namespace hlorun::passes
