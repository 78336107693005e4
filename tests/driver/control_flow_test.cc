// Branches and loops too large for one kernel, by each strategy, on every way through them: device against evaluator.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/passes/equivalence.h"

namespace hlorun {
namespace {

using passes::kRounding;

// Parameter 0 is s32[]: which way to go. The others are arrays.
struct Program {
  std::string name, text;
  std::vector<int32_t> ways;  // of parameter 0
  std::string
      predicated;  // what --branches=predicate and auto make of its control flow, by remark: "%name choice" lines
};

// Two branches of several kernels; one returns its operand as it is, and the selector besides.
constexpr const char* kTwoWays = R"(HloModule two_ways
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
sorts {
  t = (f32[65536], pred[]) parameter(0)
  x = f32[65536] get-tuple-element(t), index=0
  p = pred[] get-tuple-element(t), index=1
  s = f32[65536] sort(x), dimensions={0}, to_apply=less
  e = f32[65536] sine(s)
  z = f32[65536] sort(e), dimensions={0}, to_apply=less
  ROOT r = (f32[65536], f32[65536], pred[]) tuple(z, x, p)
}
keeps {
  x = f32[65536] parameter(0)
  f = pred[] constant(true)
  n = f32[65536] negate(x)
  ROOT r = (f32[65536], f32[65536], pred[]) tuple(x, n, f)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[65536] parameter(1)
  zero = s32[] constant(0)
  p = pred[] compare(i, zero), direction=GT
  y = f32[65536] add(x, x)
  t = (f32[65536], pred[]) tuple(y, p)
  c = (f32[65536], f32[65536], pred[]) conditional(p, t, y), true_computation=sorts, false_computation=keeps
  a = f32[65536] get-tuple-element(c), index=0
  b = f32[65536] get-tuple-element(c), index=1
  q = pred[] get-tuple-element(c), index=2
  d = f32[65536] subtract(a, b)
  ROOT r = (f32[65536], pred[]) tuple(d, q)
})";

// N-way, a branch within a branch, an update in place of what another branch reads.
constexpr const char* kNested = R"(HloModule nested
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
up { x = f32[256,256] parameter(0)  s = f32[256,256] sort(x), dimensions={1}, to_apply=less  ROOT r = f32[256,256] tanh(s) }
down { x = f32[256,256] parameter(0)  s = f32[256,256] sort(x), dimensions={0}, to_apply=less  ROOT r = f32[256,256] cosine(s) }
inner {
  x = f32[256,256] parameter(0)
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  p = pred[] compare(s, zero), direction=GT
  ROOT r = f32[256,256] conditional(p, x, x), true_computation=up, false_computation=down
}
row {
  x = f32[256,256] parameter(0)
  s = f32[256,256] sort(x), dimensions={1}, to_apply=less
  u = f32[1,256] slice(s), slice={[3:4], [0:256]}
  k = s32[] constant(7)
  z = s32[] constant(0)
  ROOT r = f32[256,256] dynamic-update-slice(x, u, k, z)
}
same { ROOT x = f32[256,256] parameter(0) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[256,256] parameter(1)
  y = f32[256,256] exponential(x)
  c = f32[256,256] conditional(i, x, y, y), branch_computations={inner, row, same}
  ROOT r = (f32[256,256], f32[256,256]) tuple(c, y)
})";

// As many iterations as parameter 0 says: what a body's kernels overwrite is what its predicate is made of.
constexpr const char* kDataLoop = R"(HloModule data_loop
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
cond {
  t = (s32[], f32[65536], pred[]) parameter(0)
  ROOT p = pred[] get-tuple-element(t), index=2
}
body {
  t = (s32[], f32[65536], pred[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[65536] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] subtract(i, one)
  zero = s32[] constant(0)
  q = pred[] compare(j, zero), direction=GT
  s = f32[65536] sort(x), dimensions={0}, to_apply=less
  v = f32[65536] reverse(s), dimensions={0}
  half = f32[] constant(0.5)
  h = f32[65536] broadcast(half), dimensions={}
  y = f32[65536] multiply(v, h)
  ROOT r = (s32[], f32[65536], pred[]) tuple(j, y, q)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[65536] parameter(1)
  zero = s32[] constant(0)
  p = pred[] compare(i, zero), direction=GT
  t = (s32[], f32[65536], pred[]) tuple(i, x, p)
  ROOT w = (s32[], f32[65536], pred[]) while(t), condition=cond, body=body
})";

