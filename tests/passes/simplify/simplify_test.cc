// The passes of simplify/ and layout/ that are not rewrite rules.
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "passes/generic_context.h"
#include "passes/layout/row_major.h"
#include "passes/simplify/constant_folding.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/inline.h"
#include "passes/simplify/markers.h"
#include "passes/simplify/unwrap_async.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

TEST(CommonSubexpressions, MergesInstructionsAndReducers) {
  constexpr const char* kText = R"(HloModule m
    f { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] add(a, b) }
    g { c = f32[] parameter(0)
        d = f32[] parameter(1)
        ROOT s = f32[] add(c, d) }
    ENTRY e { x = f32[4,3] parameter(0)
              z = f32[] constant(0)
              y = f32[] constant(0)
              p = f32[4] reduce(x, z), dimensions={1}, to_apply=f
              q = f32[4] reduce(x, y), dimensions={1}, to_apply=g
              ROOT t = f32[4] multiply(p, q) })";
  CommonSubexpressions pass;
  RunAndCompare(kText, pass);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kReduce), 1);
}

TEST(CommonSubexpressions, KeepsEffectsApart) {
  constexpr const char* kText = R"(
    a = f32[] constant(0)
    b = f32[] constant(1)
    x = f32[4] rng(a, b), distribution=rng_uniform
    y = f32[4] rng(a, b), distribution=rng_uniform
    ROOT t = f32[4] subtract(x, y))";
  CommonSubexpressions pass;
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kRng), 2);
}

TEST(ConstantFolding, FoldsSmallThingsOnly) {
  constexpr const char* kText = R"(
    a = f32[2] constant({1, 2})
    b = f32[2] constant({3, 5})
    s = f32[2] add(a, b)
    w = f32[1000,2] broadcast(s), dimensions={1}
    ROOT t = (f32[2], f32[1000,2]) tuple(s, w))";
  ConstantFolding pass;
  RunAndCompare(kText, pass);
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(Count(*module, Opcode::kAdd), 0);
  EXPECT_EQ(Count(*module, Opcode::kBroadcast), 1);
}

TEST(ConstantFolding, GivesUpAtTheStepLimit) {
  const auto module = Parse(R"(
    a = f32[4] constant({1, 2, 3, 4})
    ROOT s = f32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0})");
  CompileOptions options;
  options.fold_step_limit = 1;
  GenericContext one_step(options);
  EXPECT_FALSE(ConstantFolding().Run(*module, one_step));
  options.fold_step_limit = 1000;
  GenericContext many_steps(options);
  EXPECT_TRUE(ConstantFolding().Run(*module, many_steps));
  EXPECT_EQ(module->entry()->root()->literal().GetDouble(0), 30);
}

// By what average pooling divides where padding does not count.
TEST(ConstantFolding, CountsElementsOfWindows) {
  const auto module = Parse(R"(HloModule m
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY e {
      one = f32[] constant(1)
      zero = f32[] constant(0)
      ones = f32[3,4] broadcast(one), dimensions={}
      ROOT n = f32[3,4] reduce-window(ones, zero), window={size=3x3 pad=1_1x1_1}, to_apply=add
    })");
  GenericContext context;
  EXPECT_TRUE(ConstantFolding().Run(*module, context));
  const hlo::Literal& counts = module->entry()->root()->literal();
  std::vector<double> values;
  for (int64_t i = 0; i < counts.ElementCount(); ++i) values.push_back(counts.GetDouble(i));
  EXPECT_EQ(values, (std::vector<double>{4, 6, 6, 4, 6, 9, 9, 6, 4, 6, 6, 4}));
}

TEST(ConstantFolding, LeavesManyWindowsToTheDevice) {
  const auto module = Parse(R"(HloModule m
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY e {
      one = f32[] constant(1)
      zero = f32[] constant(0)
      ones = f32[300,300] broadcast(one), dimensions={}
      ROOT n = f32[300,300] reduce-window(ones, zero), window={size=3x3 pad=1_1x1_1}, to_apply=add
    })");
  GenericContext context;
  EXPECT_FALSE(ConstantFolding().Run(*module, context));
}

