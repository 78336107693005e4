// What becomes of collectives after partitioning: fewer messages, outside of loops, and the same bits.
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/control/loop_invariants.h"
#include "passes/generic_context.h"
#include "passes/simplify/dce.h"
#include "passes/spmd/combine_collectives.h"
#include "passes/spmd/scatter_reductions.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/spmd/partition_check.h"

namespace hlorun::passes {
namespace {

using hlo::Literal;
using hlo::Opcode;

// A link on which 1,000 bytes take as long to send as to start sending.
DeviceSpec WithLink() {
  DeviceSpec device;
  device.cost_table = {{"all_reduce_8_us", 1}, {"all_reduce_1000000_us", 1000}};
  return device;
}

std::vector<std::vector<Literal>> Results(const hlo::Module& module) {
  std::vector<std::vector<Literal>> arguments;
  for (int64_t device = 0; device < module.num_partitions; ++device) {
    arguments.push_back(RandomArguments(module, Inputs::kMild, static_cast<uint64_t>(device) + 1));
  }
  std::vector<std::vector<Literal>> results;
  for (const Literal& result : hlo::EvaluateSpmd(module, arguments)) results.push_back(hlo::FlattenLiteral(result));
  return results;
}

// Runs the pass and expects every device's results to have the bits that they had.
void RunAndExpectSameBits(hlo::Module& module, Pass& pass) {
  const auto before = Results(module);
  GenericContext context({}, WithLink());
  EXPECT_TRUE(pass.Run(module, context));
  for (hlo::Computation* computation : module.PostOrder()) RemoveDeadInstructions(computation);
  hlo::VerifyModule(module);
  const auto after = Results(module);
  for (size_t d = 0; d < before.size(); ++d) {
    for (size_t i = 0; i < before[d].size(); ++i) EXPECT_EQ(Difference(before[d][i], after[d][i], kBitwise), "");
  }
}

template <typename SomePass>
bool Changes(hlo::Module& module) {
  GenericContext context({}, WithLink());
  return SomePass().Run(module, context);
}

int64_t CountIn(const hlo::Computation& computation, Opcode opcode) {
  int64_t count = 0;
  for (const auto& instruction : computation.instructions()) count += instruction->Is(opcode) ? 1 : 0;
  return count;
}

constexpr const char* kHeader = R"(HloModule m, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
)";

std::unique_ptr<hlo::Module> ParseEntry(const std::string& entry) {
  std::string text = kHeader;
  text += entry;
  return Parse(text);
}

TEST(CombineCollectives, SmallOnesThatDoNotWaitForEachOtherBecomeOne) {
  const auto module = ParseEntry(R"(ENTRY e {
  x = f32[64] parameter(0)
  y = f32[8,5] parameter(1)
  z = f32[7] parameter(2)
  a = f32[64] all-reduce(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  b = f32[8,5] all-reduce(y), replica_groups={{0,1,2,3}}, channel_id=2, use_global_device_ids=true, to_apply=add
  c = f32[7] all-reduce(z), replica_groups={{0,1},{2,3}}, channel_id=3, use_global_device_ids=true, to_apply=add
  d = f32[7] all-reduce(z), replica_groups={{0,1,2,3}}, channel_id=4, use_global_device_ids=true, to_apply=max
  ROOT t = (f32[64], f32[8,5], f32[7], f32[7]) tuple(a, b, c, d)
})");
  CombineCollectives pass;
  RunAndExpectSameBits(*module, pass);
  // Other groups and other reducers stay apart.
  EXPECT_EQ(Count(*module, Opcode::kAllReduce), 3) << hlo::PrintModule(*module);
}

TEST(CombineCollectives, OneThatNeedsAnotherStaysBehindIt) {
  const auto module = ParseEntry(R"(ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  z = f32[64] parameter(2)
  a = f32[64] all-reduce(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  s = f32[64] multiply(a, y)
  b = f32[64] all-reduce(s), replica_groups={{0,1,2,3}}, channel_id=2, use_global_device_ids=true, to_apply=add
  c = f32[64] all-reduce(z), replica_groups={{0,1,2,3}}, channel_id=3, use_global_device_ids=true, to_apply=add
  ROOT t = (f32[64], f32[64]) tuple(b, c)
})");
  CombineCollectives pass;
  RunAndExpectSameBits(*module, pass);
  EXPECT_EQ(Count(*module, Opcode::kAllReduce), 2) << hlo::PrintModule(*module);
}

TEST(CombineCollectives, WhatTakesLongerToSendThanToStartStaysAlone) {
  const auto module = ParseEntry(R"(ENTRY e {
  x = f32[251] parameter(0)
  y = f32[251] parameter(1)
  a = f32[251] all-reduce(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  b = f32[251] all-reduce(y), replica_groups={{0,1,2,3}}, channel_id=2, use_global_device_ids=true, to_apply=add
  ROOT t = (f32[251], f32[251]) tuple(a, b)
})");
  EXPECT_FALSE(Changes<CombineCollectives>(*module));
}

TEST(CombineCollectives, GathersAndScattersAlongOneDimensionBecomeOneEach) {
  const auto module = ParseEntry(R"(ENTRY e {
  x = f32[8,3] parameter(0)
  y = f32[4,5,2] parameter(1)
  g = f32[32,3] all-gather(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, dimensions={0}
  h = f32[16,5,2] all-gather(y), replica_groups={{0,1,2,3}}, channel_id=2, use_global_device_ids=true, dimensions={0}
  i = f32[8,12] all-gather(x), replica_groups={{0,1,2,3}}, channel_id=3, use_global_device_ids=true, dimensions={1}
  s = f32[2,3] reduce-scatter(x), replica_groups={{0,1,2,3}}, channel_id=4, use_global_device_ids=true, dimensions={0}, to_apply=add
  t = f32[1,5,2] reduce-scatter(y), replica_groups={{0,1,2,3}}, channel_id=5, use_global_device_ids=true, dimensions={0}, to_apply=add
  u = f32[1,5,2] reduce-scatter(y), replica_groups={{0,1,2,3}}, channel_id=6, use_global_device_ids=true, dimensions={0}, to_apply=max
  ROOT r = (f32[32,3], f32[16,5,2], f32[8,12], f32[2,3], f32[1,5,2], f32[1,5,2]) tuple(g, h, i, s, t, u)
})");
  CombineCollectives pass;
  RunAndExpectSameBits(*module, pass);
  // Another dimension and another reducer stay apart.
  EXPECT_EQ(Count(*module, Opcode::kAllGather), 2) << hlo::PrintModule(*module);
  EXPECT_EQ(Count(*module, Opcode::kReduceScatter), 2) << hlo::PrintModule(*module);
}

TEST(CombineCollectives, AGatherIsAsLongAsWhatItGives) {
  const auto module = ParseEntry(R"(ENTRY e {
  x = f32[63] parameter(0)
  y = f32[63] parameter(1)
  a = f32[252] all-gather(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, dimensions={0}
  b = f32[252] all-gather(y), replica_groups={{0,1,2,3}}, channel_id=2, use_global_device_ids=true, dimensions={0}
  ROOT t = (f32[252], f32[252]) tuple(a, b)
})");
  EXPECT_FALSE(Changes<CombineCollectives>(*module));
}

// A sum over all four devices of which each keeps a quarter of the rows, by arithmetic or from a table.
struct Keeping {
  const char* name;
  const char* text;
  int64_t all_reduces, reduce_scatters;  // afterwards
};

constexpr const char* kSum =
    "  a = f32[8,6] all-reduce(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add\n";
constexpr const char* kIds = R"(
  x = f32[8,6] parameter(0)
  y = f32[8,6] parameter(1)
  id = u32[] partition-id()
  n = s32[] convert(id)
  zero = s32[] constant(0)
  two = s32[] constant(2)
  own = s32[] multiply(n, two)
)";