// Ends when the data say so, after 20 iterations at the latest; inside of a branch, with a branch inside.
constexpr const char* kBoundedLoop = R"(HloModule bounded_loop
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
cond {
  t = (s32[], s32[], f32[65536]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  most = s32[] constant(20)
  a = pred[] compare(i, most), direction=LT
  b = pred[] compare(i, n), direction=LT
  ROOT p = pred[] and(a, b)
}
halves { x = f32[65536] parameter(0)  h = f32[] constant(0.5)  b = f32[65536] broadcast(h), dimensions={}
         ROOT r = f32[65536] multiply(x, b) }
sorts { x = f32[65536] parameter(0)  ROOT s = f32[65536] sort(x), dimensions={0}, to_apply=less }
body {
  t = (s32[], s32[], f32[65536]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  x = f32[65536] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = s32[] constant(2)
  odd = s32[] remainder(i, two)
  y = f32[65536] conditional(odd, x, x), branch_computations={sorts, halves}
  v = f32[65536] reverse(y), dimensions={0}
  ROOT r = (s32[], s32[], f32[65536]) tuple(j, n, v)
}
loops {
  t = (s32[], f32[65536]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  x = f32[65536] get-tuple-element(t), index=1
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[65536]) tuple(zero, n, x)
  w = (s32[], s32[], f32[65536]) while(init), condition=cond, body=body
  i = s32[] get-tuple-element(w), index=0
  y = f32[65536] get-tuple-element(w), index=2
  f = f32[] convert(i)
  b = f32[65536] broadcast(f), dimensions={}
  ROOT r = f32[65536] add(y, b)
}
keeps { t = (s32[], f32[65536]) parameter(0)  ROOT x = f32[65536] get-tuple-element(t), index=1 }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[65536] parameter(1)
  zero = s32[] constant(0)
  p = pred[] compare(i, zero), direction=GE
  t = (s32[], f32[65536]) tuple(i, x)
  ROOT r = f32[65536] conditional(p, t, t), true_computation=loops, false_computation=keeps
})";

