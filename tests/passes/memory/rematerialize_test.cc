// What is computed again where memory is short, and what never is: text in, plan out. Every plan gives the bits of the
// program as it was.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/fusion/fusion.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/memory/memory_simulation.h"
#include "tests/passes/memory/planned_module.h"
#include "tests/passes/memory/symbolic_run.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;
using ::testing::HasSubstr;

int64_t PeakOf(const Planned& planned) { return planned.buffers.statistics().peak_bytes; }

// Plans within `limit` and runs the plan in host memory.
template <typename... First>
Planned Checked(int64_t limit, const std::string& text, First... first) {
  Planned planned = PlanMemoryWithin(limit, text, first...);
  hlo::VerifyModule(*planned.module);
  EXPECT_EQ(CheckSymbolically(*planned.module, planned.buffers, planned.kernels), "") << planned.buffers.ToString();
  const auto original = Parse(text);
  const std::vector<hlo::Literal> arguments = RandomArguments(*original, Inputs::kMild, 7);
  EXPECT_TRUE(Simulate(*planned.module, planned.buffers, arguments) ==
              hlo::FlattenLiteral(hlo::Evaluate(*original, arguments)))
      << hlo::PrintModule(*planned.module);
  return planned;
}

// Between the readers of v lie 32 KiB of others.
constexpr const char* kEarlyAndLate = R"(HloModule m
ENTRY e {{
  x = f32[1024] parameter(0)
  v = {}
  w = f32[4096] concatenate(v, v, v, v), dimensions={{0}}
  y = f32[4096] reverse(w), dimensions={{0}}
  z = f32[1024] slice(y), slice={{[1024:2048]}}
  m = f32[1024] multiply(z, v)
  t = f32[1024] reverse(v), dimensions={{0}}
  ROOT r = f32[1024] subtract(m, t)
}})";

TEST(Rematerialize, EarlyValueThatIsReadAtTheEnd) {
  const std::string text = fmt::format(kEarlyAndLate, "f32[1024] exponential(x)");
  const Planned whole = Checked(0, text);
  EXPECT_TRUE(whole.remarks.empty());
  EXPECT_EQ(CountOf(*whole.module, Opcode::kExp), 1);
  const int64_t limit = PeakOf(whole) - 4096;
  const Planned planned = Checked(limit, text);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kExp), 2);  // both late readers read one
  EXPECT_LE(PeakOf(planned), limit);
  ASSERT_EQ(planned.remarks.size(), 2u);
  EXPECT_EQ(planned.remarks[0].choice, "rematerialised");
  EXPECT_EQ(planned.remarks[1].instruction, "v");
  EXPECT_EQ(planned.remarks[1].choice, "computed again");
  EXPECT_THAT(planned.remarks[1].reason, HasSubstr("0.004096 MB fewer"));
  EXPECT_THAT(planned.remarks[1].cost, HasSubstr("1 kernel"));
}

TEST(Rematerialize, NothingHappensWhereThePlanFits) {
  const std::string text = fmt::format(kEarlyAndLate, "f32[1024] exponential(x)");
  const Planned planned = Checked(PeakOf(Checked(0, text)), text);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kExp), 1);
  EXPECT_TRUE(planned.remarks.empty());
}

TEST(Rematerialize, ALimitThatCannotBeMetSaysHowFarItGot) {
  const std::string text = fmt::format(kEarlyAndLate, "f32[1024] exponential(x)");
  const int64_t whole = PeakOf(Checked(0, text));
  const Planned planned = Checked(1000, text);
  EXPECT_LT(PeakOf(planned), whole);
  ASSERT_FALSE(planned.remarks.empty());
  EXPECT_EQ(planned.remarks[0].choice, "not enough");
  EXPECT_THAT(planned.remarks[0].reason,
              HasSubstr(fmt::format("{:.4g} MB with", static_cast<double>(PeakOf(planned)) / 1e6)));
  // w and y, 16 KiB each, whatever else is computed again.
  EXPECT_THAT(
      planned.remarks[0].reason,
      HasSubstr("at y: 0.03277 MB beside arguments and constants, 0.03277 MB of them its operands and results"));
  EXPECT_THAT(planned.remarks[0].advice, HasSubstr("--memory_limit"));
}

// Control flow takes times of its own, before and behind what it calls.
TEST(Rematerialize, TheFullestKernelIsNamedBehindControlFlow) {
  std::string text = fmt::format(kEarlyAndLate, "f32[1024] exponential(u)");
  text.insert(text.find("  v = "), "  u = f32[1024] while(x), condition=c, body=b\n");
  text.insert(text.find("ENTRY"), R"(
c { cp = f32[1024] parameter(0)  ROOT no = pred[] constant(false) }
b { bp = f32[1024] parameter(0)  ROOT n = f32[1024] negate(bp) }
)");
  const Planned planned = PlanMemoryWithin(1000, text);
  ASSERT_FALSE(planned.remarks.empty());
  EXPECT_THAT(planned.remarks[0].reason, HasSubstr("the most is needed at y: "));
}

