// Module text in, plan text out: which thunks there are, over which memory.
#include "backends/opencl/plan_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "hlo/custom_calls/registry.h"
#include "hlo/text/parser.h"
#include "plan_of.h"
#include "tests/matrix_text.h"

namespace hlorun::opencl {
namespace {

using testing::HasSubstr;
using testing::Not;

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

// A trip that reads the row above cannot write in place: `trips` of it, with `other` carried besides.
Plan Shifts(int64_t trips, const std::string& other = "y") {
  return PlanOf(fmt::format(R"(HloModule m
body {{
  t = (s32[], f32[512,1024], f32[512,1024]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[512,1024] get-tuple-element(t), index=1
  y = f32[512,1024] get-tuple-element(t), index=2
  last = f32[1,1024] slice(x), slice={{[511:512], [0:1024]}}
  most = f32[511,1024] slice(x), slice={{[0:511], [0:1024]}}
  above = f32[512,1024] concatenate(last, most), dimensions={{0}}
  next = f32[512,1024] add(x, above)
  ROOT r = (s32[], f32[512,1024], f32[512,1024]) tuple(j, next, {1})
}}
condition {{
  t = (s32[], f32[512,1024], f32[512,1024]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({0})
  ROOT go = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[512,1024] parameter(0)
  y = f32[512,1024] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[512,1024], f32[512,1024]) tuple(zero, x, y)
  l = (s32[], f32[512,1024], f32[512,1024]) while(t), body=body, condition=condition
  a = f32[512,1024] get-tuple-element(l), index=1
  b = f32[512,1024] get-tuple-element(l), index=2
  ROOT z = f32[512,1024] subtract(a, b)
}})",
                            trips, other));
}

TEST(PlanBuilder, TripsInPairsCopyNothingBack) {
  const Plan plan = Shifts(1000);
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0]->trip_count, 500);
  EXPECT_TRUE(ThunksOf<CopyThunk>(*loops[0]->body).empty());
  const auto trips = ThunksOf<LaunchThunk>(*loops[0]->body);
  ASSERT_EQ(trips.size(), 2u) << plan.ToString();
  EXPECT_EQ(trips[0]->kernel, trips[1]->kernel);
  EXPECT_EQ(trips[0]->arguments[0], trips[1]->arguments[1]);
  EXPECT_EQ(trips[0]->arguments[1], trips[1]->arguments[0]);
}

TEST(PlanBuilder, AnOddTripFollowsThePairs) {
  const Plan plan = Shifts(1001);
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0]->trip_count, 500);
  EXPECT_EQ(ThunksOf<CopyThunk>(plan.entry).size(), ThunksOf<CopyThunk>(Shifts(1000).entry).size() + 1);
}

// What is copied is carried itself: the next trip reads it, and only the copy of what is new is saved.
TEST(PlanBuilder, WhatMovesOnIsCopiedInPairsToo) {
  const Plan plan = Shifts(1000, "x");
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0]->trip_count, 500) << plan.ToString();
  const auto copies = ThunksOf<CopyThunk>(*loops[0]->body);
  ASSERT_EQ(copies.size(), 2u) << plan.ToString();
  EXPECT_EQ(copies[0]->to, copies[1]->to);
  EXPECT_NE(copies[0]->from, copies[1]->from);
}

// What a trip copies and does not make is still to be copied: in an exchange, every second trip would find the state
// of the start.
TEST(PlanBuilder, AConstantStateIsNotExchanged) {
  const std::string text = fmt::format(R"(HloModule m
body {{
  t = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[64,64] get-tuple-element(t), index=1
  s = f32[64,64] get-tuple-element(t), index=2
  b = f32[64,64] add(a, s)
  c = f32[64,64] constant({})
  ROOT r = (s32[], f32[64,64], f32[64,64]) tuple(j, b, c)
}}
condition {{
  t = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(7)
  ROOT go = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[64,64], f32[64,64]) tuple(zero, x, y)
  ROOT l = (s32[], f32[64,64], f32[64,64]) while(t), body=body, condition=condition
}})",
                                       MatrixText(64, 64, [](int i, int j) { return (5 * i + j) % 11; }));
  const Plan plan = PlanOf(text);
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u) << plan.ToString();
  EXPECT_EQ(loops[0]->trip_count, 3) << plan.ToString();  // the sum's exchange makes pairs of them
  const auto copies = ThunksOf<CopyThunk>(*loops[0]->body);
  const auto is_of_constant = [&](const CopyThunk* copy) {
    return plan.allocations[static_cast<size_t>(copy->from.allocation)].kind == passes::Allocation::Kind::kConstant;
  };
  EXPECT_EQ(std::count_if(copies.begin(), copies.end(), is_of_constant), 2) << plan.ToString();
}

