// Module text in, plan text out: which thunks there are, over which memory.
#include "backends/opencl/plan_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "hlo/text/parser.h"

namespace hlorun::opencl {
namespace {

using testing::HasSubstr;
using testing::Not;

Plan PlanOf(std::string_view text) {
  const auto module = hlo::ParseModule(text);
  return CompileModule(*module, DeviceSpec(), CompileOptions()).plan;
}

template <typename Work>
std::vector<const Work*> ThunksOf(const Sequence& sequence) {
  std::vector<const Work*> found;
  for (const Thunk& thunk : sequence.thunks) {
    if (const auto* work = std::get_if<Work>(&thunk.work)) found.push_back(work);
  }
  return found;
}

TEST(PlanBuilder, OneKernelForAnElementwiseChain) {
  const Plan plan = PlanOf(R"(HloModule m
ENTRY e {
  x = f32[1000] parameter(0), metadata={op_name="x"}
  y = f32[1000] parameter(1)
  a = f32[1000] add(x, y)
  ROOT b = f32[1000] multiply(a, y)
})");
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].name, "k0");
  EXPECT_THAT(plan.kernels[0].source, HasSubstr("k0("));
  const auto launches = ThunksOf<LaunchThunk>(plan.entry);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0]->arguments.size(), 3u);
  EXPECT_EQ(plan.entry.thunks[0].flops, 2000);
  EXPECT_EQ(plan.entry.thunks[0].bytes, 12000);
  EXPECT_EQ(plan.parameters[0].op_name, "x");
  EXPECT_EQ(plan.memory.arena_bytes, 0);
}

TEST(PlanBuilder, EqualKernelsAreOne) {
  const Plan plan = PlanOf(R"(HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  a = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] tanh(a)
  c = f32[64,64] dot(b, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[64,64] tanh(c)
})");
  EXPECT_EQ(ThunksOf<LaunchThunk>(plan.entry).size(), 2 * plan.kernels.size());
}

TEST(PlanBuilder, CountedLoopUpdatesInPlace) {
  const Plan plan = PlanOf(R"(HloModule m
cond {
  p = (s32[], f32[64], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[64], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  s = f32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = f32[] constant(2)
  t = f32[] multiply(s, two)
  u = f32[1] reshape(t)
  y = f32[64] dynamic-update-slice(x, u, i)
  ROOT r = (s32[], f32[64], f32[]) tuple(j, y, t)
}
ENTRY e {
  x = f32[64] parameter(0)
  s = f32[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[64], f32[]) tuple(zero, x, s)
  w = (s32[], f32[64], f32[]) while(t), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1
})");
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0]->trip_count, 10);
  EXPECT_EQ(loops[0]->predicate.bytes, 1);
  EXPECT_TRUE(ThunksOf<CopyThunk>(*loops[0]->body).empty()) << plan.ToString();
  EXPECT_EQ(ThunksOf<CopyThunk>(plan.entry).size(), 3u);  // what enters the loop
  // One kernel writes one element of x: nothing else touches the 256 bytes.
  EXPECT_THAT(plan.ToString(), HasSubstr("while"));
}

TEST(PlanBuilder, BranchesAndSelector) {
  const Plan plan = PlanOf(R"(HloModule m
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
big { x = f32[65536] parameter(0)  ROOT y = f32[65536] sort(x), dimensions={0}, to_apply=less }
small { x = f32[65536] parameter(0)  ROOT y = f32[65536] negate(x) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[65536] parameter(1)
  ROOT c = f32[65536] conditional(p, x, x), true_computation=big, false_computation=small
})");
  const auto branches = ThunksOf<ConditionalThunk>(plan.entry);
  ASSERT_EQ(branches.size(), 1u);
  EXPECT_TRUE(branches[0]->is_predicate);
  ASSERT_EQ(branches[0]->branches.size(), 2u);
  EXPECT_EQ(plan.allocations[static_cast<size_t>(branches[0]->selector.allocation)].kind,
            passes::Allocation::Kind::kArgument);
}

TEST(PlanBuilder, GroupsInDeviceNumbers) {
  const auto groups = [](std::string_view attributes) {
    const Plan plan = PlanOf(fmt::format(R"(HloModule m, replica_count=2, num_partitions=2
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(x), to_apply=add, {}
}})", attributes));
    const auto thunks = ThunksOf<CollectiveThunk>(plan.entry);
    EXPECT_EQ(thunks.size(), 1u);
    EXPECT_EQ(thunks.at(0)->reduction, hlo::Opcode::kAdd);
    return thunks.at(0)->groups;
  };
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(groups("replica_groups={{0,1}}"), (Groups{{0, 2}, {1, 3}}));                       // replicas
  EXPECT_EQ(groups("replica_groups={{0},{1}}, channel_id=1"), (Groups{{0, 1}, {2, 3}}));        // of all partitions
  EXPECT_EQ(groups("replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true"), (Groups{{0, 3}, {1, 2}}));
  EXPECT_EQ(groups("replica_groups={}"), (Groups{{0, 2}, {1, 3}}));
}

TEST(PlanBuilder, PermutesInDeviceNumbers) {
  const Plan plan = PlanOf(R"(HloModule m, replica_count=2, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}
})");
  const auto thunks = ThunksOf<CollectiveThunk>(plan.entry);
  ASSERT_EQ(thunks.size(), 1u);
  EXPECT_THAT(thunks[0]->pairs, testing::ElementsAre(std::pair<int64_t, int64_t>(0, 1), std::pair<int64_t, int64_t>(2, 3)));
}

TEST(PlanBuilder, HostCallsAreCounted) {
  const Plan plan = PlanOf(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = (f32[8], s32[]) custom-call(x), custom_call_target="user_function", custom_call_has_side_effect=true
})");
  EXPECT_EQ(plan.host_thunks, 1);
  const auto calls = ThunksOf<HostCallThunk>(plan.entry);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]->target, "user_function");
  EXPECT_EQ(calls[0]->results.size(), 2u);
}

TEST(PlanBuilder, NothingIsDoneForReshapesAndPassedThroughArguments) {
  const Plan plan = PlanOf(R"(HloModule m
ENTRY e {
  x = f32[4,8] parameter(0)
  ROOT r = f32[32] reshape(x)
})");
  EXPECT_TRUE(plan.entry.thunks.empty());
  EXPECT_EQ(plan.result_slices[0].allocation, 0);
}

}  // namespace
}  // namespace hlorun::opencl
