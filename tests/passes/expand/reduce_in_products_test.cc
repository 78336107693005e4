// Products that one reduction reads: groups of their rows, in either direction, and what stays as it is.
#include "passes/expand/reduce_in_products.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion/stored_result.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

class KernelsOfRows : public GenericKernelModel {
 public:
  int64_t RowsFinishedTogether(const hlo::Instruction&) const override { return 32; }
};

constexpr const char* kHeader = R"(HloModule m
    add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }
    largest { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] maximum(a, b) }
    mean { a = f32[] parameter(0)
           b = f32[] parameter(1)
           c = f32[] add(a, b)
           half = f32[] constant(0.5)
           ROOT d = f32[] multiply(c, half) }
    first_least { a = f32[] parameter(0)
                  i = s32[] parameter(1)
                  b = f32[] parameter(2)
                  j = s32[] parameter(3)
                  less = pred[] compare(a, b), direction=LT
                  same = pred[] compare(a, b), direction=EQ
                  before = pred[] compare(i, j), direction=LT
                  earlier = pred[] and(same, before)
                  is_nan = pred[] compare(a, a), direction=NE
                  keeps = pred[] or(less, is_nan)
                  takes = pred[] or(keeps, earlier)
                  x = f32[] select(keeps, a, b)
                  n = s32[] select(takes, i, j)
                  ROOT t = (f32[], s32[]) tuple(x, n) }
    last_set { a = f32[] parameter(0)
               i = pred[] parameter(1)
               b = f32[] parameter(2)
               j = pred[] parameter(3)
               x = f32[] select(j, b, a)
               n = pred[] select(j, j, i)
               ROOT t = (f32[], pred[]) tuple(x, n) }
    add_complex { a = c64[] parameter(0)
                  b = c64[] parameter(1)
                  ROOT c = c64[] add(a, b) }
    )";

// `body` of d: f32[1040,530], the product of x: f32[1040,3] and y: f32[530,3].
std::string ProgramOf(const std::string& body) {
  return fmt::format(R"({}
    ENTRY e {{
      x = f32[1040,3] parameter(0)
      y = f32[530,3] parameter(1)
      u = f32[1040] parameter(2)
      v = f32[530] parameter(3)
      w = f32[1040,530] parameter(4)
      start = f32[] constant(0.25)
      d = f32[1040,530] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
      {}
    }})",
                     kHeader, body);
}

// The shapes of what groups of rows become, after the pass, which keeps the values.
std::vector<std::string> Groups(const std::string& body) {
  ReduceInProducts pass;
  const KernelsOfRows kernels;
  RunAndCompare(ProgramOf(body), pass, kRounding, kernels);
  const auto module = RunPass(ProgramOf(body), pass, kernels);
  std::vector<std::string> groups;
  for (const auto& op : module->entry()->instructions()) {
    if (RowsOfGroup(*op) == 0) continue;
    groups.push_back(op->shape().ToString());
    EXPECT_EQ(RowsOfGroup(*op), 32);
  }
  return groups;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ReduceInProducts, GroupsOfRows) {
  EXPECT_THAT(Groups("ROOT r = f32[530] reduce(d, start), dimensions={0}, to_apply=add"), ElementsAre("f32[33,530]"));
  EXPECT_THAT(Groups(R"(e = f32[1040,530] subtract(w, d)
                        f = f32[1040,530] multiply(e, e)
                        ROOT r = f32[530] reduce(f, start), dimensions={0}, to_apply=largest)"),
              ElementsAre("f32[33,530]"));
  EXPECT_THAT(Groups("ROOT r = f32[] reduce(d, start), dimensions={0,1}, to_apply=add"), ElementsAre("f32[33,530]"));
}

TEST(ReduceInProducts, ColumnsOfExchangedOperands) {
  EXPECT_THAT(Groups(R"(us = f32[1040,530] broadcast(u), dimensions={0}
                        vs = f32[1040,530] broadcast(v), dimensions={1}
                        sums = f32[1040,530] add(us, vs)
                        e = f32[1040,530] subtract(sums, d)
                        z = f32[] constant(0.5)
                        low = f32[1040,530] broadcast(z), dimensions={}
                        f = f32[1040,530] clamp(low, e, sums)
                        ROOT r = f32[1040] reduce(f, start), dimensions={1}, to_apply=add)"),
              ElementsAre("f32[17,1040]"));
  EXPECT_THAT(Groups(R"(numbers = s32[1040,530] iota(), iota_dimension=1
                        none = s32[] constant(600)
                        ROOT r = (f32[1040], s32[1040]) reduce(d, numbers, start, none), dimensions={1}, to_apply=first_least)"),
              ElementsAre("(f32[17,1040], s32[17,1040])"));
}

