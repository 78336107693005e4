// Loops whose trips go in pairs, each writing where the other reads: the values are the evaluator's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/matrix_text.h"
#include "tests/passes/equivalence.h"

namespace hlorun {
namespace {

using hlo::Literal;

struct Program {
  std::string name,
      body,  // of i, x, y: "a" and "b" wanted, the next x and y
      a = "a", b = "b";
  size_t copies = 0;  // that each trip is left with
};

constexpr const char* kAbove = R"(
  last = f32[1,512] slice(x), slice={[255:256], [0:512]}
  most = f32[255,512] slice(x), slice={[0:255], [0:512]}
  above = f32[256,512] concatenate(last, most), dimensions={0})";

std::vector<Program> Programs() {
  const std::string above = kAbove;
  const std::string half = R"(
  h = f32[] constant(0.5)
  half = f32[256,512] broadcast(h), dimensions={})";
  return {
      {"one", above + half + R"(
  sum = f32[256,512] add(x, above)
  a = f32[256,512] multiply(sum, half))",
       "a", "y"},
      // Each reads the other as well.
      {"both", above + half + R"(
  first = f32[256,1] slice(y), slice={[0:256], [0:1]}
  rest = f32[256,511] slice(y), slice={[0:256], [1:512]}
  right = f32[256,512] concatenate(rest, first), dimensions={1}
  sum = f32[256,512] add(above, y)
  a = f32[256,512] multiply(sum, half)
  difference = f32[256,512] subtract(right, x)
  b = f32[256,512] multiply(difference, half))"},
      // One moves on to the other's place, by a copy that stays.
      {"handed_on", above + half + R"(
  sum = f32[256,512] add(y, above)
  a = f32[256,512] multiply(sum, half))",
       "a", "x", 1},
      // One becomes a constant, by a copy that stays.
      {"constant",
       above + half + R"(
  sum = f32[256,512] add(y, above)
  a = f32[256,512] multiply(sum, half)
  b = f32[256,512] constant()" +
           MatrixText(256, 512, [](int i, int j) { return (5 * i + j) % 11; }) + ")",
       "a", "b", 1},
      // One changes in place beside it.
      {"in_place", above + half + R"(
  sum = f32[256,512] add(x, above)
  a = f32[256,512] multiply(sum, half)
  row = f32[1,512] slice(above), slice={[7:8], [0:512]}
  zero = s32[] constant(0)
  b = f32[256,512] dynamic-update-slice(y, row, i, zero))"},
  };
}

std::string TextOf(const Program& program, int64_t trips) {
  return fmt::format(R"(HloModule m
body {{
  t = (s32[], f32[256,512], f32[256,512]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[256,512] get-tuple-element(t), index=1
  y = f32[256,512] get-tuple-element(t), index=2
{}
  ROOT r = (s32[], f32[256,512], f32[256,512]) tuple(j, {}, {})
}}
condition {{
  t = (s32[], f32[256,512], f32[256,512]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({})
  ROOT go = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[256,512] parameter(0)
  y = f32[256,512] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[256,512], f32[256,512]) tuple(zero, x, y)
  ROOT w = (s32[], f32[256,512], f32[256,512]) while(t), condition=condition, body=body
}})",
                     program.body, program.a, program.b, trips);
}

class LoopPairsTest : public ::testing::TestWithParam<Program> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(LoopPairsTest, EqualsTheEvaluator) {
  const auto client = Client::Create({});
  for (const int64_t trips : {1, 2, 7, 20}) {
    SCOPED_TRACE(trips);
    const std::string text = TextOf(GetParam(), trips);
    const auto executable = client->Compile(Module::FromText(text), {});
    const auto module = passes::Parse(text);
    const std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, 1);
    const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
    for (int run = 0; run < 2; ++run) {
      const std::vector<Literal> results = ToLiterals(executable->Run(ToDevice(*client, arguments)));
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(passes::Difference(expected[i], results[i], passes::kRounding), "") << "result " << i;
    }
  }
}

TEST_P(LoopPairsTest, CopyNothingBack) {
  const opencl::Plan plan = opencl::CompileModule(*passes::Parse(TextOf(GetParam(), 20)), DeviceSpec(), {}).plan;
  size_t trips = 0, copies = 0;
  for (const opencl::Thunk& thunk : plan.entry.thunks) {
    const auto* loop = std::get_if<opencl::WhileThunk>(&thunk.work);
    if (loop == nullptr) continue;
    trips += static_cast<size_t>(loop->trip_count);
    for (const opencl::Thunk& inner : loop->body->thunks)
      copies += std::holds_alternative<opencl::CopyThunk>(inner.work) ? 1 : 0;
  }
  EXPECT_EQ(trips, 10u) << plan.ToString();
  EXPECT_EQ(copies, 2 * GetParam().copies) << plan.ToString();
}

INSTANTIATE_TEST_SUITE_P(All, LoopPairsTest, ::testing::ValuesIn(Programs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hlorun
