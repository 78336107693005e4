// What tells apart instructions of which kernels are made, and what does not.
#include "passes/fusion/meaning.h"

#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

const std::string kText = R"(HloModule m
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)
       b = f32[] parameter(1)
       ROOT c = f32[] maximum(a, b) }
first { p = f32[4,8] parameter(0)
        zero = f32[] constant(0)
        ROOT s = f32[4] reduce(p, zero), dimensions={1}, to_apply=add }
renamed { q = f32[4,8] parameter(0)
          none = f32[] constant(0)
          ROOT sum = f32[4] reduce(q, none), dimensions={1}, to_apply=add }
other_start { p = f32[4,8] parameter(0)
              one = f32[] constant(1)
              ROOT s = f32[4] reduce(p, one), dimensions={1}, to_apply=add }
other_reducer { p = f32[4,8] parameter(0)
                zero = f32[] constant(0)
                ROOT s = f32[4] reduce(p, zero), dimensions={1}, to_apply=most }
ENTRY e {
  x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  z = f32[8,4] parameter(2)
  f = f32[4] fusion(x), kind=kInput, calls=first
  same = f32[4] fusion(y), kind=kInput, calls=renamed
  start = f32[4] fusion(x), kind=kInput, calls=other_start
  reducer = f32[4] fusion(x), kind=kInput, calls=other_reducer
  config = f32[4] fusion(x), kind=kInput, calls=first, backend_config={"region":"sequential"}
  r = f32[32] reshape(x)
  same_r = f32[32] reshape(y)
  other_r = f32[32] reshape(z)
  ROOT t = (f32[4], f32[4], f32[4], f32[4], f32[4], f32[32], f32[32], f32[32]) tuple(f, same, start, reducer, config, r, same_r, other_r)
})";

TEST(Meaning, FollowsWhatIsDoneAndNotNames) {
  const auto module = Parse(kText);
  std::vector<std::string> of;
  for (const hlo::Instruction* operand : module->entry()->root()->operands()) of.push_back(MeaningOf(*operand));
  EXPECT_EQ(of[0], of[1]);
  for (const size_t other : {2, 3, 4}) EXPECT_NE(of[0], of[other]) << other;
  EXPECT_EQ(of[5], of[6]);
  EXPECT_NE(of[5], of[7]);
}

}  // namespace
}  // namespace hlorun::passes
