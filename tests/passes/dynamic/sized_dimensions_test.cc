// Dimensions that follow a parameter's size through control flow.
#include "passes/dynamic/sized_dimensions.h"

#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

// What a loop hands on from one carried value to the next arrives in the last one after as many trips.
TEST(SizedDimensions, ThroughEveryTripOfALoop) {
  const auto module = Parse(R"(HloModule m
body {
  p = (f32[8], f32[8], f32[8], f32[8]) parameter(0)
  x = f32[8] get-tuple-element(p), index=0
  y = f32[8] get-tuple-element(p), index=1
  z = f32[8] get-tuple-element(p), index=2
  ROOT t = (f32[8], f32[8], f32[8], f32[8]) tuple(x, x, y, z)
}
cond {
  p = (f32[8], f32[8], f32[8], f32[8]) parameter(0)
  ROOT go = pred[] constant(false)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  t = (f32[8], f32[8], f32[8], f32[8]) tuple(x, y, y, y)
  ROOT w = (f32[8], f32[8], f32[8], f32[8]) while(t), condition=cond, body=body
})");
  SizeSignature signature;
  signature.parameters = {{0, 0}};
  const SizedDimensions sized(*module, signature);
  const hlo::Instruction* loop = module->entry()->root();
  for (int64_t leaf = 0; leaf < 4; ++leaf) EXPECT_EQ(sized.OriginOf(loop, leaf, 0), 0) << leaf;
  EXPECT_EQ(sized.OriginOf(module->entry()->parameter(1), 0, 0), SizedDimensions::kFixed);
}

}  // namespace
}  // namespace hlorun::passes