// Two products of `first` and `second` as their rhs.
Plan TwoProducts(const std::string& first, const std::string& second) {
  return PlanOf(fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[300,200] parameter(0)
  b = f32[300,200] parameter(1)
  v = f32[200,250] parameter(2)
  w = f32[200,250] parameter(3)
  c = f32[300,250] dot(a, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[300,250] tanh(c)
  d = f32[300,250] dot(b, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = (f32[300,250], f32[300,250]) tuple(t, d)
}})",
                            first, second));
}

TEST(PlanBuilder, ProductsOfOneArrayShareItsPanels) {
  const Plan apart = TwoProducts("v", "w"), shared = TwoProducts("w", "w");
  EXPECT_EQ(ThunksOf<LaunchThunk>(apart.entry).size(), 4u);
  const auto launches = ThunksOf<LaunchThunk>(shared.entry);
  ASSERT_EQ(launches.size(), 3u);
  const Slice& panels = launches[0]->arguments.back();
  for (const size_t product : {1u, 2u}) {
    EXPECT_THAT(launches[product]->arguments, testing::Contains(panels));
    EXPECT_GT(shared.entry.thunks[product].flops, 0);
  }
  EXPECT_EQ(shared.memory.arena_bytes, apart.memory.arena_bytes);
}

// Room for panels that stay would be much beside what else there is: others take their place, and they are made again.
TEST(PlanBuilder, PanelsThatWereOverwrittenAreMadeAgain) {
  const Plan plan = PlanOf(R"(HloModule m
ENTRY e {
  a = f32[300,200] parameter(0)
  w = f32[200,200] parameter(1)
  v = f32[200,200] parameter(2)
  c = f32[300,200] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[300,200] dot(c, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  x = f32[300,200] dot(d, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[300,200] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[300,200] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  EXPECT_EQ(ThunksOf<LaunchThunk>(plan.entry).size(), 10u);
}

// An array of numbers alone costs less to make than to keep.
TEST(PlanBuilder, LargeArraysMadeOfLittleAreNotKept) {
  CompileOptions options;
  options.constant_parameters = {1};
  const Plan plan = PlanOf(R"(HloModule m
less { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT c = pred[] compare(p, q), direction=LT }
ENTRY e {
  x = f32[1024,1024] parameter(0)
  a = f32[1024] parameter(1)
  e = f32[1024] exponential(a)
  b = f32[1024,1024] broadcast(e), dimensions={0}
  s = f32[1024,1024] sort(b), dimensions={1}, to_apply=less
  ROOT y = f32[1024,1024] dot(x, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
                           options);
  for (const LaunchThunk* launch : ThunksOf<LaunchThunk>(plan.once)) {
    for (size_t i = 0; i < launch->arguments.size(); ++i) {
      EXPECT_TRUE(!launch->written[i] || launch->arguments[i].bytes <= 1 << 17);
    }
  }
}

// Each value is read twice: there are 2^200 ways through the chain.
TEST(PlanBuilder, AChainOfDiamondsTakesNoTime) {
  std::string text = "HloModule m\nENTRY e {\n  x0 = f32[64,64] parameter(0)\n";
  for (int i = 0; i < 200; ++i)
    text += fmt::format("  {}x{} = f32[64,64] add(x{}, x{})\n", i == 199 ? "ROOT " : "", i + 1, i, std::max(0, i - 1));
  EXPECT_EQ(ThunksOf<LaunchThunk>(PlanOf(text + "}\n").entry).size() > 0, true);
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
less { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
cond {
  p = (s32[], f32[4096], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[4096], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4096] get-tuple-element(p), index=1
  s = f32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = f32[] constant(2)
  t = f32[] multiply(s, two)
  places = s32[8192] iota(), iota_dimension=0
  is = s32[8192] broadcast(i), dimensions={}
  keys = s32[8192] xor(places, is)
  sorted = s32[8192] sort(keys), dimensions={0}, to_apply=less
  k = s32[1] slice(sorted), slice={[0:1]}
  l = s32[] reshape(k)
  m = s32[] multiply(l, i)
  f = f32[] convert(m)
  v = f32[] add(t, f)
  u = f32[1] reshape(v)
  y = f32[4096] dynamic-update-slice(x, u, i)
  ROOT r = (s32[], f32[4096], f32[]) tuple(j, y, t)
}
ENTRY e {
  x = f32[4096] parameter(0)
  s = f32[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[4096], f32[]) tuple(zero, x, s)
  w = (s32[], f32[4096], f32[]) while(t), condition=cond, body=body
  ROOT r = f32[4096] get-tuple-element(w), index=1
})");
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0]->trip_count, 10);
  EXPECT_EQ(loops[0]->predicate.bytes, 1);
  // The counter, too, which a kernel that needs another of the region's results reads when its next value is there.
  EXPECT_THAT(ThunksOf<CopyThunk>(*loops[0]->body), testing::IsEmpty()) << plan.ToString();
  EXPECT_EQ(ThunksOf<CopyThunk>(plan.entry).size(), 3u);  // what enters the loop
  EXPECT_THAT(plan.ToString(), HasSubstr("while"));
}

// `takes`: what the third carried value becomes; `results`: what is read of the loop.
Plan CountedProducts(const std::string& takes, const std::string& results) {
  return PlanOf(fmt::format(R"(HloModule m
cond {{
  p = (s32[], f32[128,128], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}}
body {{
  p = (s32[], f32[128,128], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[128,128] get-tuple-element(p), index=1
  last = s32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[128,128] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = (s32[], f32[128,128], s32[]) tuple(j, y, {})
}}
ENTRY e {{
  x = f32[128,128] parameter(0)
  k = s32[] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[128,128], s32[]) tuple(zero, x, k)
  w = (s32[], f32[128,128], s32[]) while(t), condition=cond, body=body
  y = f32[128,128] get-tuple-element(w), index=1
  l = s32[] get-tuple-element(w), index=2
  ROOT r = {}
}})",
                            takes, results));
}

TEST(PlanBuilder, ACountedLoopRunsNothingForItsCondition) {
  const Plan plan = CountedProducts("last", "f32[128,128] negate(y)");
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_TRUE(loops[0]->condition->thunks.empty()) << plan.ToString();
  const auto products = ThunksOf<LaunchThunk>(*loops[0]->body).size();
  // The counter is another launch of each of the body's two trips where somebody reads it; what takes its last value
  // over costs nothing more.
  const Plan read = CountedProducts("i", "(f32[128,128], s32[]) tuple(y, l)");
  const auto others = ThunksOf<WhileThunk>(read.entry);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(ThunksOf<LaunchThunk>(*others[0]->body).size(), products + 2) << read.ToString();
  const auto copies = ThunksOf<CopyThunk>(*others[0]->body);
  EXPECT_TRUE(std::all_of(copies.begin(), copies.end(), [](const CopyThunk* copy) { return copy->from.bytes > 4; }))
      << read.ToString();
}

// One region computes both counters. Each is read after the other's next value is known, and still neither is copied.
constexpr const char* kTwoCounters = R"(HloModule m
cond {
  p = (s32[], s32[], f32[65536]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], s32[], f32[65536]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  x = f32[65536] get-tuple-element(p), index=2
  f = f32[] convert(k)
  fs = f32[65536] broadcast(f), dimensions={}
  y = f32[65536] multiply(x, fs)
  s = f32[65536] sine(y)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  l = s32[] subtract(k, i)
  ROOT r = (s32[], s32[], f32[65536]) tuple(j, l, s)
}
ENTRY e {
  x = f32[65536] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], s32[], f32[65536]) tuple(zero, zero, x)
  w = (s32[], s32[], f32[65536]) while(t), condition=cond, body=body
  ROOT r = f32[65536] get-tuple-element(w), index=2
})";

TEST(PlanBuilder, CountersOfARegionAreUpdatedInPlace) {
  const Plan plan = PlanOf(kTwoCounters);
  const auto loops = ThunksOf<WhileThunk>(plan.entry);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_THAT(ThunksOf<CopyThunk>(*loops[0]->body), testing::IsEmpty()) << plan.ToString();
  EXPECT_EQ(ThunksOf<LaunchThunk>(*loops[0]->body).size(), 2u) << plan.ToString();
}

constexpr const char* kBranches = R"(HloModule m
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
big { x = f32[65536] parameter(0)  ROOT y = f32[65536] sort(x), dimensions={0}, to_apply=less }
small { x = f32[65536] parameter(0)  ROOT y = f32[65536] negate(x) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[65536] parameter(1)
  ROOT c = f32[65536] conditional(p, x, x), true_computation=big, false_computation=small
})";

