// What --explain says of varying dimensions.
#include "passes/dynamic/dimension_remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/generic_context.h"
#include "passes/pipeline.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// "x:0 at model.py:7 followed: why; cost", a line each.
std::string Said(const std::string& text) {
  const auto module = Parse(text);
  GenericContext context;
  OptimizationPipeline(context.options, context.device).Run(*module, context);
  std::string said;
  for (const Remark& remark : context.remarks) {
    if (remark.subject != Remark::Subject::kDimension) continue;
    said += fmt::format("{}{} {}: {}; {}\n", remark.instruction, remark.source.empty() ? "" : " at " + remark.source,
                        remark.choice, remark.reason, remark.cost);
  }
  return said;
}

TEST(DimensionRemarks, WhatFollowsTheSize) {
  const std::string said = Said(R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[<=4096,512] parameter(0)
  y = f32[<=4096,512] tanh(x), metadata={source_file="model.py" source_line=7}
  zero = f32[] constant(0)
  s = f32[512] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[<=4096,512], f32[512]) tuple(y, s)
})");
  EXPECT_THAT(
      said,
      HasSubstr("x:0 at model.py:7 followed: its size is data that kernels read: 2 end at it, 0 work up to the bound; "
                "memory for the bound of 4096"));
  EXPECT_THAT(said, Not(HasSubstr("padded")));
}

TEST(DimensionRemarks, WhatStaysPaddedAndWhy) {
  const std::string said = Said(R"(HloModule m
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[<=512,4096] parameter(0)
  y = f32[<=512,4096] tanh(x), metadata={source_file="model.py" source_line=7}
  ROOT r = f32[<=512,4096] sort(y), dimensions={0}, to_apply=less, metadata={source_file="model.py" source_line=8}
})");
  EXPECT_THAT(said, HasSubstr("x:0 at model.py:7 followed in part"));
  EXPECT_THAT(said, HasSubstr("at model.py:8 padded: a sort moves padding to the end"));
  EXPECT_THAT(said, HasSubstr("up to its bound of 512"));
}

// Rows are picked by data: the array that they are picked from is computed whole.
TEST(DimensionRemarks, TheReaderThatNeedsAll) {
  const std::string said = Said(R"(HloModule m
ENTRY e {
  x = f32[<=4096,512] parameter(0)
  w = f32[512,512] parameter(1)
  i = s32[64] parameter(2)
  y = f32[<=4096,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={source_file="model.py" source_line=7}
  ROOT r = f32[64,512] gather(y, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,512}, metadata={source_file="model.py" source_line=9}
})");
  EXPECT_THAT(said, HasSubstr("at model.py:7 padded: "));
  EXPECT_THAT(said, HasSubstr("(gather at model.py:9) may read all of it"));
}

TEST(DimensionRemarks, NothingIsSaidOfAStaticModule) {
  EXPECT_EQ(Said("HloModule m\nENTRY e { x = f32[4096] parameter(0)  ROOT y = f32[4096] tanh(x) }\n"), "");
}

}  // namespace
}  // namespace hlorun::passes
