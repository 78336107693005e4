// Collectives beside kernels that do not need them: where starts and dones go, what memory they take, and the same
// bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/schedule.h"
#include "passes/spmd/overlap_collectives.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

// A link that takes a microsecond for a byte, so that small arrays are worth it, and kernels that take as long.
DeviceSpec SlowDevice() {
  DeviceSpec device;
  device.cost_table = {{"all_reduce_8_us", 8}, {"all_reduce_1000000_us", 1000000}};
  device.launch_us = 200;
  return device;
}

constexpr const char* kHeader = R"(HloModule m, num_partitions=2
add { add.l = f32[] parameter(0)  add.r = f32[] parameter(1)  ROOT add.s = f32[] add(add.l, add.r) }
mix { mix.l = f32[] parameter(0)  mix.r = f32[] parameter(1)  mix.s = f32[] add(mix.l, mix.r)  ROOT mix.t = f32[] tanh(mix.s) }
)";

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

struct Overlapped {
  std::unique_ptr<hlo::Module> module;
  BufferAssignment buffers;
  bool changed = false;
  std::vector<Remark> remarks = {};
  int64_t scheduled_arena = 0, arena = 0;  // bytes
};

// Schedules and overlaps; expects a module that verifies, whose buffers can be assigned, with the same results.
Overlapped Overlap(const std::string& entry, int64_t memory_limit = 0) {
  Overlapped result{Parse(fmt::format("{}{}", kHeader, entry)), {}};
  const auto before = Results(*result.module);
  const DeviceSpec device = SlowDevice();
  CompileOptions options;
  options.memory_limit = memory_limit;
  const GenericKernelModel kernels;
  PassContext context{device, options, kernels, {}};
  const auto arena = [&](const hlo::Module& module) {
    const auto planned = module.Clone();
    CopyInsertion().Run(*planned, context);
    return AssignBuffers(*planned, context).statistics().arena_bytes;
  };
  Schedule().Run(*result.module, context);
  result.scheduled_arena = arena(*result.module);
  result.changed = OverlapCollectives().Run(*result.module, context);
  hlo::VerifyModule(*result.module);
  const auto again = Parse(hlo::PrintModule(*result.module));
  for (const auto& [name, module] : {std::pair{"in memory", result.module.get()}, std::pair{"as text", again.get()}}) {
    SCOPED_TRACE(name);
    const auto after = Results(*module);
    for (size_t d = 0; d < before.size(); ++d) {
      for (size_t i = 0; i < before[d].size(); ++i) EXPECT_EQ(Difference(before[d][i], after[d][i], kBitwise), "");
    }
  }
  result.arena = arena(*result.module);
  CopyInsertion().Run(*result.module, context);
  result.buffers = AssignBuffers(*result.module, context);
  result.remarks = context.remarks;
  return result;
}

// Names of the entry's instructions in order of execution.
std::string OrderOf(const hlo::Module& module) {
  std::string order;
  for (const auto& i : module.entry()->instructions()) {
    if (i->Is(Opcode::kParameter) || i->IsConstant() || i->Is(Opcode::kTuple)) continue;
    order += (order.empty() ? "" : " ") + i->name();
  }
  return order;
}

TEST(OverlapCollectives, WhatDoesNotNeedTheSumRunsBesideIt) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  y = f32[16,16] parameter(1)
  s = f32[16,16] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  t = f32[16,16] tanh(s)
  d = f32[16,16] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[16,16] dot(d, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[16,16] dot(e, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[16,16] dot(f, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[16,16] dot(g, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = f32[16,16] dot(h, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[16,16] add(t, i)
})");
  // The sum takes about a millisecond, a product a fifth of it.
  EXPECT_EQ(OrderOf(*result.module), "s-start d e f g h i s-done t r") << hlo::PrintModule(*result.module);
  ASSERT_EQ(result.remarks.size(), 1u);
  EXPECT_EQ(OneLine(result.remarks[0]), "%s: started early: beside it run %d, %e, %f, 3 more");
  EXPECT_THAT(result.remarks[0].cost, ::testing::MatchesRegex("about 1.* us on the link, of which 0 stay exposed .*"));
}

TEST(OverlapCollectives, WhatNothingRunsBesideIsSaidToBeExposed) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  s = f32[16,16] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  ROOT t = f32[16,16] tanh(s)
})");
  EXPECT_FALSE(result.changed);
  ASSERT_EQ(result.remarks.size(), 1u);
  EXPECT_EQ(OneLine(result.remarks[0]), "%s: apart: nothing that takes as long is left to run beside it");
}

// Two layers' gradients: the first is summed while the second is computed, and the sums stay in order.
TEST(OverlapCollectives, SumsOfGradientsFollowOneAnother) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  y = f32[16,16] parameter(1)
  d2 = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s2 = f32[16,16] all-reduce(d2), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  n2 = f32[16,16] subtract(x, s2)
  b = f32[16,16] dot(d2, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d1 = f32[16,16] dot(b, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s1 = f32[16,16] all-reduce(d1), replica_groups={{0,1}}, channel_id=2, use_global_device_ids=true, to_apply=add
  n1 = f32[16,16] subtract(y, s1)
  ROOT r = (f32[16,16], f32[16,16]) tuple(n2, n1)
})");
  EXPECT_EQ(OrderOf(*result.module), "d2 s2-start b d1 s1-start s2-done n2 s1-done n1")
      << hlo::PrintModule(*result.module);
}

