// Sums of products over the devices in parts: which ones, how many parts, and on every device the same bits.
#include "passes/spmd/split_sums.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/generic_context.h"
#include "passes/simplify/dce.h"
#include "passes/spmd/link.h"
#include "passes/spmd/product_parts.h"
#include "tests/passes/spmd/exchange_test_support.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Counts {
  bool changed = false;
  int64_t sums = 0, dots = 0;
  std::string text;
};

// Kernels of products copy this operand first.
class Copying : public GenericKernelModel {
 public:
  explicit Copying(std::vector<int64_t> operands) : operands_(std::move(operands)) {}
  std::vector<int64_t> CopiedOperands(const Instruction& i) const override {
    return i.Is(Opcode::kDot) ? operands_ : std::vector<int64_t>{};
  }

 private:
  std::vector<int64_t> operands_;
};

// What the pass makes of `entry`, whose bits stay what they were on each device.
Counts After(const std::string& entry, const DeviceSpec& spec = SlowExchanges(), const std::string& attribute = "",
             const KernelModel& kernels = GenericKernelModel()) {
  const auto module = Parse(fmt::format(
      "HloModule m, num_partitions=2\nadd {{ l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT s = f32[] add(l, r) }}\n"
      "mix {{ l2 = f32[] parameter(0)  r2 = f32[] parameter(1)  d2 = f32[] add(l2, r2)  ROOT s2 = f32[] tanh(d2) }}\n{}",
      entry));
  if (!attribute.empty()) module->frontend_attributes[attribute] = "true";
  const auto before = ResultsOfAll(*module);
  GenericContext context({}, spec, kernels);
  Counts counts;
  counts.changed = SplitSums().Run(*module, context);
  for (hlo::Computation* computation : module->PostOrder()) RemoveDeadInstructions(computation);
  hlo::VerifyModule(*module);
  counts.text = hlo::PrintModule(*module);
  ExpectSameResults(before, *module, kBitwise);
  for (const hlo::Computation* computation : module->PostOrder()) {
    for (const auto& i : computation->instructions()) {
      counts.sums += i->Is(Opcode::kAllReduce) ? 1 : 0;
      counts.dots += i->Is(Opcode::kDot) ? 1 : 0;
    }
  }
  return counts;
}

// `name` = the sum of a product of [m,k] and [k,n].
std::string Sum(const std::string& name, const std::string& lhs, const std::string& rhs, int64_t m, int64_t n,
                int channel, const std::string& reducer = "add") {
  return fmt::format(
      "{0}_dot = f32[{3},{4}] dot({1}, {2}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
      "{0} = f32[{3},{4}] all-reduce({0}_dot), channel_id={5}, use_global_device_ids=true, replica_groups=[1,2]<=[2], "
      "to_apply={6}\n",
      name, lhs, rhs, m, n, channel, reducer);
}

std::string Layer(int64_t m, int64_t n, const std::string& reducer = "add") {
  return fmt::format(
      "ENTRY e {{ x = f32[{},16] parameter(0)  w = f32[16,{}] parameter(1)\n{}ROOT t = f32[{},{}] tanh(a) }}\n", m, n,
      Sum("a", "x", "w", m, n, 1, reducer), m, n);
}

TEST(SplitSums, AProductWithNothingBesideItsSum) {
  const Counts counts = After(Layer(64, 32));
  EXPECT_GT(counts.sums, 1);
  EXPECT_EQ(counts.dots, counts.sums);
}

TEST(SplitSums, TheLargerOperandIsCut) {
  EXPECT_NE(After(Layer(256, 8)).text.find("f32[64,8]"), std::string::npos);
  EXPECT_NE(After(Layer(8, 256)).text.find("f32[8,64]"), std::string::npos);
}

// Parts share a copy of what is not cut.
TEST(SplitSums, WhatIsCopiedOnceStaysWhole) {
  const std::string text = Layer(128, 128);
  EXPECT_NE(After(text, SlowExchanges(), "", Copying({1})).text.find("f32[16,128] dot"), std::string::npos);
  EXPECT_NE(After(text, SlowExchanges(), "", Copying({0})).text.find("f32[128,16] dot"), std::string::npos);
}

TEST(SplitSums, TheResultItself) {
  std::string text = Layer(64, 32);
  text.replace(text.find("ROOT t"), 6, "t");
  text.replace(text.rfind("a = "), 4, "ROOT a = ");
  EXPECT_GT(After(text).sums, 1);
}

