// Products a part at a time, beside the exchange of their operands or sums: on every device the same bits.
#include "passes/spmd/windowed_dots.h"

#include <gtest/gtest.h>

#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/generic_context.h"
#include "passes/simplify/dce.h"
#include "passes/spmd/product_parts.h"
#include "passes/spmd/uniform_predicates.h"
#include "tests/passes/spmd/exchange_test_support.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

struct Windowed {
  bool changed = false;
  int64_t permutes = 0, dots = 0, others = 0;  // other collectives
};

// What the pass makes of `entry`, whose bits stay what they were. (The evaluator adds devices one after the other,
// where runs add them as a tree: of more than two the sums are near.)
Windowed After(int64_t devices, const std::string& entry, const DeviceSpec& spec = SlowExchanges(),
               const char* attribute = "") {
  const bool is_near = devices > 2 && entry.find("reduce-scatter") != std::string::npos;
  const auto module = Parse(fmt::format(
      "HloModule m, num_partitions={}\nadd {{ l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT s = f32[] add(l, r) }}\n"
      "max {{ l2 = f32[] parameter(0)  r2 = f32[] parameter(1)  ROOT s2 = f32[] maximum(l2, r2) }}\n{}",
      devices, entry));
  if (*attribute != '\0') module->frontend_attributes[attribute] = "true";
  const auto before = ResultsOfAll(*module);
  GenericContext context({}, spec);
  Windowed outcome;
  outcome.changed = WindowDots().Run(*module, context);
  for (hlo::Computation* computation : module->PostOrder()) RemoveDeadInstructions(computation);
  hlo::VerifyModule(*module);
  ExpectSameResults(before, *module, is_near ? kRounding : kBitwise);
  for (const auto& i : module->entry()->instructions()) {
    if (i->Is(Opcode::kCollectivePermute))
      ++outcome.permutes;
    else if (i->Has(hlo::kCollective))
      ++outcome.others;
    if (i->Is(Opcode::kDot)) ++outcome.dots;
  }
  return outcome;
}

TEST(WindowDots, AProductThatIsTheResult) {
  const Windowed outcome = After(2, R"(ENTRY e { x = f32[8,16] parameter(0)  w = f32[16,32] parameter(1)
a = f32[16,16] all-gather(x), dimensions={0}, channel_id=1, use_global_device_ids=true, replica_groups=[1,2]<=[2]
ROOT y = f32[16,32] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} })");
  EXPECT_EQ(outcome.permutes, 1);
}

// `rows`: of each device's part, which becomes the product's left or right operand.
std::string Gather(int64_t rows, int64_t parts, const std::string& groups, bool is_lhs) {
  const std::string shape = is_lhs ? fmt::format("f32[{},32]", rows * parts) : fmt::format("f32[32,{}]", rows * parts);
  return fmt::format(
      "ENTRY e {{ x = f32[{0},16] parameter(0)  w = f32[16,32] parameter(1)\n"
      "a = f32[{1},16] all-gather(x), dimensions={{0}}, channel_id=1, use_global_device_ids=true, replica_groups={2}\n"
      "y = {3} dot({4}\n"
      "ROOT r = {3} tanh(y) }}\n",
      rows, rows * parts, groups, shape,
      is_lhs ? "a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
             : "w, a), lhs_contracting_dims={0}, rhs_contracting_dims={1}");
}

std::string OneGroup(int64_t devices) { return fmt::format("[1,{0}]<=[{0}]", devices); }

TEST(WindowDots, ProductsOfGatheredOperands) {
  for (const bool is_lhs : {true, false}) {
    for (const int64_t devices : {2, 3, 4}) {
      const Windowed outcome = After(devices, Gather(8, devices, OneGroup(devices), is_lhs));
      EXPECT_EQ(outcome.permutes, devices - 1);
      EXPECT_EQ(outcome.dots, devices);
      EXPECT_EQ(outcome.others, 0);
    }
  }
}

TEST(WindowDots, GroupsOfOtherOrders) {
  const Windowed outcome = After(4, Gather(16, 2, "{{2,0},{1,3}}", false));
  EXPECT_EQ(outcome.permutes, 1);
  EXPECT_EQ(outcome.others, 0);
}

std::string Scatter(int64_t parts, const std::string& groups, const std::string& reducer, int64_t dimension) {
  const int64_t rows = dimension == 0 ? 32 / parts : 32, columns = dimension == 1 ? 32 / parts : 32;
  return fmt::format(
      "ENTRY e {{ x = f32[32,16] parameter(0)  w = f32[16,32] parameter(1)\n"
      "y = f32[32,32] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
      "a = f32[{0},{1}] reduce-scatter(y), dimensions={{{2}}}, channel_id=1, use_global_device_ids=true, "
      "replica_groups={3}, to_apply={4}\n"
      "ROOT r = f32[{0},{1}] tanh(a) }}\n",
      rows, columns, dimension, groups, reducer);
}

TEST(WindowDots, SumsOfProducts) {
  for (const int64_t dimension : {0, 1}) {
    for (const int64_t devices : {2, 4, 8}) {
      const Windowed outcome = After(devices, Scatter(devices, OneGroup(devices), "add", dimension));
      EXPECT_EQ(outcome.permutes, devices - 1) << devices;
      EXPECT_EQ(outcome.dots, devices);
      EXPECT_EQ(outcome.others, 0);
    }
  }
  EXPECT_EQ(After(4, Scatter(2, "{{3,1},{0,2}}", "add", 0)).permutes, 1);
}

TEST(WindowDots, WhatIsNoSumOrTooShortStaysWhole) {
  EXPECT_FALSE(After(2, Scatter(2, OneGroup(2), "max", 0)).changed);
  EXPECT_FALSE(After(2, Gather(1, 2, OneGroup(2), false)).changed);
  // The gathered dimension is summed over.
  EXPECT_FALSE(After(2, R"(ENTRY e { x = f32[8,32] parameter(0)  w = f32[16,32] parameter(1)
a = f32[16,32] all-gather(x), dimensions={0}, channel_id=1, use_global_device_ids=true, replica_groups=[1,2]<=[2]
y = f32[32,32] dot(a, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
ROOT r = f32[32,32] tanh(y) })")
                   .changed);
  // Somebody else reads all of it.
  EXPECT_FALSE(After(2, R"(ENTRY e { x = f32[8,16] parameter(0)  w = f32[16,32] parameter(1)
a = f32[16,16] all-gather(x), dimensions={0}, channel_id=1, use_global_device_ids=true, replica_groups=[1,2]<=[2]
y = f32[16,32] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT r = (f32[16,32], f32[16,16]) tuple(y, a) })")
                   .changed);
}

TEST(WindowDots, OnlyWhereExchangesRunBesideKernels) {
  const std::string text = Gather(8, 2, OneGroup(2), false);
  EXPECT_FALSE(After(2, text, SlowExchanges(DeviceClass::kCpu)).changed);
  EXPECT_TRUE(After(2, text, SlowExchanges(DeviceClass::kCpu), kOverNetwork).changed);
  EXPECT_FALSE(After(2, text, SlowExchanges(), spmd::kMixedDevices).changed);
  DeviceSpec fast = SlowExchanges();
  fast.f32_gflops = 1000;  // nothing to compute beside a message
  EXPECT_FALSE(After(2, text, fast).changed);
}

}  // namespace
}  // namespace hlorun::passes
