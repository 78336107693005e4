// Module text in, plan text out: what is done once, with the executable or in the first run, and what leaves loops.
#include "backends/opencl/kept_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_of.h"
#include "tests/matrix_text.h"

namespace hlorun::opencl {
namespace {

using testing::HasSubstr;

// Packing is no longer work of a run; the product reads what was packed once.
TEST(KeptWork, WorkOnConstantParametersIsDoneOnce) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[1,14,14,64] parameter(0)
  w = f32[3,3,64,64] parameter(1)
  ROOT y = f32[1,14,14,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
})";
  const Plan plain = PlanOf(text);
  CompileOptions options;
  options.constant_parameters = {1};
  const Plan kept = PlanOf(text, options);
  EXPECT_TRUE(plain.once.thunks.empty());
  const auto once = ThunksOf<LaunchThunk>(kept.once);
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(ThunksOf<LaunchThunk>(kept.entry).size() + 1, ThunksOf<LaunchThunk>(plain.entry).size());
  const auto last = ThunksOf<LaunchThunk>(kept.entry).back();
  const Slice& packed = once[0]->arguments.back();
  EXPECT_NE(std::find(last->arguments.begin(), last->arguments.end(), packed), last->arguments.end());
  EXPECT_GE(packed.offset, plain.memory.arena_bytes);
  EXPECT_GE(kept.memory.arena_bytes, plain.memory.arena_bytes + packed.bytes);
  EXPECT_THAT(kept.ToString(), HasSubstr("once\n"));
}

// What constants alone are made into is made when the plan is loaded; what a constant parameter takes part in, however
// far back, waits for the first run.
TEST(KeptWork, WorkOnConstantsIsDoneBefore) {
  const std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[64,256] parameter(0)
  w = f32[256,256] parameter(1)
  c = f32[256,256] constant({})
  y = f32[64,256] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT z = f32[64,256] dot(y, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}})",
                                       MatrixText(256, 256, [](int i, int j) { return (3 * i + j) % 7; }));
  CompileOptions options;
  const Plan plain = PlanOf(text, options);
  EXPECT_TRUE(plain.once.thunks.empty());
  ASSERT_EQ(plain.of_constants.thunks.size(), 1u);
  EXPECT_THAT(plain.ToString(), HasSubstr("of constants\n"));
  options.constant_parameters = {1};
  const Plan kept = PlanOf(text, options);
  ASSERT_EQ(kept.once.thunks.size(), 1u);
  ASSERT_EQ(kept.of_constants.thunks.size(), 1u);
  const auto kind_read = [&](const Sequence& sequence) {
    return kept.allocations[static_cast<size_t>(ThunksOf<LaunchThunk>(sequence)[0]->arguments[0].allocation)].kind;
  };
  EXPECT_EQ(kind_read(kept.of_constants), passes::Allocation::Kind::kConstant);
  EXPECT_EQ(kind_read(kept.once), passes::Allocation::Kind::kArgument);
}

// A product that writes columns to scratch and reads them again needs nothing of what an earlier one had there.
TEST(KeptWork, WorkInFrontOfCopiedColumnsIsDoneOnce) {
  const std::string text = R"(HloModule m
add { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }
ENTRY e {
  x = bf16[32,768] parameter(0)
  w = bf16[768,768] parameter(1)
  v = bf16[768,32768] parameter(2)
  zero = bf16[] constant(0)
  h = bf16[32,768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = bf16[32,32768] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = bf16[32] reduce(y, zero), dimensions={1}, to_apply=add
})";
  DeviceSpec device;
  device.has_bf16_tiles = true;
  device.compute_units = 2;
  device.l2_bytes = 2 << 20;
  CompileOptions options;
  options.constant_parameters = {1};
  const Plan plan = PlanOf(text, options, device);
  EXPECT_EQ(ThunksOf<LaunchThunk>(plan.once).size(), 1u);
  EXPECT_THAT(plan.ToString(), HasSubstr("once\n"));
}

// Weights merged with zeros between groups: the numbers of the groups and the merged weights would lie in the result's
// memory until that is stored.
TEST(KeptWork, WorkThatOnlyPassesThroughTheResultIsDoneOnce) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[1,28,28,512] parameter(0)
  w = f32[3,3,4,512] parameter(1)
  ROOT y = f32[1,28,28,512] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=128
})";
  CompileOptions options;
  options.constant_parameters = {1};
  const Plan plain = PlanOf(text), kept = PlanOf(text, options);
  EXPECT_GE(ThunksOf<LaunchThunk>(plain.entry).size(), 3u);
  EXPECT_EQ(ThunksOf<LaunchThunk>(kept.entry).size(), 1u);
  for (const LaunchThunk* launch : ThunksOf<LaunchThunk>(kept.once)) {
    for (size_t i = 0; i < launch->arguments.size(); ++i) {
      const auto allocation = static_cast<size_t>(launch->arguments[i].allocation);
      EXPECT_TRUE(!launch->written[i] || kept.allocations[allocation].kind == passes::Allocation::Kind::kArena);
    }
  }
}