// Small values of several types and sizes, each next one made of others' last ones, beside a kernel that is no region.
constexpr const char* kSmallCarries = R"(HloModule small_carries
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
cond {
  t = (s32[], s32[], f32[], f32[], f32[7], c64[2], pred[], s32[], f32[65536]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  t = (s32[], s32[], f32[], f32[], f32[7], c64[2], pred[], s32[], f32[65536]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  a = f32[] get-tuple-element(t), index=2
  b = f32[] get-tuple-element(t), index=3
  v = f32[7] get-tuple-element(t), index=4
  c = c64[2] get-tuple-element(t), index=5
  q = pred[] get-tuple-element(t), index=6
  k = s32[] get-tuple-element(t), index=7
  x = f32[65536] get-tuple-element(t), index=8
  one = s32[] constant(1)
  j = s32[] add(i, one)
  half = f32[] constant(0.5)
  m = f32[1] slice(v), slice={[3:4]}
  ms = f32[] reshape(m)
  am = f32[] multiply(b, half)
  an = f32[] add(am, ms)
  bn = f32[] subtract(a, b)
  vr = f32[7] reverse(v), dimensions={0}
  as = f32[7] broadcast(a), dimensions={}
  halves = f32[7] broadcast(half), dimensions={}
  vm = f32[7] add(vr, as)
  vn = f32[7] multiply(vm, halves)
  ab = c64[] complex(a, half)
  abs = c64[2] broadcast(ab), dimensions={}
  cr = c64[2] reverse(c), dimensions={0}
  cn = c64[2] multiply(cr, abs)
  qn = pred[] not(q)
  kn = s32[] select(q, i, k)
  f = f32[] convert(k)
  bs = f32[65536] broadcast(bn), dimensions={}
  fs = f32[65536] broadcast(f), dimensions={}
  y = f32[65536] add(x, bs)
  z = f32[65536] add(y, fs)
  xn = f32[65536] sort(z), dimensions={0}, to_apply=less
  ROOT r = (s32[], s32[], f32[], f32[], f32[7], c64[2], pred[], s32[], f32[65536]) tuple(j, n, an, bn, vn, cn, qn, kn, xn)
}
ENTRY e {
  n = s32[] parameter(0)
  a = f32[] parameter(1)
  b = f32[] parameter(2)
  v = f32[7] parameter(3)
  c = c64[2] parameter(4)
  q = pred[] parameter(5)
  x = f32[65536] parameter(6)
  zero = s32[] constant(0)
  t = (s32[], s32[], f32[], f32[], f32[7], c64[2], pred[], s32[], f32[65536]) tuple(zero, n, a, b, v, c, q, n, x)
  ROOT w = (s32[], s32[], f32[], f32[], f32[7], c64[2], pred[], s32[], f32[65536]) while(t), condition=cond, body=body
})";

std::vector<Program> Programs() {
  return {{"two_ways", kTwoWays, {1, 0}, "predicate"},
          {"nested", kNested, {0, 1, 2, -1, 7}, "predicate"},
          {"data_loop", kDataLoop, {-1, 0, 1, 2, 23}, "ahead"},
          {"small_carries", kSmallCarries, {0, 1, 2, 7}, "ahead"},
          {"bounded_loop", kBoundedLoop, {-1, 0, 1, 2, 5, 19, 20, 40}, "enqueued"}};
}

struct Case {
  Program program;
  BranchStrategy strategy;
  std::string device_class;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Program& program : Programs()) {
    for (const auto strategy :
         {BranchStrategy::kAuto, BranchStrategy::kSelect, BranchStrategy::kPredicate, BranchStrategy::kHost}) {
      cases.push_back({program, strategy, "cpu"});
    }
    cases.push_back({program, BranchStrategy::kPredicate, "gpu"});
  }
  return cases;
}

std::string NameOf(const Case& c) {
  constexpr const char* kNames[] = {"auto", "select", "predicate", "host"};
  return c.program.name + "_" + kNames[static_cast<size_t>(c.strategy)] + "_" + c.device_class;
}

void PrintTo(const Case& c, std::ostream* out) { *out << NameOf(c); }

class ControlFlowTest : public ::testing::TestWithParam<Case> {};

TEST_P(ControlFlowTest, EqualsTheEvaluatorOnEveryWay) {
  const auto& [program, strategy, device_class] = GetParam();
  ClientOptions on;
  on.device_class = device_class;
  const auto client = Client::Create(on);
  CompileOptions options;
  options.branches = strategy;
  const auto executable = client->Compile(Module::FromText(program.text), options);
  const auto module = passes::Parse(program.text);
  uint64_t seed = 1;
  for (const int32_t way : program.ways) {
    std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, seed++);
    arguments[0] = Literal::Scalar(ElementType::kS32, way);
    const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
    const std::vector<Literal> results = ToLiterals(executable->Run(ToDevice(*client, arguments)));
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(passes::Difference(expected[i], results[i], kRounding), "")
          << program.name << " " << way << " result " << i;
    }
  }
}

TEST_P(ControlFlowTest, TheHostWaitsOnlyWhereItIsSaidTo) {
  const auto& [program, strategy, device_class] = GetParam();
  if (strategy == BranchStrategy::kSelect) GTEST_SKIP() << "falls back case by case";
  CompileOptions options;
  options.branches = strategy;
  const auto executable = Client::Create({})->Compile(Module::FromText(program.text), options);
  ASSERT_FALSE(executable->remarks().empty());
  bool waits = false, chosen = false;
  for (const Remark& remark : executable->remarks()) {
    waits |= remark.host_waits;
    chosen |= remark.choice == program.predicated;
  }
  // By cost the host may take the outer branch of many launches.
  if (strategy != BranchStrategy::kAuto) {
    EXPECT_EQ(waits, strategy == BranchStrategy::kHost || program.predicated == "ahead")
        << OneLine(executable->remarks()[0]);
  }
  EXPECT_EQ(chosen, strategy != BranchStrategy::kHost) << OneLine(executable->remarks()[0]);
}