const Keeping kKeepings[] = {
    {"arithmetic", "ROOT r = f32[2,6] dynamic-slice(a, own, zero), dynamic_slice_sizes={2,6}", 0, 1},
    {"table", R"(table = s32[4] constant({0, 2, 4, 6})
  one = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  start = s32[] reshape(one)
  ROOT r = f32[2,6] dynamic-slice(a, start, zero), dynamic_slice_sizes={2,6})",
     0, 1},
    {"a start beyond the end, which is clamped, and one of a whole dimension", R"(table = s32[4] constant({-3, 2, 4, 9})
  one = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  start = s32[] reshape(one)
  ROOT r = f32[2,6] dynamic-slice(a, start, n), dynamic_slice_sizes={2,6})",
     0, 1},
    {"elementwise ops between", R"(half = f32[] constant(0.5)
  halves = f32[8,6] broadcast(half), dimensions={}
  mean = f32[8,6] multiply(a, halves)
  z = f32[8,6] subtract(y, mean)
  w = f32[8,6] multiply(mean, z)
  r = f32[2,6] dynamic-slice(z, own, zero), dynamic_slice_sizes={2,6}
  s = f32[2,6] dynamic-slice(w, own, zero), dynamic_slice_sizes={2,6}
  ROOT t = (f32[2,6], f32[2,6]) tuple(r, s))",
     0, 1},
    {"groups in another order than the devices",
     R"(b = f32[8,6] all-reduce(x), replica_groups={{3,1},{0,2}}, channel_id=2, use_global_device_ids=true, to_apply=add
  table = s32[4] constant({0, 4, 4, 0})
  one = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  start = s32[] reshape(one)
  r = f32[4,6] dynamic-slice(b, start, zero), dynamic_slice_sizes={4,6}
  ROOT t = (f32[8,6], f32[4,6]) tuple(a, r))",
     1, 1},
    {"another device's part", R"(three = s32[] constant(6)
  other = s32[] subtract(three, own)
  ROOT r = f32[2,6] dynamic-slice(a, other, zero), dynamic_slice_sizes={2,6})",
     1, 0},
    {"somebody else reads the whole", R"(r = f32[2,6] dynamic-slice(a, own, zero), dynamic_slice_sizes={2,6}
  t = f32[8,6] tanh(a)
  ROOT u = (f32[2,6], f32[8,6]) tuple(r, t))",
     1, 0},
    {"a part of both dimensions", "ROOT r = f32[2,3] dynamic-slice(a, own, zero), dynamic_slice_sizes={2,3}", 1, 0},
    {"a start that the program computes", R"(f = f32[1,1] slice(y), slice={[0:1], [0:1]}
  g = f32[] reshape(f)
  start = s32[] convert(g)
  ROOT r = f32[2,6] dynamic-slice(a, start, zero), dynamic_slice_sizes={2,6})",
     1, 0},
    {"one element of a tuple",
     R"(p = (f32[8,6], f32[8,6]) all-reduce(x, y), replica_groups={{0,1,2,3}}, channel_id=3, use_global_device_ids=true, to_apply=max
  p0 = f32[8,6] get-tuple-element(p), index=0
  p1 = f32[8,6] get-tuple-element(p), index=1
  r = f32[2,6] dynamic-slice(p1, own, zero), dynamic_slice_sizes={2,6}
  ROOT t = (f32[8,6], f32[8,6], f32[2,6]) tuple(a, p0, r))",
     2, 1},
    {"all elements of a tuple, along different dimensions", R"(z = f32[8,8] concatenate(x, y2), dimensions={1}
  p = (f32[8,6], f32[8,8]) all-reduce(y, z), replica_groups={{0,1,2,3}}, channel_id=3, use_global_device_ids=true, to_apply=max
  p0 = f32[8,6] get-tuple-element(p), index=0
  p1 = f32[8,8] get-tuple-element(p), index=1
  q = f32[2,6] dynamic-slice(p0, own, zero), dynamic_slice_sizes={2,6}
  r = f32[8,2] dynamic-slice(p1, zero, own), dynamic_slice_sizes={8,2}
  ROOT t = (f32[8,6], f32[2,6], f32[8,2]) tuple(a, q, r))",
     1, 2},
    {"two elements of a tuple that lead to one slice",
     R"(p = (f32[8,6], f32[8,6]) all-reduce(x, y), replica_groups={{0,1,2,3}}, channel_id=3, use_global_device_ids=true, to_apply=max
  p0 = f32[8,6] get-tuple-element(p), index=0
  p1 = f32[8,6] get-tuple-element(p), index=1
  s = f32[8,6] add(p0, p1)
  r = f32[2,6] dynamic-slice(s, own, zero), dynamic_slice_sizes={2,6}
  ROOT t = (f32[8,6], f32[2,6]) tuple(a, r))",
     1, 2},
};

