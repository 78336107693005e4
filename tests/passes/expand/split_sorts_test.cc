// Sorts by several keys: one stable sort a key, the last first, and comparators that are none of theirs.
#include "passes/expand/split_sorts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

// `body` of a, b: f32, c, d: s32, e, f: u8, two elements of each of three operands; few different values, so that keys
// are equal often.
std::string ProgramOf(const std::string& body, const std::string& attributes = "") {
  return fmt::format(R"(HloModule m
    order {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = s32[] parameter(2)
      d = s32[] parameter(3)
      e = u8[] parameter(4)
      f = u8[] parameter(5)
      {}
    }}
    ENTRY main {{
      x = f32[3,100] parameter(0)
      y = s32[3,100] parameter(1)
      z = u8[3,100] parameter(2)
      two = s32[] constant(2)
      twos = s32[3,100] broadcast(two), dimensions={{}}
      few = s32[3,100] remainder(y, twos)
      whole = f32[3,100] round-nearest-even(x)
      ROOT r = (f32[3,100], s32[3,100], u8[3,100]) sort(whole, few, z), dimensions={{1}}, to_apply=order{}
    }})",
                     body, attributes);
}

// How many sorts the pass makes; values stay, bit by bit where elements of equal keys keep their order.
int64_t Sorts(const std::string& body) {
  SplitSorts pass;
  RunAndCompare(ProgramOf(body, ", is_stable=true"), pass);
  return Count(*RunPass(ProgramOf(body), pass), hlo::Opcode::kSort);
}

TEST(SplitSorts, KeysInTheirOrder) {
  // As JAX writes it, either way round.
  EXPECT_EQ(Sorts(R"(less = pred[] compare(a, b), direction=LT, type=TOTALORDER
                     same = pred[] compare(a, b), direction=EQ, type=TOTALORDER
                     next = pred[] compare(c, d), direction=LT
                     both = pred[] and(same, next)
                     ROOT r = pred[] or(less, both))"),
            2);
  EXPECT_EQ(Sorts(R"(less = pred[] compare(a, b), direction=LT, type=TOTALORDER
                     same = pred[] compare(b, a), direction=EQ, type=TOTALORDER
                     next = pred[] compare(d, c), direction=LT
                     both = pred[] and(next, same)
                     ROOT r = pred[] or(both, less))"),
            2);
  // Selects, three keys, one of them a function of its element.
  EXPECT_EQ(Sorts(R"(more = pred[] compare(c, d), direction=GT
                     differ = pred[] compare(c, d), direction=NE
                     p = f32[] abs(a)
                     q = f32[] abs(b)
                     less = pred[] compare(p, q), direction=LT, type=TOTALORDER
                     same = pred[] compare(p, q), direction=EQ, type=TOTALORDER
                     next = pred[] compare(e, f), direction=LT
                     both = pred[] select(same, next, less)
                     ROOT r = pred[] select(differ, more, both))"),
            3);
}

TEST(SplitSorts, ShortRowsAndOtherDimensions) {
  const std::string two_keys = R"(less = pred[] compare(e, f), direction=LT
                                  same = pred[] compare(e, f), direction=EQ
                                  next = pred[] compare(c, d), direction=GT
                                  both = pred[] and(same, next)
                                  ROOT r = pred[] or(less, both))";
  const auto sorts = [&](const std::string& shape, const std::string& dimensions) {
    std::string text = ProgramOf(two_keys, ", is_stable=true");
    for (const auto& [from, to] : {std::pair{std::string("[3,100]"), shape}, {"dimensions={1}", dimensions}}) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    }
    SplitSorts pass;
    RunAndCompare(text, pass);
    return Count(*RunPass(text, pass), hlo::Opcode::kSort);
  };
  EXPECT_EQ(sorts("[100,7]", "dimensions={1}"), 1);
  EXPECT_EQ(sorts("[100,8]", "dimensions={1}"), 2);
  EXPECT_EQ(sorts("[100,7]", "dimensions={0}"), 2);
}

TEST(SplitSorts, OthersStay) {
  // One key.
  EXPECT_EQ(Sorts("ROOT r = pred[] compare(c, d), direction=LT"), 1);
  // A partial order: NaN is neither less than anything nor the same.
  EXPECT_EQ(Sorts(R"(less = pred[] compare(a, b), direction=LT
                     same = pred[] compare(a, b), direction=EQ
                     next = pred[] compare(c, d), direction=LT
                     both = pred[] and(same, next)
                     ROOT r = pred[] or(less, both))"),
            1);
  // Ties of something else than what is ordered.
  EXPECT_EQ(Sorts(R"(p = f32[] abs(a)
                     q = f32[] abs(b)
                     less = pred[] compare(a, b), direction=LT, type=TOTALORDER
                     same = pred[] compare(p, q), direction=EQ, type=TOTALORDER
                     next = pred[] compare(c, d), direction=LT
                     both = pred[] and(same, next)
                     ROOT r = pred[] or(less, both))"),
            1);
  // Keys of two operands, and of both sides.
  EXPECT_EQ(Sorts(R"(p = s32[] convert(e)
                     q = s32[] convert(f)
                     s = s32[] add(c, p)
                     t = s32[] add(d, q)
                     less = pred[] compare(s, t), direction=LT
                     same = pred[] compare(s, t), direction=EQ
                     next = pred[] compare(e, f), direction=LT
                     both = pred[] and(same, next)
                     ROOT r = pred[] or(less, both))"),
            1);
  // Less, or the same: no strict order.
  EXPECT_EQ(Sorts(R"(less = pred[] compare(c, d), direction=LE
                     same = pred[] compare(c, d), direction=EQ
                     next = pred[] compare(e, f), direction=LT
                     both = pred[] and(same, next)
                     ROOT r = pred[] or(less, both))"),
            1);
}

}  // namespace
}  // namespace hlorun::passes