INSTANTIATE_TEST_SUITE_P(All, ControlFlowTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOf(info.param); });

// A branch that talks to the host is taken by it, whatever is asked for.
TEST(Predication, FallsBackWithARemark) {
  CompileOptions options;
  options.branches = BranchStrategy::kPredicate;
  options.custom_calls = nullptr;
  const auto executable = Client::Create({})->Compile(Module::FromText(R"(HloModule m
sends { x = f32[4] parameter(0)  k = token[] after-all()  o = token[] outfeed(x, k)  ROOT r = f32[4] negate(x) }
keeps { ROOT x = f32[4] parameter(0) }
ENTRY e { p = pred[] parameter(0)  x = f32[4] parameter(1)
          ROOT r = f32[4] conditional(p, x, x), true_computation=sends, false_computation=keeps })"),
                                                      options);
  for (const Remark& remark : executable->remarks()) {
    if (remark.subject != Remark::Subject::kConditional) continue;
    EXPECT_EQ(remark.choice, "host");
    EXPECT_TRUE(remark.warns);
    EXPECT_NE(remark.reason.find("is not a kernel"), std::string::npos) << remark.reason;
    return;
  }
  ADD_FAILURE() << "no remark about the conditional";
}

// 10,000 iterations that each write one row of the carry.
std::string RowLoop(int64_t rows) {
  return fmt::format(R"(HloModule rows
    cond {{ t = (s32[], f32[{0},1024]) parameter(0)
           i = s32[] get-tuple-element(t), index=0
           n = s32[] constant(10000)
           ROOT p = pred[] compare(i, n), direction=LT }}
    body {{ t = (s32[], f32[{0},1024]) parameter(0)
           i = s32[] get-tuple-element(t), index=0
           x = f32[{0},1024] get-tuple-element(t), index=1
           one = s32[] constant(1)
           zero = s32[] constant(0)
           j = s32[] add(i, one)
           rows = s32[] constant({0})
           k = s32[] remainder(i, rows)
           f = f32[] convert(i)
           u = f32[1,1024] broadcast(f), dimensions={{}}
           y = f32[{0},1024] dynamic-update-slice(x, u, k, zero)
           ROOT r = (s32[], f32[{0},1024]) tuple(j, y) }}
    ENTRY e {{ x = f32[{0},1024] parameter(0)
              zero = s32[] constant(0)
              t = (s32[], f32[{0},1024]) tuple(zero, x)
              w = (s32[], f32[{0},1024]) while(t), condition=cond, body=body
              ROOT r = f32[{0},1024] get-tuple-element(w), index=1 }})",
                     rows);
}

// Milliseconds of the fastest of a few runs; the last row written is checked.
double MillisecondsOf(Client& client, int64_t rows) {
  const auto executable = client.Compile(Module::FromText(RowLoop(rows)), {});
  const Literal carry(Shape(ElementType::kF32, {rows, 1024}));
  const std::vector<Array> inputs = {client.FromHost(carry.shape(), carry.data())};
  double best = HUGE_VAL;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Array> results = executable->Run(inputs);
    results[0].Wait();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    EXPECT_EQ(results[0].ToVector<float>()[static_cast<size_t>(9999 % rows) * 1024], 9999);
  }
  return best;
}

// Copying 4 MB in each iteration would take seconds; what is left is one copy of the argument, and a larger cache
// footprint.
TEST(Loops, TimeOfAnIterationDoesNotDependOnTheCarry) {
  const auto client = Client::Create({});
  EXPECT_LT(MillisecondsOf(*client, 1024), 4 * MillisecondsOf(*client, 64) + 30);
}

}  // namespace
}  // namespace hlorun