// The values of x are read from memory in between: it is x that would have to be there again.
TEST(Rematerialize, EffectsAndControlAreNeverRepeated) {
  const std::string effects[] = {
      R"(f32[1024] custom-call(x), custom_call_target="user_code")",
      R"(f32[1024] custom-call(x), custom_call_target="user_code", custom_call_has_side_effect=true)",
      "f32[1024] all-reduce(x), replica_groups={}, to_apply=add",
      "f32[1024] while(x), condition=c, body=b",
  };
  for (const std::string& effect : effects) {
    SCOPED_TRACE(effect);
    std::string text = fmt::format(kEarlyAndLate, effect);
    text.insert(text.find("ENTRY"), R"(
add { l = f32[] parameter(0)  k = f32[] parameter(1)  ROOT s = f32[] add(l, k) }
c { cp = f32[1024] parameter(0)  ROOT no = pred[] constant(false) }
b { bp = f32[1024] parameter(0)  ROOT n = f32[1024] negate(bp) }
)");
    const int64_t whole = PeakOf(PlanMemory(text));
    const Planned planned = PlanMemoryWithin(whole - 4096, text);
    EXPECT_EQ(PeakOf(planned), whole);
    ASSERT_EQ(planned.remarks.size(), 1u);
    EXPECT_EQ(planned.remarks[0].choice, "not enough");
  }
}

TEST(Rematerialize, ResultsAndUpdatesInPlaceAreNotRepeated) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[1024] parameter(0)
  u = f32[16] parameter(1)
  zero = s32[] constant(0)
  a = f32[1024] exponential(x)
  v = f32[1024] dynamic-update-slice(a, u, zero)
  k = f32[1024] negate(v)
  w = f32[4096] concatenate(v, v, k, k), dimensions={0}
  y = f32[4096] reverse(w), dimensions={0}
  z = f32[1024] slice(y), slice={[1024:2048]}
  m = f32[1024] multiply(z, v)
  o = f32[1024] multiply(m, k)
  ROOT r = (f32[1024], f32[1024]) tuple(k, o)
})";
  const Planned planned = Checked(1000, text);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kDynamicUpdateSlice), 1);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kNegate), 1);
}

// v is two steps from x, and what is in between is as large as v.
TEST(Rematerialize, AShortChainIsRepeatedAsAWhole) {
  std::string text = fmt::format(kEarlyAndLate, "f32[1024] reverse(x1), dimensions={0}");
  text.insert(text.find("  v = "), "  x1 = f32[1024] exponential(x)\n");
  const int64_t limit = PeakOf(Checked(0, text)) - 4096;
  const Planned planned = Checked(limit, text);
  EXPECT_LE(PeakOf(planned), limit);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kExp), 2);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kReverse), 2 + 2);
}

// Both sides of the diamond read v; only d is late. a and b are read at the end as well.
TEST(Rematerialize, Diamond) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[2048] parameter(0)
  v = f32[2048] exponential(x)
  a = f32[2048] reverse(v), dimensions={0}
  b = f32[2048] sine(v)
  d = f32[2048] add(a, b)
  w = f32[8192] concatenate(d, d, d, d), dimensions={0}
  y = f32[8192] reverse(w), dimensions={0}
  z = f32[2048] slice(y), slice={[2048:4096]}
  p = f32[2048] multiply(z, a)
  q = f32[2048] divide(p, b)
  ROOT r = f32[2048] subtract(q, v)
})";
  const int64_t whole = PeakOf(Checked(0, text));
  for (const int64_t fewer : {8192, 2 * 8192, 3 * 8192}) {
    const Planned planned = Checked(whole - fewer, text);
    EXPECT_LE(PeakOf(planned), whole - fewer) << hlo::PrintModule(*planned.module);
  }
}

// Nobody reads v before the others are done: it moves, and costs nothing. The schedule here is given.
TEST(Rematerialize, WhatIsReadLateOnlyIsComputedLate) {
  const std::string text = R"(HloModule m, is_scheduled=true
ENTRY e {
  x = f32[1024] parameter(0)
  v = f32[1024] exponential(x)
  w = f32[4096] concatenate(x, x, x, x), dimensions={0}
  y = f32[4096] reverse(w), dimensions={0}
  z = f32[1024] slice(y), slice={[1024:2048]}
  t = f32[1024] reverse(v), dimensions={0}
  ROOT r = f32[1024] multiply(z, t)
})";
  const int64_t whole = PeakOf(Checked(0, text));
  const Planned planned = Checked(whole - 4096, text);
  EXPECT_LE(PeakOf(planned), whole - 4096);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kExp), 1);
  ASSERT_EQ(planned.remarks.size(), 2u);
  EXPECT_EQ(planned.remarks[1].choice, "computed later");
  EXPECT_EQ(planned.remarks[1].cost, "none");
}