TEST(PlanBuilder, BranchesAndSelector) {
  CompileOptions options;
  options.branches = BranchStrategy::kHost;
  const Plan plan = PlanOf(kBranches, options);
  const auto branches = ThunksOf<ConditionalThunk>(plan.entry);
  ASSERT_EQ(branches.size(), 1u);
  EXPECT_TRUE(branches[0]->is_predicate);
  ASSERT_EQ(branches[0]->branches.size(), 2u);
  EXPECT_EQ(plan.allocations[static_cast<size_t>(branches[0]->selector.allocation)].kind,
            passes::Allocation::Kind::kArgument);
}

// All kernels of both branches are launched, each with the predicate as one more argument.
TEST(PlanBuilder, KernelsOfABranchReadThePredicate) {
  const Plan plan = PlanOf(kBranches);
  EXPECT_TRUE(ThunksOf<ConditionalThunk>(plan.entry).empty());
  const auto launches = ThunksOf<LaunchThunk>(plan.entry);
  ASSERT_GE(launches.size(), 2u);
  ASSERT_EQ(launches.size(), plan.entry.thunks.size());
  for (const LaunchThunk* launch : launches) {
    const Kernel& kernel = plan.kernels[static_cast<size_t>(launch->kernel)];
    EXPECT_EQ(static_cast<int64_t>(launch->arguments.size()), kernel.parameter_count);
    EXPECT_EQ(plan.allocations[static_cast<size_t>(launch->arguments.back().allocation)].index, 0);
    EXPECT_FALSE(launch->written.back());
    const bool is_last = launch == launches.back();
    EXPECT_THAT(kernel.source,
                HasSubstr(is_last ? "if (!(guard0[0] == 0)) return;" : "if (!(guard0[0] != 0)) return;"));
  }
}