TEST(Inline, CallsInCallsAndLoopsKeepOneCaller) {
  constexpr const char* kText = R"(HloModule m
    condition { p = (s32[], f32[]) parameter(0)
                i = s32[] get-tuple-element(p), index=0
                n = s32[] constant(3)
                ROOT c = pred[] compare(i, n), direction=LT }
    body { p = (s32[], f32[]) parameter(0)
           i = s32[] get-tuple-element(p), index=0
           x = f32[] get-tuple-element(p), index=1
           one = s32[] constant(1)
           j = s32[] add(i, one)
           y = f32[] multiply(x, x)
           ROOT t = (s32[], f32[]) tuple(j, y) }
    inner { x = f32[] parameter(0)
            z = s32[] constant(0)
            t = (s32[], f32[]) tuple(z, x)
            w = (s32[], f32[]) while(t), condition=condition, body=body
            ROOT r = f32[] get-tuple-element(w), index=1 }
    outer { x = f32[] parameter(0)
            a = f32[] call(x), to_apply=inner
            ROOT r = f32[] call(a), to_apply=inner }
    ENTRY e { x = f32[] parameter(0)
              ROOT r = f32[] call(x), to_apply=outer })";
  InlineCalls pass;
  RunAndCompare(kText, pass, kRounding);
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(Count(*module, Opcode::kCall), 0);
  std::vector<const hlo::Computation*> bodies;
  for (const auto& instruction : module->entry()->instructions()) {
    if (instruction->Is(Opcode::kWhile)) bodies.push_back(instruction->while_body());
  }
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_NE(bodies[0], bodies[1]);
}

TEST(Inline, FusionsOfOptimizedModules) {
  constexpr const char* kText = R"(HloModule m, is_scheduled=true
    fused { a = f32[4] parameter(0)
            b = f32[4] negate(a)
            ROOT r = f32[4] exponential(b) }
    ENTRY e { x = f32[4] parameter(0)
              ROOT r = f32[4] fusion(x), kind=kLoop, calls=fused })";
  InlineFusions pass;
  RunAndCompare(kText, pass);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kFusion), 0);
}

TEST(UnwrapAsync, EachKindOfPair) {
  constexpr const char* kText = R"(HloModule m
    f { a = f32[4] parameter(0)
        ROOT r = f32[4] negate(a) }
    ENTRY e { x = f32[4] parameter(0)
              s = ((f32[4]), f32[4], u32[]) async-start(x), calls=f
              d = f32[4] async-done(s)
              cs = (f32[4], f32[4], u32[]) copy-start(d)
              ROOT cd = f32[4] copy-done(cs) })";
  UnwrapAsync pass;
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(Count(*module, Opcode::kAsyncStart) + Count(*module, Opcode::kCopyStart), 0);
  EXPECT_EQ(Count(*module, Opcode::kNegate), 1);
  EXPECT_EQ(Count(*module, Opcode::kCopy), 1);
}

TEST(RemoveMarkers, PassesValuesOn) {
  constexpr const char* kText = R"(
    x = f32[4] parameter(0)
    s = f32[4] custom-call(x), custom_call_target="Sharding", sharding={replicated}
    b = f32[4] opt-barrier(s)
    ROOT r = f32[4] negate(b))";
  RemoveMarkers pass;
  RunAndCompare(kText, pass);
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(module->entry()->instruction_count(), 2);
}

TEST(RemoveMarkers, DropsTheOrderOfBuffersButNotOfEffects) {
  constexpr const char* kText = R"(
    x = f32[4] parameter(0)
    c = f32[4] copy(x)
    d = f32[4] copy(c), control-predecessors={c}
    p = f32[4] custom-call(d), custom_call_target="print", custom_call_has_side_effect=true, control-predecessors={d}
    q = f32[4] custom-call(d), custom_call_target="print", custom_call_has_side_effect=true, control-predecessors={p}
    ROOT r = f32[4] exponential(d))";
  RemoveMarkers pass;
  const auto module = RunPass(kText, pass);
  for (const auto& instruction : module->entry()->instructions()) {
    EXPECT_EQ(instruction->control_predecessors().size(), instruction->name() == "q" ? 1u : 0u) << instruction->name();
  }
}

TEST(DeadCode, KeepsEffects) {
  constexpr const char* kText = R"(
    x = f32[4] parameter(0)
    d = f32[4] negate(x)
    e = f32[4] custom-call(x), custom_call_target="print", custom_call_has_side_effect=true
    ROOT r = f32[4] exponential(x))";
  DeadCode pass;
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(Count(*module, Opcode::kNegate), 0);
  EXPECT_EQ(Count(*module, Opcode::kCustomCall), 1);
}

// x{0,1} of [2,3] lies in memory as [3,2] row-major; the bitcasts read it so.
TEST(RowMajor, BitcastsBecomeMoves) {
  const auto before = Parse(R"(
    x = f32[2,3]{0,1} parameter(0)
    b = f32[3,2]{1,0} bitcast(x)
    ROOT c = f32[6]{0} bitcast(b))");
  AssignRowMajorLayouts pass;
  const auto module = RunPass(hlo::PrintModule(*before), pass);
  EXPECT_EQ(Count(*module, Opcode::kBitcast), 0);
  const auto arguments = RandomArguments(*module, Inputs::kMild, 1);
  const hlo::Literal result = hlo::Evaluate(*module, arguments);
  const auto x = arguments[0].values<float>();
  const auto y = result.values<float>();
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(y[j * 2 + i], x[i * 3 + j]);
  }
}

}  // namespace
}  // namespace hlorun::passes
