// Ops on whole arrays: movement, reductions, windows, products, gather and scatter, sorting.
#include <gmock/gmock.h>

#include "tests/hlo/evaluation_text.h"

namespace hlorun::hlo {
namespace {

using testing::ElementsAre;

TEST(EvaluatorArraysTest, PadWithNegativeAndInterior) {
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[4] parameter(0)\n v = f32[] constant(9)\n"
                                    " ROOT r = f32[6] pad(x, v), padding=-1_0_1",
                                    {Floats({1, 2, 3, 4})})),
              ElementsAre(9, 2, 9, 3, 9, 4));
}

TEST(EvaluatorArraysTest, DynamicSliceClampsItsStart) {
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[4] parameter(0)\n i = s32[] parameter(1)\n"
                                    " ROOT r = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}",
                                    {Floats({1, 2, 3, 4}), Literal::Scalar(ElementType::kS32, 7)})),
              ElementsAre(3, 4));
}

TEST(EvaluatorArraysTest, UpdateLeavesTheCallersArrayAlone) {
  const Literal x = Floats({1, 2, 3});
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[3] parameter(0)\n u = f32[1] constant({7})\n i = s32[] constant(-4)\n"
                                    " ROOT r = f32[3] dynamic-update-slice(x, u, i)",
                                    {x})),
              ElementsAre(7, 2, 3));
  EXPECT_THAT(Numbers(x), ElementsAre(1, 2, 3));
}

TEST(EvaluatorArraysTest, Bf16SumsAreRoundedOnce) {
  const std::string text = R"(HloModule m
add { a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b) }
ENTRY e { x = bf16[1000] parameter(0)
  z = bf16[] constant(0)
  ROOT r = bf16[] reduce(x, z), dimensions={0}, to_apply=add })";
  EXPECT_EQ(EvaluateText(text, {Values(ElementType::kBF16, {1000}, std::vector<double>(1000, 1))}).GetDouble(0), 1000);
}

TEST(EvaluatorArraysTest, ReduceOfTwoOperandsFindsTheLargest) {
  const std::string text = R"(HloModule m
argmax { v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  p = pred[] compare(v0, v1), direction=GE
  v = f32[] select(p, v0, v1)
  i = s32[] select(p, i0, i1)
  ROOT t = (f32[], s32[]) tuple(v, i) }
ENTRY e { x = f32[2,3] parameter(0)
  k = s32[2,3] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[2], s32[2]) reduce(x, k, low, zero), dimensions={1}, to_apply=argmax })";
  const Literal result = EvaluateText(text, {Values(ElementType::kF32, {2, 3}, {1, 5, 5, 9, 2, 3})});
  EXPECT_THAT(Numbers(result.elements()[0]), ElementsAre(5, 9));
  EXPECT_THAT(Numbers(result.elements()[1]), ElementsAre(1, 0));
}

TEST(EvaluatorArraysTest, CumulativeSumByReduceWindow) {
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[4] reduce-window(x, z), window={size=4 pad=3_0}, to_apply=add })";
  EXPECT_THAT(Numbers(EvaluateText(text, {Floats({1, 2, 3, 4})})), ElementsAre(1, 3, 6, 10));
}

TEST(EvaluatorArraysTest, ScanStepsThroughAsManySlicesAsThereAre) {
  const std::string text = R"(HloModule m
step { x = f32[<=3] parameter(0)
  c = f32[<=3] parameter(1)
  s = f32[<=3] add(x, c)
  ROOT t = (f32[<=3], f32[<=3]) tuple(s, s) }
ENTRY e { x = f32[<=3,<=5] parameter(0)
  c = f32[<=3] parameter(1)
  ROOT r = (f32[<=3,<=5], f32[<=3]) scan(x, c), dimensions={1}, num_carries=1, to_apply=step })";
  const Literal two = EvaluateText(text, {Values(ElementType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}), Floats({10, 20})});
  EXPECT_THAT(two.elements()[0].shape().dimensions(), ElementsAre(2, 3));
  EXPECT_THAT(Numbers(two.elements()[0]), ElementsAre(11, 13, 16, 24, 29, 35));
  EXPECT_THAT(Numbers(two.elements()[1]), ElementsAre(16, 35));
  const Literal none = EvaluateText(text, {Values(ElementType::kF32, {2, 0}, {}), Floats({10, 20})});
  EXPECT_EQ(none.elements()[0].shape().dimension(1), 0);
  EXPECT_THAT(Numbers(none.elements()[1]), ElementsAre(10, 20));
}

