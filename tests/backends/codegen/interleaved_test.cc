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

TEST(Interleaved, StoresInTurns) {
  const std::string text = StoreInTurns("f", Text(2), 3);
  EXPECT_THAT(text, HasSubstr("(p + 0) = __builtin_shufflevector(__builtin_shufflevector(x0, x1, 0, 2), x2, 0, 1);"));
  EXPECT_THAT(text, HasSubstr("(p + 2) = __builtin_shufflevector(__builtin_shufflevector(x0, x1, -1, 1), x2, 2, 1);"));
  EXPECT_THAT(text, HasSubstr("(p + 4) = __builtin_shufflevector(__builtin_shufflevector(x0, x1, 3, -1), x2, 0, 3);"));
}

}  // namespace
}  // namespace hlorun::opencl