TEST(ScatterReductions, OnlyWhereEachDeviceKeepsItsOwnPart) {
  for (const Keeping& keeping : kKeepings) {
    SCOPED_TRACE(keeping.name);
    const bool narrow = std::string_view(keeping.text).find("y2") != std::string_view::npos;
    const auto module =
        ParseEntry(fmt::format("ENTRY e {{{}{}{}  {}\n}}", kIds,
                               narrow ? "  y2 = f32[8,2] slice(y), slice={[0:8], [0:2]}\n" : "", kSum, keeping.text));
    if (keeping.reduce_scatters > 0) {
      ScatterReductions pass;
      RunAndExpectSameBits(*module, pass);
    } else {
      EXPECT_FALSE(Changes<ScatterReductions>(*module));
    }
    EXPECT_EQ(Count(*module, Opcode::kAllReduce), keeping.all_reduces) << hlo::PrintModule(*module);
    EXPECT_EQ(Count(*module, Opcode::kReduceScatter), keeping.reduce_scatters) << hlo::PrintModule(*module);
  }
}

// Weights that lie in parts are gathered for a product in every trip.
constexpr const char* kLoop = R"(HloModule m
body {
  t = (s32[], f32[8,16], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[8,16] get-tuple-element(t), index=1
  w = f32[16,16] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  whole = f32[16,16] copy(w), sharding={replicated}
  y = f32[8,16] dot(x, whole), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[8,16] tanh(y)
  ROOT r = (s32[], f32[8,16], f32[16,16]) tuple(j, z, w)
}
more {
  t = (s32[], f32[8,16], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  five = s32[] constant(5)
  ROOT p = pred[] compare(i, five), direction=LT
}
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[16,16] parameter(1), sharding={devices=[4,1]<=[4]}
  zero = s32[] constant(0)
  t = (s32[], f32[8,16], f32[16,16]) tuple(zero, x, w)
  l = (s32[], f32[8,16], f32[16,16]) while(t), condition=more, body=body
  ROOT r = f32[8,16] get-tuple-element(l), index=1
})";