TEST(OverlapCollectives, NothingBesideItAndItStays) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  y = f32[16,16] tanh(x)
  s = f32[16,16] all-reduce(y), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  ROOT t = f32[16,16] tanh(s)
})");
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(OrderOf(*result.module), "y s t");
  EXPECT_EQ(Count(*result.module, Opcode::kAllReduce), 1);
}

TEST(OverlapCollectives, ShortOnesAndReducersThatAreKernelsStay) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  z = f32[4] parameter(1)
  s = f32[4] all-reduce(z), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  u = f32[16,16] all-reduce(x), replica_groups={{0,1}}, channel_id=2, use_global_device_ids=true, to_apply=mix
  d = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[16,16] dot(d, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[4], f32[16,16], f32[16,16]) tuple(s, u, e)
})");
  EXPECT_FALSE(result.changed);
}

// Six gathers, each used up by a product: started all at once they would take six times the memory.
TEST(OverlapCollectives, KeepsToTheMemoryOfTheSchedule) {
  std::string text =
      "ENTRY e {\n  z = f32[16,16] parameter(0)\n  w = f32[16,32] parameter(1)\n  s0 = f32[16,16] tanh(z)\n";
  for (int i = 0; i < 6; ++i) {
    text += fmt::format(R"(  x{0} = f32[16,16] parameter({1})
  g{0} = f32[32,16] all-gather(x{0}), replica_groups={{{{0,1}}}}, channel_id={1}, use_global_device_ids=true, dimensions={{0}}
  h{0} = f32[16,16] dot(w, g{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s{2} = f32[16,16] add(s{0}, h{0})
)",
                        i, i + 2, i + 1);
  }
  text += "  ROOT r = f32[16,16] tanh(s6)\n}";
  const Overlapped freely = Overlap(text);
  EXPECT_EQ(Count(*freely.module, Opcode::kAsyncStart), 6);
  EXPECT_GT(freely.arena, freely.scheduled_arena);
  constexpr int64_t kArray = 16 * 16 * 4, kArguments = 9 * kArray;
  const Overlapped limited = Overlap(text, kArguments + freely.scheduled_arena + 3 * kArray);
  EXPECT_TRUE(limited.changed);
  EXPECT_LE(limited.arena, freely.scheduled_arena + 3 * kArray);
  const Overlapped tightly = Overlap(text, kArguments);
  EXPECT_LE(tightly.arena, tightly.scheduled_arena);
}

TEST(OverlapCollectives, EveryKindAndSeveralOperands) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  y = f32[16,16] parameter(1)
  a = (f32[16,16], f32[16,16]) all-reduce(x, y), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  a0 = f32[16,16] get-tuple-element(a), index=0
  a1 = f32[16,16] get-tuple-element(a), index=1
  b = f32[32,16] all-gather(x), replica_groups={{0,1}}, channel_id=2, use_global_device_ids=true, dimensions={0}
  c = f32[8,16] reduce-scatter(y), replica_groups={{0,1}}, channel_id=3, use_global_device_ids=true, dimensions={0}, to_apply=add
  d = f32[16,16] all-to-all(x), replica_groups={{0,1}}, channel_id=4, dimensions={1}
  f = f32[16,16] collective-permute(x), channel_id=5, source_target_pairs={{0,1},{1,0}}
  k0 = f32[16,16] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k1 = f32[16,16] dot(k0, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k2 = f32[16,16] dot(k1, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k3 = f32[16,16] dot(k2, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k4 = f32[16,16] dot(k3, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t0 = f32[16,16] tanh(a0)
  t1 = f32[16,16] tanh(a1)
  t2 = f32[32,16] tanh(b)
  t3 = f32[8,16] tanh(c)
  t4 = f32[16,16] tanh(d)
  t5 = f32[16,16] tanh(f)
  ROOT r = (f32[16,16], f32[16,16], f32[32,16], f32[8,16], f32[16,16], f32[16,16], f32[16,16]) tuple(t0, t1, t2, t3, t4, t5, k4)
})");
  EXPECT_TRUE(result.changed);
  EXPECT_GT(Count(*result.module, Opcode::kAsyncStart), 2) << hlo::PrintModule(*result.module);
  EXPECT_EQ(Count(*result.module, Opcode::kAsyncStart), Count(*result.module, Opcode::kAsyncDone));
}

// The memory of operand and result belongs to the collective until its done.
TEST(OverlapCollectives, NothingElseUsesItsBuffersUntilTheDone) {
  const Overlapped result = Overlap(R"(ENTRY e {
  x = f32[16,16] parameter(0)
  o = f32[16,16] tanh(x)
  s = f32[16,16] all-reduce(o), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
  d = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[16,16] dot(d, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[16,16] dot(e, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[48,16] concatenate(d, e, f), dimensions={0}
  u = f32[16,16] slice(c), slice={[8:24], [0:16]}
  ROOT r = f32[16,16] add(s, u)
})");
  ASSERT_TRUE(result.changed) << hlo::PrintModule(*result.module);
  const Instruction* start = nullptr;
  int64_t between = 0;
  for (const auto& i : result.module->entry()->instructions()) {
    if (i->Is(Opcode::kAsyncDone)) break;
    if (start != nullptr && i->shape().IsArray() && !i->IsConstant() && !i->Is(Opcode::kParameter)) {
      ++between;
      for (const int64_t leaf : {0, 1}) {
        EXPECT_FALSE(result.buffers.SliceOf(i.get()).Overlaps(result.buffers.SliceOf(start, leaf))) << i->name();
      }
    }
    if (i->Is(Opcode::kAsyncStart)) start = i.get();
  }
  EXPECT_GE(between, 3);
}

}  // namespace
}  // namespace hlorun::passes