TEST(EvaluatorArraysTest, SelectAndScatterSendsToTheLargest) {
  const std::string text = R"(HloModule m
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)
  s = f32[3] parameter(1)
  z = f32[] constant(0)
  ROOT r = f32[4] select-and-scatter(x, s, z), window={size=2 stride=1}, select=ge, scatter=add })";
  EXPECT_THAT(Numbers(EvaluateText(text, {Floats({1, 5, 5, 2}), Floats({10, 20, 30})})), ElementsAre(0, 30, 30, 0));
}

TEST(EvaluatorArraysTest, DotWithBatchAndTransposedOperands) {
  const Literal a = Values(ElementType::kF32, {2, 2, 1}, {1, 2, 3, 4});  // [batch, contracting, m]
  const Literal b =
      Values(ElementType::kF32, {2, 3, 2}, {1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 1, 1});  // [batch, n, contracting]
  EXPECT_THAT(Numbers(EvaluateEntry("a = f32[2,2,1] parameter(0)\n b = f32[2,3,2] parameter(1)\n"
                                    " ROOT r = f32[2,1,3] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                                    "lhs_contracting_dims={1}, rhs_contracting_dims={2}",
                                    {a, b})),
              ElementsAre(1, 2, 3, 6, 8, 7));
}

TEST(EvaluatorArraysTest, ConvolutionWithPaddingDilationAndReversal) {
  // Base dilated to 1 0 2 0 3, one zero before; kernel (10, 1) reversed: taps 1, 10.
  EXPECT_THAT(Numbers(EvaluateEntry(
                  "x = f32[1,3,1] parameter(0)\n k = f32[2,1,1] parameter(1)\n"
                  " ROOT r = f32[1,5,1] convolution(x, k), window={size=2 pad=1_0 lhs_dilate=2 "
                  "rhs_reversal=1}, dim_labels=b0f_0io->b0f",
                  {Values(ElementType::kF32, {1, 3, 1}, {1, 2, 3}), Values(ElementType::kF32, {2, 1, 1}, {10, 1})})),
              ElementsAre(10, 1, 20, 2, 30));
}

TEST(EvaluatorArraysTest, GatherClampsAndScatterSkips) {
  const Literal x = Floats({1, 2, 3});
  const Literal i = Values(ElementType::kS32, {3, 1}, {-1, 1, 5});
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[3] parameter(0)\n i = s32[3,1] parameter(1)\n"
                                    " ROOT r = f32[3] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, "
                                    "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
                                    {x, i})),
              ElementsAre(1, 2, 3));
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[3] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3] constant({10, 20, 30})
  ROOT r = f32[3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add })";
  EXPECT_THAT(Numbers(EvaluateText(text, {x, i})), ElementsAre(1, 22, 3));
}

TEST(EvaluatorArraysTest, SortIsStableAndMovesAllOperands) {
  const std::string text = R"(HloModule m
lt { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[5] parameter(0)
  k = s32[5] iota(), iota_dimension=0
  ROOT r = (f32[5], s32[5]) sort(x, k), dimensions={0}, is_stable=true, to_apply=lt })";
  const Literal result = EvaluateText(text, {Floats({2, 1, 2, 0, 1})});
  EXPECT_THAT(Numbers(result.elements()[0]), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(Numbers(result.elements()[1]), ElementsAre(3, 1, 4, 0, 2));
}

TEST(EvaluatorArraysTest, SortOfRowsWithoutElements) {
  for (const char* shape : {"[3,0]", "[0,3]"}) {
    const Literal result = EvaluateText(
        fmt::format("HloModule m\nlt {{ a = f32[] parameter(0)  b = f32[] parameter(1)\n"
                    "ROOT r = pred[] compare(a, b), direction=LT }}\n"
                    "ENTRY e {{ x = f32{0} parameter(0)\nROOT r = f32{0} sort(x), dimensions={{0}}, to_apply=lt }}",
                    shape),
        {Literal(Shape(ElementType::kF32, shape[1] == '3' ? Dims{3, 0} : Dims{0, 3}))});
    EXPECT_EQ(result.ElementCount(), 0);
  }
}