// Each of two gradients' sums may run beside the other's product: the one whose product is computed first does.
TEST(SplitSums, OfSeveralOnlyTheLast) {
  const Counts counts = After(fmt::format(
      "ENTRY e {{ x = f32[64,64] parameter(0)  w = f32[64,64] parameter(1)\n{}"
      "u = f32[64,64] tanh(w)  v = f32[64,64] dot(u, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n{}"
      "ROOT r = (f32[64,64], f32[64,64]) tuple(a, b) }}\n",
      Sum("a", "x", "w", 64, 64, 1), Sum("b", "v", "w", 64, 64, 2)));
  EXPECT_EQ(counts.text.find("b = f32[64,64] all-reduce"), std::string::npos);
  EXPECT_NE(counts.text.find("a = f32[64,64] all-reduce"), std::string::npos) << counts.text;
}

// One product runs beside the first sum, which is as long; but the link has to take the other sum too.
TEST(SplitSums, BothWhereTheLinkIsBusyToTheEnd) {
  const Counts counts = After("ENTRY e { x = f32[64,64] parameter(0)  w = f32[64,64] parameter(1)\n" +
                              Sum("a", "x", "w", 64, 64, 1) + "u = f32[64,64] tanh(w)\n" +
                              Sum("b", "u", "w", 64, 64, 2) + "ROOT r = (f32[64,64], f32[64,64]) tuple(a, b) }\n");
  EXPECT_EQ(counts.text.find("b = f32[64,64] all-reduce"), std::string::npos);
  EXPECT_EQ(counts.text.find("a = f32[64,64] all-reduce"), std::string::npos) << counts.text;
}

TEST(SplitSums, EachOfAChainInLoopsToo) {
  const std::string body =
      "body { p = (s32[], f32[64,64], f32[64,64]) parameter(0)\n"
      "i = s32[] get-tuple-element(p), index=0\none = s32[] constant(1)\nnext = s32[] add(i, one)\n"
      "x = f32[64,64] get-tuple-element(p), index=1\nw = f32[64,64] get-tuple-element(p), index=2\n" +
      Sum("a", "x", "w", 64, 64, 1) + "t = f32[64,64] tanh(a)\n" + Sum("b", "t", "w", 64, 64, 2) +
      "t2 = f32[64,64] tanh(b)\n"
      "ROOT r = (s32[], f32[64,64], f32[64,64]) tuple(next, t2, w) }\n";
  const Counts counts =
      After(body +
            "cond { q = (s32[], f32[64,64], f32[64,64]) parameter(0)\nj = s32[] get-tuple-element(q), index=0\n"
            "two = s32[] constant(2)\nROOT c = pred[] compare(j, two), direction=LT }\n"
            "ENTRY e { zero = s32[] constant(0)  x0 = f32[64,64] parameter(0)  w0 = f32[64,64] parameter(1)\n"
            "t0 = (s32[], f32[64,64], f32[64,64]) tuple(zero, x0, w0)\n"
            "ROOT l = (s32[], f32[64,64], f32[64,64]) while(t0), condition=cond, body=body }\n");
  EXPECT_GE(counts.sums, 4);
  EXPECT_EQ(counts.dots, counts.sums);
}

TEST(SplitSums, WhatIsTooShortOddOrReadTwiceStaysWhole) {
  EXPECT_FALSE(After(Layer(4, 4)).changed);
  EXPECT_FALSE(After(Layer(63, 33)).changed);
  EXPECT_FALSE(After(Layer(64, 32, "mix")).changed);
  std::string text = Layer(64, 32);
  text.replace(text.find("ROOT t = f32[64,32] tanh(a)"), 27, "ROOT t = f32[64,32] add(a, a_dot)");
  EXPECT_FALSE(After(text).changed);
}

TEST(SplitSums, OnlyWhereExchangesRunBesideKernels) {
  const std::string text = Layer(64, 32);
  EXPECT_FALSE(After(text, SlowExchanges(DeviceClass::kCpu)).changed);
  EXPECT_TRUE(After(text, SlowExchanges(DeviceClass::kCpu), kOverNetwork).changed);
  DeviceSpec quick = SlowExchanges();
  spmd::SetLink(quick, {.latency = 1e-6, .bandwidth = 1e12});
  EXPECT_FALSE(After(text, quick).changed);
}

TEST(Link, IsWhatWasSet) {
  DeviceSpec device = SlowExchanges();
  for (const spmd::Link& link : {spmd::Link{2e-5, 1e9}, spmd::Link{1e-3, 2.5e7}}) {
    spmd::SetLink(device, link);
    EXPECT_NEAR(spmd::LinkOf(device).latency, link.latency, 1e-9);
    EXPECT_NEAR(spmd::LinkOf(device).bandwidth, link.bandwidth, link.bandwidth * 1e-6);
  }
}

}  // namespace
}  // namespace hlorun::passes