TEST(ReduceInProducts, OthersStay) {
  // Read by others, too.
  EXPECT_THAT(Groups(R"(r = f32[530] reduce(d, start), dimensions={0}, to_apply=add
                        ROOT t = (f32[1040,530], f32[530]) tuple(d, r))"),
              IsEmpty());
  // An array of the product's size would have to be transposed.
  EXPECT_THAT(Groups(R"(e = f32[1040,530] subtract(w, d)
                        ROOT r = f32[1040] reduce(e, start), dimensions={1}, to_apply=add)"),
              IsEmpty());
  // No neutral element.
  EXPECT_THAT(Groups("ROOT r = f32[530] reduce(d, start), dimensions={0}, to_apply=mean"), IsEmpty());
  // What a kernel of products does not finish its result with: complex numbers, and what lies at other places.
  EXPECT_THAT(Groups(R"(c = c64[1040,530] convert(d)
                        none = c64[] constant((0, 0))
                        ROOT r = c64[530] reduce(c, none), dimensions={0}, to_apply=add_complex)"),
              IsEmpty());
  EXPECT_THAT(Groups(R"(back = f32[1040,530] reverse(w), dimensions={0}
                        e = f32[1040,530] add(d, back)
                        ROOT r = f32[530] reduce(e, start), dimensions={0}, to_apply=add)"),
              IsEmpty());
  // Two products.
  EXPECT_THAT(Groups(R"(c = f32[1040,530] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
                        e = f32[1040,530] multiply(c, d)
                        ROOT r = f32[530] reduce(e, start), dimensions={0}, to_apply=add)"),
              IsEmpty());
  // No kernel finishes rows together.
  ReduceInProducts pass;
  const auto module = RunPass(ProgramOf("ROOT r = f32[530] reduce(d, start), dimensions={0}, to_apply=add"), pass);
  EXPECT_EQ(Count(*module, hlo::Opcode::kReduceWindow), 0);
}

// Another start for each group may show in the result; and so may another order where values are equal.
TEST(ReduceInProducts, SeveralResultsByTheirOrder) {
  EXPECT_THAT(Groups(R"(is_set = pred[1040,530] compare(d, w), direction=GT
                        yes = pred[] constant(true)
                        ROOT r = (f32[530], pred[530]) reduce(d, is_set, start, yes), dimensions={0}, to_apply=last_set)"),
              IsEmpty());
  EXPECT_THAT(Groups(R"(numbers = s32[1040,530] iota(), iota_dimension=1
                        none = s32[] constant(600)
                        ROOT r = (f32[], s32[]) reduce(d, numbers, start, none), dimensions={0,1}, to_apply=first_least)"),
              IsEmpty());
}

// Nothing is left of a product of exchanged operands that no kernel wants.
TEST(ReduceInProducts, LeavesNothingBehind) {
  ReduceInProducts pass;
  const auto module = RunPass(ProgramOf("ROOT r = f32[1040] reduce(d, start), dimensions={1}, to_apply=add"), pass);
  EXPECT_EQ(Count(*module, hlo::Opcode::kDot), 1);
}

TEST(RowsOfGroup, OneWindowAfterAnother) {
  const auto rows = [](const std::string& window) {
    const auto module = Parse(fmt::format(R"({}
    ENTRY e {{
      x = f32[4,70,5] parameter(0)
      start = f32[] constant(0)
      ROOT r = reduce-window(x, start), window={{{}}}, to_apply=add
    }})",
                                          kHeader, window));
    return RowsOfGroup(*module->entry()->root());
  };
  EXPECT_EQ(rows("size=1x32x1 stride=1x32x1 pad=0_0x0_26x0_0"), 32);
  EXPECT_EQ(rows("size=1x35x1 stride=1x35x1"), 35);
  EXPECT_EQ(rows("size=1x32x1 stride=1x32x1"), 0);  // leaves the last rows out
  EXPECT_EQ(rows("size=1x35x1 stride=1x7x1"), 0);
  EXPECT_EQ(rows("size=1x35x1 stride=1x35x1 rhs_reversal=0x1x0"), 0);
  EXPECT_EQ(rows("size=2x35x1 stride=2x35x1"), 0);
  EXPECT_EQ(rows("size=1x1x5 stride=1x1x5"), 0);
  EXPECT_EQ(rows("size=1x1x1"), 0);  // nothing is reduced
}

}  // namespace
}  // namespace hlorun::passes
