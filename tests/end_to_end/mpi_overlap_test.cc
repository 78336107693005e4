// Collectives that run while kernels do: the evaluator's values, and the same bits whether they overlap or not, in
// process, over shared windows, by messages, and on a link that takes its time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/arrays/array_set.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "tests/end_to_end/command.h"
#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using testing_support::CommandResult;
using testing_support::Mpirun;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

// Sums of a megabyte beside products, twice under way at once, and in each trip of a loop.
std::string Module(int64_t devices) {
  return fmt::format(R"(HloModule beside, num_partitions={0}
add {{ add.l = f32[] parameter(0)  add.r = f32[] parameter(1)  ROOT add.s = f32[] add(add.l, add.r) }}
largest {{ max.l = f32[] parameter(0)  max.r = f32[] parameter(1)  ROOT max.s = f32[] maximum(max.l, max.r) }}
body {{
  c = (s32[], f32[512,512], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  w = f32[512,512] get-tuple-element(c), index=1
  z = f32[256,256] get-tuple-element(c), index=2
  v = f32[256,256] get-tuple-element(c), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  m = f32[512,512] all-reduce(w), channel_id=4, use_global_device_ids=true, to_apply=largest, replica_groups=[1,{0}]<=[{0}]
  z1 = f32[256,256] dot(z, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  z2 = f32[256,256] tanh(z1)
  n = f32[512,512] subtract(m, w)
  ROOT next = (s32[], f32[512,512], f32[256,256], f32[256,256]) tuple(j, n, z2, v)
}}
more {{
  mc = (s32[], f32[512,512], f32[256,256], f32[256,256]) parameter(0)
  mi = s32[] get-tuple-element(mc), index=0
  three = s32[] constant(3)
  ROOT p = pred[] compare(mi, three), direction=LT
}}
ENTRY main {{
  x = f32[512,512] parameter(0)
  y = f32[256,256] parameter(1)
  s = f32[512,512] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups=[1,{0}]<=[{0}]
  d = f32[256,256] dot(y, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  e = f32[256,256] tanh(d)
  k = f32[512,512] tanh(x)
  t = f32[512,512] all-reduce(k), channel_id=2, use_global_device_ids=true, to_apply=add, replica_groups=[1,{0}]<=[{0}]
  f = f32[256,256] dot(e, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  small = f32[2,256] slice(f), slice={{[0:2], [0:256]}}
  u = f32[2,256] all-reduce(small), channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups=[1,{0}]<=[{0}]
  g = f32[256,256] tanh(f)
  zero = s32[] constant(0)
  first = (s32[], f32[512,512], f32[256,256], f32[256,256]) tuple(zero, k, g, y)
  l = (s32[], f32[512,512], f32[256,256], f32[256,256]) while(first), condition=more, body=body
  a = f32[512,512] get-tuple-element(l), index=1
  b = f32[256,256] get-tuple-element(l), index=2
  r = f32[512,512] multiply(s, t)
  ROOT all = (f32[512,512], f32[2,256], f32[512,512], f32[256,256]) tuple(r, u, a, b)
}}
)",
                     devices);
}

// Inputs of each device, and what the evaluator makes of them.
void WriteArrays(const TemporaryFolder& folder, const std::string& text, int64_t devices) {
  const auto module = hlo::ParseModule(text);
  std::vector<std::vector<hlo::Literal>> arguments;
  for (int64_t d = 0; d < devices; ++d) {
    std::vector<hlo::Literal> arrays;
    for (const hlo::Instruction* parameter : module->entry()->parameters()) {
      hlo::Literal x(parameter->shape().WithoutLayout());
      for (int64_t i = 0; i < x.ElementCount(); ++i) {
        x.SetDouble(i, static_cast<double>((i * 7919 + d * 31) % 257 - 128) / 1024);
      }
      arrays.push_back(std::move(x));
    }
    SaveArrays(folder / fmt::format("in/rank_{}", d), arrays);
    arguments.push_back(std::move(arrays));
  }
  const std::vector<hlo::Literal> expected = hlo::EvaluateSpmd(*module, arguments);
  for (int64_t d = 0; d < devices; ++d)
    SaveArrays(folder / fmt::format("expected/rank_{}", d), expected[static_cast<size_t>(d)].elements());
}

class MpiOverlapTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(MpiOverlapTest, HasTheSameBitsWhetherCollectivesOverlapOrNot) {
  const int64_t n = GetParam();
  const TemporaryFolder folder;
  const std::string text = Module(n), path = folder.Write("module.hlo", text);
  WriteArrays(folder, text, n);

  const std::string in_process = fmt::format(HLORUN_BINARY " --devices={}", n);
  const std::string ranks = Mpirun(static_cast<int>(n)) + HLORUN_BINARY;
  const std::pair<const char*, std::string> jobs[] = {
      {"apart", "HLORUN_OVERLAP=0 " + in_process},
      {"in_process", "HLORUN_OVERLAP=1 " + in_process + " --dump_to=" + (folder / "dump")},
      {"window", "HLORUN_OVERLAP=1 " + ranks},
      {"messages", "HLORUN_NODE_WINDOW=0 " + ranks},
      {"timed", "HLORUN_TIMED_LINK=100,1 " + ranks},
      {"timed_in_process", "HLORUN_TIMED_LINK=100,1 " + in_process}};
  for (const auto& [name, command] : jobs) {
    const CommandResult result =
        RunCommand(command + " --iterations=3 --inputs=" + (folder / "in") + " --expect=" + (folder / "expected") +
                   " --outputs=" + (folder / name) + " " + path);
    ASSERT_EQ(result.exit_code, 0) << name << "\n" << result.err;
    EXPECT_EQ(RunCommand("diff -r " + (folder / name) + " " + (folder / "apart")).exit_code, 0) << name;
  }
  const CommandResult profile = RunCommand("HLORUN_OVERLAP=1 " + in_process + " --profile " + path);
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_THAT(profile.err, ::testing::HasSubstr("-done [await]"));
  const CommandResult starts = RunCommand("cat " + (folder / "dump") + "/*plan.txt");
  EXPECT_THAT(starts.out, ::testing::HasSubstr("started as 2"));
  EXPECT_THAT(starts.out, ::testing::HasSubstr("await 2"));
}

INSTANTIATE_TEST_SUITE_P(Devices, MpiOverlapTest, ::testing::Values(2, 3));

// A gathered operand, and sums of products, each device's part and whole: in one piece between devices of one process,
// in parts over a network.
std::string Products(int64_t devices) {
  return fmt::format(R"(HloModule products, num_partitions={0}
add {{ l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT s = f32[] add(l, r) }}
ENTRY main {{
  x = f32[256,512] parameter(0)
  w = f32[512,128] parameter(1)
  v = f32[128,512] parameter(2)
  a = f32[{1},512] all-gather(x), dimensions={{0}}, channel_id=1, use_global_device_ids=true, replica_groups=[1,{0}]<=[{0}]
  y = f32[{1},128] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{1},128] tanh(y)
  z = f32[{1},512] dot(t, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  p = f32[256,512] reduce-scatter(z), dimensions={{0}}, channel_id=2, use_global_device_ids=true, replica_groups=[1,{0}]<=[{0}], to_apply=add
  q = f32[256,512] tanh(p)
  g = f32[512,512] dot(x, q), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  h = f32[512,512] all-reduce(g), channel_id=3, use_global_device_ids=true, replica_groups=[1,{0}]<=[{0}], to_apply=add
  ROOT r = (f32[256,512], f32[{1},128], f32[512,512]) tuple(p, t, h)
}}
)",
                     devices, 256 * devices);
}

TEST_P(MpiOverlapTest, ProductsInPartsHaveTheSameBits) {
  const int64_t n = GetParam();
  const TemporaryFolder folder;
  const std::string text = Products(n), path = folder.Write("products.hlo", text);
  WriteArrays(folder, text, n);
  const std::string in_process = fmt::format(HLORUN_BINARY " --devices={}", n);
  const std::string ranks = Mpirun(static_cast<int>(n)) + HLORUN_BINARY;
  const std::pair<const char*, std::string> jobs[] = {
      {"whole", in_process},
      {"timed", "HLORUN_TIMED_LINK=20,0.8 " + in_process + " --dump_to=" + (folder / "dump")},
      {"messages", "HLORUN_NODE_WINDOW=0 " + ranks}};
  for (const auto& [name, command] : jobs) {
    const CommandResult result =
        RunCommand(command + " --iterations=2 --inputs=" + (folder / "in") + " --expect=" + (folder / "expected") +
                   " --outputs=" + (folder / name) + " " + path);
    ASSERT_EQ(result.exit_code, 0) << name << "\n" << result.err;
    EXPECT_EQ(RunCommand("diff -r " + (folder / name) + " " + (folder / "whole")).exit_code, 0) << name;
  }
  const CommandResult plan = RunCommand("cat " + (folder / "dump") + "/*plan.txt");
  EXPECT_THAT(plan.out, ::testing::HasSubstr("collective-permute"));
  EXPECT_THAT(plan.out, ::testing::Not(::testing::HasSubstr("all-gather")));
  EXPECT_THAT(plan.out, ::testing::Not(::testing::HasSubstr("reduce-scatter")));
  const size_t first = plan.out.find("  all-reduce ("), last = plan.out.rfind("  all-reduce (");
  EXPECT_NE(first, last) << plan.out;
}

TEST(TimedLink, WhatIsNoLinkIsAnError) {
  const TemporaryFolder folder;
  const CommandResult result =
      RunCommand("HLORUN_TIMED_LINK=fast " HLORUN_BINARY " --devices=2 " + folder.Write("module.hlo", Module(2)));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, ::testing::HasSubstr("give microseconds and gigabytes a second"));
}

}  // namespace
}  // namespace hlorun