// A few rows by a matrix that is the same in every trip: its panels are made in front of the loop, wherever there was
// room for them in it.
TEST(KeptWork, PackingLeavesTheLoop) {
  const auto text = [](int64_t trips, std::string_view next, int64_t copies = 1) {
    return fmt::format(R"(HloModule m
body {{
  t = (s32[], f32[16,256], f32[256,768], f32[768,256]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  h = f32[16,256] get-tuple-element(t), index=1
  w = f32[256,768] get-tuple-element(t), index=2
  v = f32[768,256] get-tuple-element(t), index=3
  wide = f32[16,768] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[16,768] tanh(wide)
  back = f32[16,256] dot(g, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  changed = f32[768,256] negate(v)
  ROOT r = (s32[], f32[16,256], f32[256,768], f32[768,256]) tuple(j, back, w, {1})
}}
condition {{
  t = (s32[], f32[16,256], f32[256,768], f32[768,256]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({0})
  ROOT go = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[16,256] parameter(0)
  w = f32[256,768] parameter(1)
  v = f32[768,256] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[16,256], f32[256,768], f32[768,256]) tuple(zero, x, w, v)
  l = (s32[], f32[16,256], f32[256,768], f32[768,256]) while(t), body=body, condition=condition
  y = f32[16,256] get-tuple-element(l), index=1
  ROOT z = f32[{2},16,256] broadcast(y), dimensions={{1,2}}
}})",
                       trips, next, copies);
  };
  const auto packings = [](const Sequence& sequence) {
    return std::count_if(sequence.thunks.begin(), sequence.thunks.end(),
                         [](const Thunk& thunk) { return thunk.role == StepRole::kPacking; });
  };
  const Plan both = PlanOf(text(64, "v"));
  const auto loops = ThunksOf<WhileThunk>(both.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(packings(both.entry), 2);
  EXPECT_EQ(packings(*loops[0]->body), 0);
  EXPECT_GE(both.memory.arena_bytes, 2 * 256 * 768 * 4);
  // Results have room for them as long as they are not written.
  const Plan in_result = PlanOf(text(64, "v", 1000));
  EXPECT_EQ(packings(in_result.entry), 2);
  EXPECT_EQ(packings(*ThunksOf<WhileThunk>(in_result.entry)[0]->body), 0);
  // A matrix that each trip changes stays where it is, and so does one of a loop that ends soon.
  EXPECT_EQ(packings(PlanOf(text(64, "changed")).entry), 1);
  EXPECT_EQ(packings(PlanOf(text(3, "v")).entry), 0);
}

// All that read a matrix packed by the first of them read it where it lies now, and nothing else is moved.
TEST(KeptWork, PackingLeavesTheLoopForAllItsReaders) {
  const Plan plan = PlanOf(R"(HloModule m
body {
  t = (s32[], f32[16,256], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  h = f32[16,256] get-tuple-element(t), index=1
  w = f32[256,256] get-tuple-element(t), index=2
  v = f32[256,256] get-tuple-element(t), index=3
  dot_a = f32[16,256] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  dot_b = f32[16,256] dot(dot_a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  dot_c = f32[16,256] dot(dot_b, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  dot_d = f32[16,256] dot(dot_c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[16,256], f32[256,256], f32[256,256]) tuple(j, dot_d, w, v)
}
condition {
  t = (s32[], f32[16,256], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(64)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[16,256] parameter(0)
  w = f32[256,256] parameter(1)
  v = f32[256,256] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[16,256], f32[256,256], f32[256,256]) tuple(zero, x, w, v)
  l = (s32[], f32[16,256], f32[256,256], f32[256,256]) while(t), body=body, condition=condition
  ROOT y = f32[16,256] get-tuple-element(l), index=1
})");
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  std::vector<Slice> packed;
  for (const Thunk& thunk : plan.entry.thunks) {
    if (thunk.role == StepRole::kPacking) packed.push_back(std::get<LaunchThunk>(thunk.work).arguments.back());
  }
  ASSERT_FALSE(packed.empty());
  int64_t products = 0;
  for (const Thunk& thunk : loops[0]->body->thunks) {
    EXPECT_NE(thunk.role, StepRole::kPacking);
    const auto* launch = std::get_if<LaunchThunk>(&thunk.work);
    if (launch == nullptr || !thunk.label.starts_with("dot")) continue;
    ++products;
    EXPECT_TRUE(std::any_of(launch->arguments.begin(), launch->arguments.end(), [&](const Slice& argument) {
      return std::find(packed.begin(), packed.end(), argument) != packed.end();
    })) << plan.ToString();
  }
  EXPECT_EQ(products, 4);
}

}  // namespace
}  // namespace hlorun::opencl
