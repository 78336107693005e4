// Vectors of every n-th element: which vectors are loaded, and which of their lanes are taken.
#include <gmock/gmock.h>

#include <string>

#include "backends/opencl/codegen/interleaved.h"

namespace hlorun::opencl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr VectorText Text(int lanes) { return {"__global", "float", "floatu", lanes}; }

ir::BufferRef Array(int64_t size) { return ir::MakeBuffer("x", hlo::ElementType::kF32, size); }

ir::Expr Every(int64_t stride, const ir::Expr& first) { return ir::Ramp(first, ir::Int(stride, ir::kIndex32), 4); }

const ir::Var kRow = ir::MakeIndex("i", 0, 9);

TEST(Interleaved, KnowsThePlaceInARow) {
  const auto third = EveryNthOf(*Array(30), Every(3, ir::Ref(kRow) * 3 + 5));
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->stride, 3);
  EXPECT_EQ(third->phase, 2);
  EXPECT_EQ(ir::ToString(third->first), ir::ToString(ir::Ref(kRow) * 3 + 3));
}

TEST(Interleaved, AnyPlaceOrABrokenLastRowHasNone) {
  EXPECT_EQ(EveryNthOf(*Array(30), Every(3, ir::Ref(kRow) * 2))->phase, std::nullopt);
  EXPECT_EQ(EveryNthOf(*Array(31), Every(3, ir::Ref(kRow) * 3))->phase, std::nullopt);
}

TEST(Interleaved, LeavesOtherStridesAlone) {
  EXPECT_EQ(EveryNthOf(*Array(60), Every(1, ir::Ref(kRow))), std::nullopt);
  EXPECT_EQ(EveryNthOf(*Array(60), Every(-2, ir::Ref(kRow))), std::nullopt);
  EXPECT_EQ(EveryNthOf(*Array(60), Every(kLongestLoadedRow + 1, ir::Ref(kRow))), std::nullopt);
}

// x[1], x[4], x[7], x[10] of the twelve elements of four rows.
TEST(Interleaved, LoadsWholeRows) {
  const std::string text = LoadOfEveryNth("f", Text(4), {3, nullptr, 1});
  EXPECT_THAT(text, HasSubstr("(p + 0), v1 = *(__global const floatu*)(p + 4), v2 = *(__global const floatu*)(p + 8)"));
  EXPECT_THAT(text, HasSubstr("__builtin_shufflevector(__builtin_shufflevector(v0, v1, 1, 4, 7, -1), v2, 0, 1, 2, 6)"));
}

// x[0], x[3], x[6], x[9]: nothing behind the last of them.
TEST(Interleaved, StaysBetweenFirstAndLast) {
  const std::string text = LoadOfEveryNth("f", Text(4), {3, nullptr, std::nullopt});
  EXPECT_THAT(text, HasSubstr("(p + 0), v1 = *(__global const floatu*)(p + 6)"));
  EXPECT_THAT(text, HasSubstr("__builtin_shufflevector(v0, v1, 0, 3, 4, 7)"));
  EXPECT_THAT(text, Not(HasSubstr("v2")));
}

// Vectors that begin with a whole number of elements, plus what all lanes have.
TEST(Interleaved, KnowsRepeatedElements) {
  const auto quotient = [](const ir::Expr& first, int64_t by) {
    const ir::Expr ramp = ir::Ramp(first, ir::Int(1, ir::kIndex32), 8);
    return ir::Binary(ir::Op::kFloorDiv, ramp, ir::Splat(ir::Int(by, ir::kIndex32), 8));
  };
  const ir::Var wide = ir::MakeIndex("w", 0, 800);
  wide->factor = 24;
  const auto row = ir::Splat(ir::Ref(kRow) * 28, 8);
  const auto repeats = RepeatsOf(quotient(ir::Ref(wide), 4) + row);
  ASSERT_TRUE(repeats.has_value());
  EXPECT_EQ(repeats->times, 4);
  EXPECT_EQ(ir::ToString(repeats->first),
            ir::ToString(ir::Binary(ir::Op::kFloorDiv, ir::Ref(wide), ir::Int(4, ir::kIndex32)) + ir::Ref(kRow) * 28));
  EXPECT_FALSE(RepeatsOf(quotient(ir::Ref(wide), 3)).has_value()) << "eight lanes are no whole elements";
  EXPECT_FALSE(RepeatsOf(quotient(ir::Ref(kRow), 2)).has_value()) << "a vector may begin in the middle of one";
  EXPECT_FALSE(RepeatsOf(ir::Ramp(ir::Ref(wide), ir::Int(2, ir::kIndex32), 8)).has_value());
}

TEST(Interleaved, LoadsRepeatedElements) {
  EXPECT_THAT(
      LoadOfRepeats("f", {"__global", "float", "floatu", 4}, 2),
      HasSubstr("const float2 v = *(__global const floatu*)p;\n  return __builtin_shufflevector(v, v, 0, 0, 1, 1)"));
  EXPECT_THAT(LoadOfRepeats("f", {"__global", "float", "float", 4}, 4),
              HasSubstr("const float v = *p;\n  return (float4)v;"));
}

TEST(Interleaved, StoresInTurns) {
  const std::string text = StoreInTurns("f", Text(2), 3);
  EXPECT_THAT(text, HasSubstr("(p + 0) = __builtin_shufflevector(__builtin_shufflevector(x0, x1, 0, 2), x2, 0, 1);"));
  EXPECT_THAT(text, HasSubstr("(p + 2) = __builtin_shufflevector(__builtin_shufflevector(x0, x1, -1, 1), x2, 2, 1);"));
  EXPECT_THAT(text, HasSubstr("(p + 4) = __builtin_shufflevector(__builtin_shufflevector(x0, x1, 3, -1), x2, 0, 3);"));
}

}  // namespace
}  // namespace hlorun::opencl