TEST(PlanBuilder, GroupsInDeviceNumbers) {
  const auto groups = [](std::string_view attributes) {
    const Plan plan = PlanOf(fmt::format(R"(HloModule m, replica_count=2, num_partitions=2
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(x), to_apply=add, {}
}})",
                                         attributes));
    const auto thunks = ThunksOf<CollectiveThunk>(plan.entry);
    EXPECT_EQ(thunks.size(), 1u);
    EXPECT_EQ(thunks.at(0)->reduction, hlo::Opcode::kAdd);
    return thunks.at(0)->groups;
  };
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(groups("replica_groups={{0,1}}"), (Groups{{0, 2}, {1, 3}}));                  // replicas
  EXPECT_EQ(groups("replica_groups={{0},{1}}, channel_id=1"), (Groups{{0, 1}, {2, 3}}));  // of all partitions
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
  EXPECT_THAT(thunks[0]->pairs,
              testing::ElementsAre(std::pair<int64_t, int64_t>(0, 1), std::pair<int64_t, int64_t>(2, 3)));
}

TEST(PlanBuilder, HostCallsAreCounted) {
  const auto registry = std::make_shared<hlo::CustomCallRegistry>();
  registry->Add(
      {"user_function", hlo::Signature({"f32[n]"}, {"f32[n]", "s32[]"}), [](const hlo::HostCall&) {}, std::nullopt});
  CompileOptions options;
  options.custom_calls = registry;
  const Plan plan = CompileModule(*hlo::ParseModule(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = (f32[8], s32[]) custom-call(x), custom_call_target="user_function", custom_call_has_side_effect=true
})"),
                                  DeviceSpec(), options)
                        .plan;
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

