// Conditionals of cheap, pure branches as masked selects.
#include "passes/control/conditional_to_select.h"

#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "passes/simplify/inline.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

constexpr const char* kPredicate = R"(HloModule m
  sine { p = f32[5] parameter(0)
         ROOT s = f32[5] sine(p) }
  logarithm { p = f32[5] parameter(0)
              ROOT l = f32[5] log(p) }
  ENTRY e { c = pred[] parameter(0)
            x = f32[5] parameter(1)
            ROOT r = f32[5] conditional(c, x, x), true_computation=sine, false_computation=logarithm })";

TEST(ConditionalToSelect, TakesEitherBranchBitForBit) {
  ConditionalToSelect pass;
  RunAndCompare(kPredicate, pass);
  const auto module = RunPass(kPredicate, pass);
  EXPECT_EQ(Count(*module, Opcode::kConditional), 0);
  EXPECT_EQ(Count(*module, Opcode::kSelect), 1);
}

// N-way, with tuples in tuples and an empty one; an index out of range takes the last branch.
TEST(ConditionalToSelect, IndexTakesTheLastBranchWhenOutOfRange) {
  const char* text = R"(HloModule m
    a { p = (f32[2], s32[]) parameter(0)
        x = f32[2] get-tuple-element(p), index=0
        n = s32[] get-tuple-element(p), index=1
        y = f32[2] negate(x)
        t = (s32[]) tuple(n)
        z = () tuple()
        ROOT r = (f32[2], (s32[]), ()) tuple(y, t, z) }
    b { p = f32[2] parameter(0)
        n = s32[] constant(7)
        t = (s32[]) tuple(n)
        z = () tuple()
        ROOT r = (f32[2], (s32[]), ()) tuple(p, t, z) }
    c { p = f32[2] parameter(0)
        y = f32[2] add(p, p)
        n = s32[] constant(9)
        t = (s32[]) tuple(n)
        z = () tuple()
        ROOT r = (f32[2], (s32[]), ()) tuple(y, t, z) }
    ENTRY e { i = s32[] parameter(0)
              x = f32[2] parameter(1)
              t = (f32[2], s32[]) tuple(x, i)
              ROOT r = (f32[2], (s32[]), ()) conditional(i, t, x, x), branch_computations={a, b, c} })";
  ConditionalToSelect pass;
  const auto before = Parse(text);
  const auto after = RunPass(text, pass);
  EXPECT_EQ(Count(*after, Opcode::kConditional), 0);
  for (const int64_t index : {-5, 0, 1, 2, 3, 1000}) {
    std::vector<hlo::Literal> arguments = RandomArguments(*before, Inputs::kHarsh, 1);
    arguments[0] = hlo::Literal::Scalar(hlo::ElementType::kS32, index);
    EXPECT_EQ(Difference(hlo::Evaluate(*before, arguments), hlo::Evaluate(*after, arguments), kBitwise), "") << index;
  }
}

TEST(ConditionalToSelect, LeavesWhatIsDearOrMayNotEnd) {
  const char* dear = R"(HloModule m
    big { p = f32[512,512] parameter(0)
          ROOT d = f32[512,512] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
    same { ROOT p = f32[512,512] parameter(0) }
    ENTRY e { c = pred[] parameter(0)
              x = f32[512,512] parameter(1)
              ROOT r = f32[512,512] conditional(c, x, x), true_computation=big, false_computation=same })";
  const char* endless = R"(HloModule m
    test { p = (f32[]) parameter(0)
           x = f32[] get-tuple-element(p), index=0
           one = f32[] constant(1)
           ROOT c = pred[] compare(x, one), direction=LT }
    body { p = (f32[]) parameter(0)
           x = f32[] get-tuple-element(p), index=0
           y = f32[] add(x, x)
           ROOT t = (f32[]) tuple(y) }
    loop { p = (f32[]) parameter(0)
           ROOT w = (f32[]) while(p), condition=test, body=body }
    same { ROOT p = (f32[]) parameter(0) }
    ENTRY e { c = pred[] parameter(0)
              x = f32[] parameter(1)
              t = (f32[]) tuple(x)
              ROOT r = (f32[]) conditional(c, t, t), true_computation=loop, false_computation=same })";
  ConditionalToSelect pass;
  for (const char* text : {dear, endless}) EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kConditional), 1);
  const auto module = Parse(endless);
  EXPECT_EQ(WhyNotBothBranches(*module->entry()->root()), "the loop %w may not end where its branch is not taken");
}

}  // namespace
}  // namespace hlorun::passes