TEST(HoistLoopInvariants, AGatherOfWhatNoTripChangesLeavesTheLoop) {
  const auto module = Partitioned(*Parse(kLoop), 4);
  const auto loop = [&] {
    for (hlo::Instruction* i : module->entry()->PostOrder()) {
      if (i->Is(Opcode::kWhile)) return i;
    }
    return static_cast<hlo::Instruction*>(nullptr);
  };
  ASSERT_EQ(CountIn(*loop()->while_body(), Opcode::kAllGather), 1) << hlo::PrintModule(*module);
  HoistLoopInvariants pass;
  RunAndExpectSameBits(*module, pass);
  EXPECT_EQ(CountIn(*loop()->while_body(), Opcode::kAllGather), 0) << hlo::PrintModule(*module);
  EXPECT_EQ(CountIn(*module->entry(), Opcode::kAllGather), 1) << hlo::PrintModule(*module);
}

TEST(HoistLoopInvariants, CollectivesOfHandWrittenProgramsStay) {
  // Its devices may run loops apart.
  const auto module = Partitioned(*Parse(kLoop), 4);
  module->frontend_attributes.erase("hlorun.partitioned");
  GenericContext context;
  EXPECT_FALSE(HoistLoopInvariants().Run(*module, context));
}

}  // namespace
}  // namespace hlorun::passes