TEST(PlanBuilder, AStepInF64IsEvaluatedOnTheHostWhereTheDeviceHasNone) {
  const auto module = hlo::ParseModule(R"(HloModule m
ENTRY e {
  x = f64[8] parameter(0)
  y = f32[8] parameter(1)
  s = f64[8] sine(x)
  a = f64[8] add(s, x)
  b = f32[8] add(y, y)
  ROOT t = (f64[8], f32[8]) tuple(a, b)
})");
  DeviceSpec poor;
  poor.has_f64 = false;
  const CompilerResult result = CompileModule(*module, poor, CompileOptions());
  EXPECT_EQ(result.plan.host_thunks, 1);
  ASSERT_EQ(result.plan.remarks.size(), 1u);
  EXPECT_THAT(result.plan.remarks[0].reason, HasSubstr("no f64"));
  const auto calls = ThunksOf<HostCallThunk>(result.plan.entry);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]->target, kEvaluateTarget);
  EXPECT_THAT(calls[0]->config, HasSubstr("sine("));
  ASSERT_EQ(result.plan.kernels.size(), 1u);  // of the f32 addition
  EXPECT_THAT(result.plan.kernels[0].source, Not(HasSubstr("double")));
  EXPECT_EQ(CompileModule(*module, DeviceSpec(), CompileOptions()).plan.host_thunks, 0);
}

constexpr const char* kDotAndTanh = R"(HloModule m
ENTRY e {
  x = TYPE[3,64,32] parameter(0)
  y = TYPE[3,64,16] parameter(1)
  d = TYPE[3,32,16] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = TYPE[3,32,16] tanh(d)
})";

Plan ProductPlanOf(const std::string& type, DotLibrary library, const DeviceSpec& device = {}) {
  std::string text = kDotAndTanh;
  for (size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) text.replace(at, 4, type);
  CompileOptions options;
  options.dot_library = library;
  return CompileModule(*hlo::ParseModule(text), device, options).plan;
}

TEST(PlanBuilder, ClblastMultipliesWhereItIsForcedAndHasTheType) {
  const Plan plan = ProductPlanOf("f32", DotLibrary::kClblast);
  const auto products = ThunksOf<LibraryThunk>(plan.entry);
  ASSERT_EQ(products.size(), 1u);
  EXPECT_EQ(products[0]->batch, 3);
  EXPECT_EQ(products[0]->m, 32);
  EXPECT_EQ(products[0]->n, 16);
  EXPECT_EQ(products[0]->k, 64);
  EXPECT_TRUE(products[0]->lhs_transposed);
  EXPECT_FALSE(products[0]->rhs_transposed);
  EXPECT_EQ(ThunksOf<LaunchThunk>(plan.entry).size(), 1u);  // tanh, which is not fused into it
  EXPECT_EQ(plan.host_thunks, 0);
  EXPECT_TRUE(ThunksOf<LibraryThunk>(ProductPlanOf("bf16", DotLibrary::kClblast).entry).empty());
  EXPECT_TRUE(ThunksOf<LibraryThunk>(ProductPlanOf("f16", DotLibrary::kClblast).entry).empty());
  EXPECT_TRUE(ThunksOf<LibraryThunk>(ProductPlanOf("f32", DotLibrary::kOwn).entry).empty());
}

TEST(PlanBuilder, AutoTakesClblastOnlyOnAGpuWhereItMeasuredFaster) {
  DeviceSpec device;
  device.cost_table = {{"own_product_gflops", 100}, {"clblast_product_gflops", 200}};
  EXPECT_TRUE(ThunksOf<LibraryThunk>(ProductPlanOf("f32", DotLibrary::kAuto, device).entry).empty());  // CPU class
  device.device_class = DeviceClass::kGpu;
  EXPECT_EQ(ThunksOf<LibraryThunk>(ProductPlanOf("f32", DotLibrary::kAuto, device).entry).size(), 1u);
  device.cost_table["clblast_product_gflops"] = 50;
  EXPECT_TRUE(ThunksOf<LibraryThunk>(ProductPlanOf("f32", DotLibrary::kAuto, device).entry).empty());
  device.cost_table.clear();
  EXPECT_TRUE(ThunksOf<LibraryThunk>(ProductPlanOf("f32", DotLibrary::kAuto, device).entry).empty());
}

