// What becomes of collectives after partitioning: fewer messages, outside of loops, and the same bits.
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/control/loop_invariants.h"
#include "passes/simplify/dce.h"
#include "passes/spmd/combine_collectives.h"
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
  for (const Literal& result : hlo::EvaluateSpmd(module, arguments)) {
    results.push_back(result.shape().IsTuple() ? result.elements() : std::vector<Literal>{result});
  }
  return results;
}

// Runs the pass and expects every device's results to have the bits that they had.
void RunAndExpectSameBits(hlo::Module& module, Pass& pass) {
  const auto before = Results(module);
  const DeviceSpec device = WithLink();
  const CompileOptions options;
  const GenericKernelModel kernels;
  PassContext context{device, options, kernels, {}};
  EXPECT_TRUE(pass.Run(module, context));
  for (hlo::Computation* computation : module.PostOrder()) RemoveDeadInstructions(computation);
  hlo::VerifyModule(module);
  const auto after = Results(module);
  for (size_t d = 0; d < before.size(); ++d) {
    for (size_t i = 0; i < before[d].size(); ++i) EXPECT_EQ(Difference(before[d][i], after[d][i], kBitwise), "");
  }
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
  const DeviceSpec device = WithLink();
  const CompileOptions options;
  const GenericKernelModel kernels;
  PassContext context{device, options, kernels, {}};
  EXPECT_FALSE(CombineCollectives().Run(*module, context));
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
  const DeviceSpec device;
  const CompileOptions options;
  const GenericKernelModel kernels;
  PassContext context{device, options, kernels, {}};
  EXPECT_FALSE(HoistLoopInvariants().Run(*module, context));
}

}  // namespace
}  // namespace hlorun::passes
