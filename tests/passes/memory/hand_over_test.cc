// Last values of carried scalars, handed on by the region that makes the next ones: module in, module out.
#include "passes/memory/hand_over.h"

#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "passes/fusion/hero.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/memory/planned_module.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

// A backend whose regions store their scalars when they have read everything.
class StoresLast : public GenericKernelModel {
 public:
  bool MayShareBuffer(const hlo::Instruction& instruction, int64_t operand, int64_t leaf) const override {
    if (HeroOf(instruction).kind != KernelKind::kRegion)
      return GenericKernelModel::MayShareBuffer(instruction, operand, leaf);
    return instruction.operand(operand)->shape().SameAs(
        hlo::FlattenShape(instruction.shape())[static_cast<size_t>(leaf)]);
  }
};

// `reads`: what the last instructions of the body read, which need the region's other result.
std::string Loop(const std::string& reads) {
  return R"(HloModule m
scalars {
  i = s32[] parameter(0)
  s = f32[] parameter(1)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = f32[] constant(2)
  t = f32[] multiply(s, two)
  ROOT r = (s32[], f32[]) tuple(j, t)
}
cond {
  p = (s32[], f32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  s = f32[] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  next = (s32[], f32[]) fusion(i, s), kind=kCustom, calls=scalars, backend_config={"region":"sequential"}
  j = s32[] get-tuple-element(next), index=0
  t = f32[] get-tuple-element(next), index=1
)" + reads +
         R"(
  ROOT r = (s32[], f32[], f32[8]) tuple(j, t, y)
}
ENTRY e {
  z = s32[] constant(0)
  s = f32[] parameter(0)
  x = f32[8] parameter(1)
  init = (s32[], f32[], f32[8]) tuple(z, s, x)
  ROOT w = (s32[], f32[], f32[8]) while(init), condition=cond, body=body
})";
}

struct Outcome {
  int64_t copies = 0;   // in the loop
  int64_t results = 0;  // of the region
};

// Runs the memory passes; what the module computes stays what it was.
Outcome After(const std::string& text) {
  const auto before = Parse(text), after = Parse(text);
  const DeviceSpec device;
  const CompileOptions options;
  const StoresLast kernels;
  PassContext context{device, options, kernels, {}};
  FlattenControl().Run(*after, context);
  Schedule().Run(*after, context);
  CopyInsertion().Run(*after, context);
  const auto arguments = RandomArguments(*before, Inputs::kMild, 1);
  const hlo::Literal expected = hlo::Evaluate(*before, arguments), got = hlo::Evaluate(*after, arguments);
  EXPECT_TRUE(expected.elements() == got.elements());
  Outcome outcome;
  for (const auto& computation : after->computations()) {
    if (computation.get() == after->entry() || computation->is_fusion_computation()) continue;
    for (const auto& instruction : computation->instructions()) {
      outcome.copies += instruction->Is(Opcode::kCopy) ? 1 : 0;
      if (HeroOf(*instruction).kind == KernelKind::kRegion) outcome.results = hlo::LeafCount(instruction->shape());
    }
  }
  return outcome;
}

TEST(HandOver, ALaterReaderGetsTheLastValueFromTheRegion) {
  const Outcome outcome = After(Loop(R"(
  f = f32[] convert(i)
  g = f32[] add(f, t)
  gs = f32[8] broadcast(g), dimensions={}
  y = f32[8] add(x, gs))"));
  EXPECT_EQ(outcome.copies, 0);
  EXPECT_EQ(outcome.results, 3);
}

TEST(HandOver, BothCarriesMayBeReadLater) {
  const Outcome outcome = After(Loop(R"(
  f = f32[] convert(i)
  g = f32[] add(f, t)
  h = f32[] multiply(g, s)
  hs = f32[8] broadcast(h), dimensions={}
  y = f32[8] add(x, hs))"));
  EXPECT_EQ(outcome.copies, 0);
  EXPECT_EQ(outcome.results, 4);
}

// A lone counter, which another carried value takes over and somebody reads later on.
TEST(HandOver, AKernelOfScalarsBecomesARegion) {
  const Outcome outcome = After(R"(HloModule m
counter {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one)
}
cond {
  p = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=2
  j = s32[] fusion(i), kind=kLoop, calls=counter
  f = s32[] multiply(i, j)
  g = f32[] convert(f)
  gs = f32[8] broadcast(g), dimensions={}
  y = f32[8] add(x, gs)
  ROOT r = (s32[], s32[], f32[8]) tuple(j, i, y)
}
ENTRY e {
  z = s32[] constant(0)
  k = s32[] parameter(0)
  x = f32[8] parameter(1)
  init = (s32[], s32[], f32[8]) tuple(z, k, x)
  ROOT w = (s32[], s32[], f32[8]) while(init), condition=cond, body=body
})");
  EXPECT_EQ(outcome.copies, 0);
  EXPECT_EQ(outcome.results, 2);
}

TEST(HandOver, NothingChangesWithoutALaterReader) {
  const Outcome outcome = After(Loop(R"(
  ts = f32[8] broadcast(t), dimensions={}
  y = f32[8] add(x, ts))"));
  EXPECT_EQ(outcome.copies, 0);
  EXPECT_EQ(outcome.results, 2);
}

}  // namespace
}  // namespace hlorun::passes