// As ProductPlanOf in f32, with a choice for that product.
Plan PlanWithChoice(const ProductSchedule& schedule, DotLibrary library, const DeviceSpec& device) {
  std::string text = kDotAndTanh;
  for (size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) text.replace(at, 4, "f32");
  const auto module = hlo::ParseModule(text);
  CompileOptions options;
  options.dot_library = library;
  const std::vector<ProductUse> products = CompileModule(*module, device, options).products;
  EXPECT_EQ(products.size(), 1u);
  auto record = std::make_shared<TuningRecord>(device);
  record->Set(products.at(0).problem, {.schedule = schedule});
  options.tuned = record;
  return CompileModule(*module, device, options).plan;
}

TEST(PlanBuilder, AMeasuredChoiceIsTaken) {
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  // CLBlast, unless our kernels are asked for.
  const Plan library = PlanWithChoice(LibrarySchedule{}, DotLibrary::kAuto, device);
  EXPECT_EQ(ThunksOf<LibraryThunk>(library.entry).size(), 1u);
  EXPECT_THAT(library.tuning, HasSubstr("clblast"));
  LibrarySchedule tuned;
  tuned.numbers.fill(16);
  EXPECT_EQ(ThunksOf<LibraryThunk>(PlanWithChoice(tuned, DotLibrary::kAuto, device).entry).at(0)->numbers,
            tuned.numbers);
  EXPECT_TRUE(ThunksOf<LibraryThunk>(PlanWithChoice(LibrarySchedule{}, DotLibrary::kOwn, device).entry).empty());
  // Against a cost table that says otherwise.
  device.cost_table = {{"own_product_gflops", 100}, {"clblast_product_gflops", 200}};
  const Plan tiled = PlanWithChoice(TiledSchedule{32, 8, 4, 4, 16}, DotLibrary::kAuto, device);
  EXPECT_TRUE(ThunksOf<LibraryThunk>(tiled.entry).empty());
  const auto launches = ThunksOf<LaunchThunk>(tiled.entry);
  ASSERT_EQ(launches.size(), 1u);  // with the tanh
  EXPECT_EQ(launches[0]->grid.local[0], 32);
  EXPECT_EQ(launches[0]->grid.groups[0], 3 * 2 * 1);
  // Two launches where the sums are cut into parts, and room for them.
  TiledSchedule parts{32, 8, 4, 4, 16};
  parts.k_parts = 2;
  const Plan cut = PlanWithChoice(parts, DotLibrary::kAuto, device);
  EXPECT_EQ(ThunksOf<LaunchThunk>(cut.entry).size(), 2u);
  EXPECT_GE(cut.memory.arena_bytes, 2 * 3 * 32 * 16 * 4);
}

// A branch's kernels ask for its predicate, also where they are one launch.
TEST(PlanBuilder, SmallKernelsOfABranchAreOneLaunchOnAGpu) {
  const auto branch = [](const std::string& name, const std::string& op) {
    return name + R"( { t = (f32[4096], f32[5000]) parameter(0)
  x = f32[4096] get-tuple-element(t), index=0
  y = f32[5000] get-tuple-element(t), index=1
  a = f32[4096] )" +
           op + "(x)\n b = f32[5000] " + op + R"((y)
  ROOT r = (f32[4096], f32[5000]) tuple(a, b) }
)";
  };
  const std::string text = "HloModule m\n" + branch("one", "sine") + branch("two", "tanh") + R"(
ENTRY e {
  p = pred[] parameter(0)
  x = f32[4096] parameter(1)
  y = f32[5000] parameter(2)
  t = (f32[4096], f32[5000]) tuple(x, y)
  ROOT r = (f32[4096], f32[5000]) conditional(p, t, t), true_computation=one, false_computation=two
})";
  DeviceSpec gpu;
  gpu.device_class = DeviceClass::kGpu;
  CompileOptions options;
  options.branches = BranchStrategy::kPredicate;
  const Plan plan = CompileModule(*hlo::ParseModule(text), gpu, options).plan;
  const auto launches = ThunksOf<LaunchThunk>(plan.entry);
  ASSERT_EQ(launches.size(), 2u);
  for (const LaunchThunk* launch : launches) {
    EXPECT_EQ(launch->arguments.size(), 5u);
    EXPECT_THAT(plan.kernels[static_cast<size_t>(launch->kernel)].source, HasSubstr("guard0[0]"));
  }
}

}  // namespace
}  // namespace hlorun::opencl
