// What makes a product's operand joins it: text in, text out, and the evaluator's word that it computes the same.
#include "passes/fusion/product_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion/hero.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

// Whose kernels compute rhs, and lhs where `and_lhs` says so.
class Computes : public GenericKernelModel {
 public:
  explicit Computes(bool and_lhs = false) : and_lhs_(and_lhs) {}
  bool ComputesOperand(const hlo::Instruction&, int64_t of_dot, const hlo::Instruction&) const override {
    return of_dot == 1 || and_lhs_;
  }

 private:
  bool and_lhs_;
};

int64_t Kernels(const hlo::Module& module) {
  int64_t count = 0;
  for (const auto& instruction : module.entry()->instructions())
    count += HeroOf(*instruction).kind != KernelKind::kNone ? 1 : 0;
  return count;
}

int64_t KernelsAfter(std::string_view before, const KernelModel& kernels) {
  FuseOperands pass;
  RunAndCompare(before, pass, kBitwise, kernels);
  return Kernels(*RunPass(before, pass, kernels));
}

constexpr std::string_view kDequantised = R"(HloModule m
scale { q = s8[8,16] parameter(0)  s = f32[16] parameter(1)
  w = f32[8,16] convert(q)  wide = f32[8,16] broadcast(s), dimensions={1}  ROOT r = f32[8,16] multiply(w, wide) }
ENTRY e {
  x = f32[4,8] parameter(0)
  q = s8[8,16] parameter(1)
  s = f32[16] parameter(2)
  w = f32[8,16] fusion(q, s), kind=kLoop, calls=scale
  ROOT d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

TEST(FuseOperands, DequantisedWeightsAreComputedInTheProduct) {
  EXPECT_EQ(KernelsAfter(kDequantised, Computes()), 1);
  EXPECT_EQ(KernelsAfter(kDequantised, GenericKernelModel()), 2);  // of kernels that do not
}

constexpr std::string_view kFused = R"(HloModule m
scale { q = s8[8,16] parameter(0)  s = f32[16] parameter(1)
  w = f32[8,16] convert(q)  wide = f32[8,16] broadcast(s), dimensions={1}  ROOT r = f32[8,16] multiply(w, wide) }
bias { x = f32[4,8] parameter(0)  s = f32[16] parameter(1)  w = f32[8,16] parameter(2)
  d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wide = f32[4,16] broadcast(s), dimensions={1}  ROOT r = f32[4,16] add(d, wide) }
ENTRY e {
  h = f16[4,8] parameter(0)
  q = s8[8,16] parameter(1)
  s = f32[16] parameter(2)
  x = f32[4,8] convert(h)
  w = f32[8,16] fusion(q, s), kind=kLoop, calls=scale
  ROOT d = f32[4,16] fusion(x, s, w), kind=kOutput, calls=bias
})";

// An array that is read behind the product too is one parameter.
TEST(FuseOperands, BesideAnEpilogueAndOnBothSides) {
  EXPECT_EQ(KernelsAfter(kFused, Computes()), 2);
  EXPECT_EQ(KernelsAfter(kFused, Computes(true)), 1);
  FuseOperands pass;
  EXPECT_EQ(RunPass(kFused, pass, Computes(true))->entry()->root()->operand_count(), 3);
}

// It would be computed on both sides, whatever the kernels say of one.
TEST(FuseOperands, NotOfAMatrixByItsOwnTranspose) {
  const std::string_view covariance = R"(HloModule m
by_count { x = f32[64,8] parameter(0)
  d = f32[8,8] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  n = f32[] constant(0.125)  wide = f32[8,8] broadcast(n), dimensions={}  ROOT r = f32[8,8] multiply(d, wide) }
ENTRY e {
  x = f32[64,8] parameter(0)
  n = f32[64,8] negate(x)
  ROOT c = f32[8,8] fusion(n), kind=kOutput, calls=by_count
})";
  EXPECT_EQ(KernelsAfter(covariance, Computes(true)), 2);
}

TEST(FuseOperands, WhatOthersReadStays) {
  EXPECT_EQ(KernelsAfter(R"(HloModule m
ENTRY e {
  x = f32[4,8] parameter(0)
  q = s8[8,16] parameter(1)
  w = f32[8,16] convert(q)
  d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[4,16], f32[8,16]) tuple(d, w)
})",
                         Computes()),
            2);
  EXPECT_EQ(KernelsAfter(R"(HloModule m
ENTRY e {
  q = s8[8,8] parameter(0)
  w = f32[8,8] convert(q)
  ROOT d = f32[8,8] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
                         Computes(true)),
            2);
}

// Runs of the operand's last dimension would be gathered.
TEST(FuseOperands, NotWhatTurnsAnArray) {
  EXPECT_EQ(KernelsAfter(R"(HloModule m
ENTRY e {
  x = f32[4,8] parameter(0)
  t = f32[16,8] parameter(1)
  w = f32[8,16] transpose(t), dimensions={1,0}
  ROOT d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
                         Computes()),
            2);
}

// Behind the update that the product depends on, all of the array would have to be copied for the slice.
TEST(FuseOperands, NotASliceOfWhatIsUpdated) {
  EXPECT_EQ(KernelsAfter(R"(HloModule m
ENTRY e {
  all = f32[3,8,8] parameter(0)
  u = f32[1,8,8] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  old = f32[1,8,8] dynamic-slice(all, i, z, z), dynamic_slice_sizes={1,8,8}
  w = f32[8,8] bitcast(old)
  new = f32[3,8,8] dynamic-update-slice(all, u, i, z, z)
  x = f32[24,8] bitcast(new)
  d = f32[24,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[24,8], f32[3,8,8]) tuple(d, new)
})",
                         Computes()),
            3);
}

TEST(FuseOperands, ALayerOfMany) {
  EXPECT_EQ(KernelsAfter(R"(HloModule m
layer { all = f32[3,8,16] parameter(0)  i = s32[] parameter(1)  z = s32[] constant(0)
  one = f32[1,8,16] dynamic-slice(all, i, z, z), dynamic_slice_sizes={1,8,16}  ROOT w = f32[8,16] bitcast(one) }
ENTRY e {
  x = f32[4,8] parameter(0)
  all = f32[3,8,16] parameter(1)
  i = s32[] parameter(2)
  w = f32[8,16] fusion(all, i), kind=kLoop, calls=layer
  ROOT d = f32[4,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
                         Computes()),
            1);
}

}  // namespace
}  // namespace hlorun::passes
