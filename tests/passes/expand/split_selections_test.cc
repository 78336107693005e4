// Argmax and its likes of long rows: which groups they become, and that ties, NaNs and first elements stay.
#include "passes/expand/split_selections.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using testing::ElementsAre;

// Of the first of the largest, as JAX writes it; of the last of the least, and of the first NaN.
constexpr const char* kFirstLargest = R"(
      more = pred[] compare(a, b), direction=GT
      is_nan = pred[] compare(a, a), direction=NE
      keeps = pred[] or(more, is_nan)
      same = pred[] compare(a, b), direction=EQ
      is_first = pred[] compare(i, j), direction=LT
      both = pred[] and(same, is_first)
      takes = pred[] or(keeps, both)
      v = f32[] select(keeps, a, b)
      w = s32[] select(takes, i, j))";
constexpr const char* kLastLeast = R"(
      less = pred[] compare(a, b), direction=LT
      is_nan = pred[] compare(a, a), direction=NE
      keeps = pred[] or(less, is_nan)
      same = pred[] compare(a, b), direction=EQ
      is_last = pred[] compare(i, j), direction=GT
      both = pred[] and(same, is_last)
      takes = pred[] or(keeps, both)
      v = f32[] select(keeps, a, b)
      w = s32[] select(takes, i, j))";
// The later of equals, whatever its number: a group that finds nothing better would give the initial value again.
constexpr const char* kLaterLargest = R"(
      less = pred[] compare(b, a), direction=GE
      v = f32[] select(less, b, a)
      w = s32[] select(less, j, i))";
// What follows a NaN wins over it, so that it matters where a group begins.
constexpr const char* kNanLoses = R"(
      less = pred[] compare(a, b), direction=GT
      same = pred[] compare(a, b), direction=EQ
      is_first = pred[] compare(i, j), direction=LT
      both = pred[] and(same, is_first)
      takes = pred[] or(less, both)
      v = f32[] select(less, a, b)
      w = s32[] select(takes, i, j))";
// Of values and numbers apart: no choice of one element.
constexpr const char* kSums = R"(
      v = f32[] add(a, b)
      w = s32[] add(i, j))";

// `few`: values that are the same often, none of them NaN.
std::string ProgramOf(const std::string& body, const std::string& shape, int64_t dimension, const std::string& result,
                      bool few) {
  return fmt::format(R"(HloModule m
    f {{
      a = f32[] parameter(0)
      i = s32[] parameter(1)
      b = f32[] parameter(2)
      j = s32[] parameter(3)
      {0}
      ROOT t = (f32[], s32[]) tuple(v, w)
    }}
    ENTRY main {{
      x = f32[{1}] parameter(0)
      whole = f32[{1}] round-nearest-even(x)
      n = s32[{1}] iota(), iota_dimension={2}
      start = f32[] constant({5})
      none = s32[] constant(3)
      ROOT r = (f32[{3}], s32[{3}]) reduce({4}, n, start, none), dimensions={{{2}}}, to_apply=f
    }})",
                     body, shape, dimension, result, few ? "whole" : "x", body == kLastLeast ? "0.5" : "-0.5");
}

// The shapes of what is reduced, first results alone.
std::vector<std::string> Reduced(const std::string& body, const std::string& shape, int64_t dimension,
                                 const std::string& result) {
  SplitSelections pass;
  for (const bool few : {false, true}) RunAndCompare(ProgramOf(body, shape, dimension, result, few), pass);
  const auto module = RunPass(ProgramOf(body, shape, dimension, result, false), pass);
  std::vector<std::string> shapes;
  for (const hlo::Instruction* op : module->entry()->PostOrder()) {
    if (op->Is(hlo::Opcode::kReduce)) shapes.push_back(op->operand(0)->shape().ToString());
  }
  return shapes;
}

TEST(SplitSelections, GroupsThatFit) {
  EXPECT_THAT(Reduced(kFirstLargest, "3,1000", 1, "3"), ElementsAre("f32[3,8,125]", "f32[3,8]"));
  EXPECT_THAT(Reduced(kFirstLargest, "2,2,672", 2, "2,2"), ElementsAre("f32[2,2,6,112]", "f32[2,2,6]"));
  EXPECT_THAT(Reduced(kLastLeast, "1024", 0, ""), ElementsAre("f32[8,128]", "f32[8]"));
}

TEST(SplitSelections, TheLastGroupBeginsEarly) {
  EXPECT_THAT(Reduced(kFirstLargest, "3,509", 1, "3"), ElementsAre("f32[3,3,128]", "f32[3,128]", "f32[3,4]"));
  EXPECT_THAT(Reduced(kLastLeast, "257", 0, ""), ElementsAre("f32[2,128]", "f32[128]", "f32[3]"));
}

TEST(SplitSelections, ManyGroupsAreGroupedAgain) {
  EXPECT_THAT(Reduced(kFirstLargest, "65536", 0, ""), ElementsAre("f32[512,128]", "f32[4,128]", "f32[4]"));
}

TEST(SplitSelections, OthersStay) {
  EXPECT_THAT(Reduced(kFirstLargest, "3,256", 1, "3"), ElementsAre("f32[3,256]"));
  EXPECT_THAT(Reduced(kFirstLargest, "1000,3", 0, "3"), ElementsAre("f32[1000,3]"));
  SplitSelections pass;
  for (const char* body : {kSums, kLaterLargest, kNanLoses})
    EXPECT_EQ(Count(*RunPass(ProgramOf(body, "3,1000", 1, "3", false), pass), hlo::Opcode::kReduce), 1) << body;
}

}  // namespace
}  // namespace hlorun::passes
