// Automatic sharding: the groups of dimensions that it finds, and the plans that it makes of them.
#include "passes/spmd/auto_shard.h"

#include <gtest/gtest.h>

#include "hlo/error.h"
#include "hlo/text/printer.h"
#include "passes/generic_context.h"
#include "passes/spmd/auto_shard_cost.h"
#include "passes/spmd/spmd.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

// Two layers with a residual connection: x + tanh(x w1) w2.
constexpr const char* kLayers = R"(
HloModule layers
ENTRY main {
  x = f32[4096,512] parameter(0)
  w1 = f32[512,2048] parameter(1)
  w2 = f32[2048,512] parameter(2)
  h = f32[4096,2048] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[4096,2048] tanh(h)
  y = f32[4096,512] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4096,512] add(x, y)
}
)";

struct Chosen {
  std::string name;
  std::vector<Remark> remarks;
  std::unique_ptr<hlo::Module> module;
};

Chosen Choose(const std::string& text, int64_t devices, int64_t memory_limit = 0) {
  const auto module = Parse(text);
  const AutoSharder sharder(*module, devices);
  CompileOptions options;
  options.memory_limit = memory_limit;
  GenericContext context(options);
  const size_t plan = sharder.Choose(context);
  return {sharder.plans()[plan].name, std::move(context.remarks), sharder.Annotated(plan)};
}

TEST(DimensionGroups, FollowALoopThroughTheProgram) {
  const auto module = Parse(kLayers);
  const spmd::DimensionGroups groups(*module);
  const hlo::Computation& entry = *module->entry();
  const auto of = [&](int64_t parameter, int64_t d) { return groups.GroupOf(*entry.parameter(parameter), 0, d); };
  EXPECT_EQ(of(1, 1), of(2, 0)) << "the hidden dimension";
  EXPECT_EQ(of(0, 1), of(1, 0)) << "the features";
  EXPECT_EQ(of(0, 1), of(2, 1)) << "the residual's features";
  EXPECT_NE(of(1, 0), of(1, 1));
  EXPECT_EQ(groups.data_group(), of(0, 0));
  const spmd::DimensionGroup& hidden = groups.groups()[static_cast<size_t>(of(1, 1))];
  EXPECT_TRUE(hidden.leaves_weight && hidden.enters_weight);
  EXPECT_EQ(hidden.weights, (std::set<int64_t>{1, 2}));
}

TEST(DimensionGroups, FollowLoops) {
  const auto module = Parse(R"(
HloModule loop
body {
  c = (s32[], f32[64,32], f32[32,32]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[64,32] get-tuple-element(c), index=1
  w = f32[32,32] get-tuple-element(c), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[64,32], f32[32,32]) tuple(next, y, w)
}
condition {
  c = (s32[], f32[64,32], f32[32,32]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(7)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[64,32] parameter(0)
  w = f32[32,32] parameter(1)
  zero = s32[] constant(0)
  c = (s32[], f32[64,32], f32[32,32]) tuple(zero, x, w)
  l = (s32[], f32[64,32], f32[32,32]) while(c), condition=condition, body=body
  ROOT y = f32[64,32] get-tuple-element(l), index=1
}
)");
  const spmd::DimensionGroups groups(*module);
  EXPECT_EQ(groups.GroupOf(*module->entry()->root(), 0, 0), groups.GroupOf(*module->entry()->parameter(0), 0, 0));
  EXPECT_EQ(groups.data_group(), groups.GroupOf(*module->entry()->parameter(0), 0, 0));
  EXPECT_EQ(spmd::TripsOf(*module->entry()->root()->operand(0)), 7);
}

TEST(AutoShard, OffersTheTemplates) {
  const auto module = Parse(kLayers);
  std::set<std::string> names;
  const AutoSharder sharder(*module, 4);
  for (const spmd::ShardingPlan& plan : sharder.plans()) names.insert(plan.name);
  for (const char* name :
       {"replicated", "data-parallel", "tensor-parallel", "fully sharded", "data-parallel x tensor-parallel"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(AutoShard, CutsTheBatchWhereItIsLarge) {
  const Chosen chosen = Choose(kLayers, 4);
  EXPECT_EQ(chosen.name, "data-parallel");
  EXPECT_EQ(chosen.module->entry()->parameter(0)->sharding->tile_dimensions, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(chosen.module->num_partitions, 4);
  ASSERT_EQ(chosen.remarks.size(), 1U);
  EXPECT_FALSE(chosen.remarks[0].cost.empty());
  EXPECT_TRUE(spmd::NeedsPartitioning(*chosen.module, {}));
}

TEST(AutoShard, ReplicatesWhatIsTooSmallToCut) {
  const Chosen chosen = Choose(R"(
HloModule small
ENTRY main {
  x = f32[16,16] parameter(0)
  ROOT s = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)",
                               2);
  EXPECT_EQ(chosen.module->num_partitions == 1, chosen.name == "replicated");
}

TEST(AutoShard, KeepsToTheMemoryLimit) {
  // The weights are 8 MiB, the activations 8 + 8 + 32 MiB: a quarter of the batch alone keeps the weights whole.
  const Chosen free = Choose(kLayers, 4);
  const DeviceSpec device;
  const Chosen tight = Choose(kLayers, 4, int64_t{20} << 20);
  EXPECT_NE(tight.name, "replicated");
  EXPECT_NE(tight.remarks.at(0).cost.find("in all"), std::string::npos);
  try {
    Choose(kLayers, 4, 1 << 20);
    FAIL() << "nothing fits into a mebibyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(error.message().find("--memory_limit"), std::string::npos);
  }
}

TEST(AutoShard, TheAnnotatedModuleReadsBack) {
  const Chosen chosen = Choose(kLayers, 4);
  const auto again = Parse(hlo::PrintModule(*chosen.module));
  EXPECT_EQ(again->num_partitions, 4);
  EXPECT_TRUE(spmd::NeedsPartitioning(*again, {}));
}

TEST(AutoShard, LeavesOthersAlone) {
  EXPECT_TRUE(CanShardAutomatically(*Parse(kLayers)));
  EXPECT_FALSE(CanShardAutomatically(*Parse(R"(
HloModule annotated, num_partitions=2
ENTRY main {
  ROOT x = f32[16,16] parameter(0), sharding={devices=[2,1]<=[2]}
}
)")));
  EXPECT_FALSE(CanShardAutomatically(*Parse(R"(
HloModule feeds
ENTRY main {
  t = token[] after-all()
  i = (f32[4], token[]) infeed(t)
  ROOT x = f32[4] get-tuple-element(i), index=0
}
)")));
}

}  // namespace
}  // namespace hlorun::passes