TEST(Rematerialize, OneResultOfAFusionWithSeveral) {
  const std::string text = R"(HloModule m
both { p = f32[1024] parameter(0)  e = f32[1024] exponential(p)  s = f32[1024] sine(p)
       ROOT t = (f32[1024], f32[1024]) tuple(e, s) }
ENTRY e {
  x = f32[1024] parameter(0)
  f = (f32[1024], f32[1024]) fusion(x), kind=kLoop, calls=both
  v = f32[1024] get-tuple-element(f), index=0
  n = f32[1024] get-tuple-element(f), index=1
  w = f32[4096] concatenate(v, n, v, n), dimensions={0}
  y = f32[4096] reverse(w), dimensions={0}
  z = f32[1024] slice(y), slice={[1024:2048]}
  t = f32[1024] reverse(v), dimensions={0}
  ROOT r = f32[1024] multiply(z, t)
})";
  const int64_t whole = PeakOf(Checked(0, text));
  const Planned planned = Checked(whole - 4096, text);
  EXPECT_LE(PeakOf(planned), whole - 4096);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kFusion), 2);
}

TEST(Rematerialize, InTheBodyOfALoop) {
  const std::string text = R"(HloModule m
c { cp = (s32[], f32[1024]) parameter(0)  ci = s32[] get-tuple-element(cp), index=0  five = s32[] constant(5)
    ROOT less = pred[] compare(ci, five), direction=LT }
b {
  bp = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1024] get-tuple-element(bp), index=1
  v = f32[1024] sine(x)
  w = f32[4096] concatenate(v, v, x, v), dimensions={0}
  y = f32[4096] reverse(w), dimensions={0}
  z = f32[1024] slice(y), slice={[1024:2048]}
  m = f32[1024] multiply(z, v)
  n = f32[1024] add(m, x)
  ROOT t = (s32[], f32[1024]) tuple(next, n)
}
ENTRY e {
  a = f32[1024] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[1024]) tuple(zero, a)
  l = (s32[], f32[1024]) while(s), condition=c, body=b
  ROOT r = f32[1024] get-tuple-element(l), index=1
})";
  const int64_t limit = PeakOf(Checked(0, text)) - 4096;
  const Planned planned = Checked(limit, text);
  EXPECT_LE(PeakOf(planned), limit);
  EXPECT_EQ(CountOf(*planned.module, Opcode::kSin), 2);
}

// h0 = x, h(i+1) = tanh(h(i) w(i)); its gradients by all w, which read every h.
std::string TrainingStep(int layers) {
  std::string entry = "  h0 = f32[256,32] parameter(0)\n", shapes = "f32[]", results = "loss";
  for (int i = 0; i < layers; ++i) {
    entry += fmt::format(
        "  w{0} = f32[32,32] parameter({1})\n"
        "  z{0} = f32[256,32] dot(h{0}, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        "  h{1} = f32[256,32] tanh(z{0})\n",
        i, i + 1);
  }
  entry += fmt::format(
      "  zero = f32[] constant(0)\n  one = f32[] constant(1)\n  ones = f32[256,32] broadcast(one), dimensions={{}}\n"
      "  squares = f32[256,32] multiply(h{0}, h{0})\n"
      "  loss = f32[] reduce(squares, zero), dimensions={{0,1}}, to_apply=add\n  g{0} = f32[256,32] add(h{0}, h{0})\n",
      layers);
  for (int i = layers - 1; i >= 0; --i) {
    entry += fmt::format(
        "  q{0} = f32[256,32] multiply(h{1}, h{1})\n  o{0} = f32[256,32] subtract(ones, q{0})\n"
        "  d{0} = f32[256,32] multiply(g{1}, o{0})\n"
        "  dw{0} = f32[32,32] dot(h{0}, d{0}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n"
        "  g{0} = f32[256,32] dot(d{0}, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}\n",
        i, i + 1);
    shapes += ", f32[32,32]";
    results += fmt::format(", dw{}", i);
  }
  return fmt::format(
      "HloModule step\nadd {{ l = f32[] parameter(0)  k = f32[] parameter(1)  ROOT s = f32[] add(l, k) }}\n"
      "ENTRY e {{\n{}  ROOT r = ({}) tuple({})\n}}",
      entry, shapes, results);
}

TEST(Rematerialize, ActivationsOfATrainingStep) {
  const std::string text = TrainingStep(12);
  const int64_t whole = PeakOf(Checked(0, text, Fusion()));
  for (const double part : {0.8, 0.6}) {
    SCOPED_TRACE(part);
    const auto limit = static_cast<int64_t>(part * static_cast<double>(whole));
    const Planned planned = Checked(limit, text, Fusion());
    EXPECT_LE(PeakOf(planned), limit);
    EXPECT_EQ(hlo::PrintModule(*planned.module), hlo::PrintModule(*Checked(limit, text, Fusion()).module));
  }
}

}  // namespace
}  // namespace hlorun::passes