TEST(EvaluatorArraysTest, RandomBitsAreXlas) {
  // XLA:CPU's output for this state, read off jaxlib 0.10.2.
  Literal state(Shape(ElementType::kU64, {2}));
  state.SetInt(0, 0x0123456789abcdef);
  state.SetInt(1, 5);
  auto bits = [&](const std::string& algorithm) {
    const Literal result = EvaluateEntry(
        "s = u64[2] parameter(0)\n ROOT r = (u64[2], u32[2,3]) rng-bit-generator(s), "
        "algorithm=" +
            algorithm,
        {state});
    const auto words = result.elements()[1].values<uint32_t>();
    return std::vector<uint32_t>(words.begin(), words.end());
  };
  EXPECT_THAT(bits("rng_three_fry"),
              ElementsAre(0xb09d029e, 0x6ca3e732, 0xc8124617, 0x7d84f441, 0xa43b6b39, 0x2077496e));
  EXPECT_THAT(bits("rng_philox"), ElementsAre(0xdb2c142d, 0x327740ee, 0x7f0fe360, 0xa0c46ff0, 0xc56b7b3e, 0x8bc48ab8));
}

TEST(EvaluatorArraysTest, SizesSmallerThanTheBound) {
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[<=4] parameter(0)
  y = f32[<=4] add(x, x)
  z = f32[] constant(0)
  s = f32[] reduce(y, z), dimensions={0}, to_apply=add
  n = s32[] get-dimension-size(x), dimensions={0}
  ROOT t = (f32[], s32[], f32[<=4]) tuple(s, n, y) })";
  const Literal result = EvaluateText(text, {Floats({1, 2, 3})});
  EXPECT_EQ(result.elements()[0].GetDouble(0), 12);
  EXPECT_EQ(result.elements()[1].GetInt(0), 3);
  EXPECT_THAT(Numbers(result.elements()[2]), ElementsAre(2, 4, 6));
}

// What is moved to a static place from beyond the actual size is zero.
TEST(EvaluatorArraysTest, StaticPartsOfSmallerArrays) {
  const std::string text = R"(HloModule m
ENTRY e { x = f32[<=8] parameter(0)
  i = s32[] constant(1)
  a = f32[1] slice(x), slice={[7:8]}
  b = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
  c = f32[8,1] broadcast(x), dimensions={0}
  at = s32[2,1] constant({{0}, {5}})
  d = f32[2] gather(x, at), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  f = f32[8] reverse(x), dimensions={0}
  ROOT t = (f32[1], f32[4], f32[8,1], f32[2], f32[8]) tuple(a, b, c, d, f) })";
  const Literal result = EvaluateText(text, {Floats({1, 2, 3})});
  EXPECT_THAT(Numbers(result.elements()[0]), ElementsAre(0));
  EXPECT_THAT(Numbers(result.elements()[1]), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(Numbers(result.elements()[2]), ElementsAre(1, 2, 3, 0, 0, 0, 0, 0));
  EXPECT_THAT(Numbers(result.elements()[3]), ElementsAre(1, 3));
  EXPECT_THAT(Numbers(result.elements()[4]), ElementsAre(0, 0, 0, 0, 0, 3, 2, 1));
}

TEST(EvaluatorArraysTest, AStaticOperandIsCutToTheOthersSize) {
  const std::string text = R"(HloModule m
ENTRY e { x = f32[<=4] parameter(0)
  i = f32[4] iota(), iota_dimension=0
  y = f32[<=4] add(i, x)
  p = pred[<=4] compare(x, i), direction=GT
  s = f32[<=4] select(p, i, x)
  ROOT t = (f32[<=4], f32[<=4]) tuple(y, s) })";
  const Literal result = EvaluateText(text, {Floats({5, 0.5, 6})});
  EXPECT_THAT(Numbers(result.elements()[0]), ElementsAre(5, 1.5, 8));
  EXPECT_THAT(Numbers(result.elements()[1]), ElementsAre(0, 0.5, 2));
}

}  // namespace
}  // namespace hlorun::hlo
