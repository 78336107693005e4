// Products that read one array share their copy of it: what comes out is what each would give alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/parser.h"
#include "hlorun/hlorun.h"

namespace hlorun {
namespace {

// Small whole numbers: sums are exact in any order.
hlo::Literal Numbers(const hlo::Shape& shape, int64_t seed) {
  hlo::Literal literal(shape);
  for (int64_t i = 0; i < literal.ElementCount(); ++i)
    literal.SetDouble(i, static_cast<double>((i * 7 + seed) % 5 - 2));
  return literal;
}

// What the program's results are on the first device and by the evaluator.
void ExpectEvaluatorsResults(const std::string& text) {
  SCOPED_TRACE(text);
  const auto module = hlo::ParseModule(text);
  const auto client = Client::Create({});
  const auto executable = client->Compile(Module::FromText(text), {});
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* parameter : module->entry()->parameters())
    arguments.push_back(Numbers(parameter->shape(), parameter->parameter_number()));
  const std::vector<hlo::Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
  EXPECT_TRUE(ToLiterals(executable->Run(ToDevice(*client, arguments))) == expected);
}

constexpr const char* kProduct = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

TEST(SharedCopies, OfWeights) {
  ExpectEvaluatorsResults(fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[300,80] parameter(0)
  b = f32[300,80] parameter(1)
  w = f32[80,90] parameter(2)
  v = f32[80,90] parameter(3)
  c = f32[300,90] dot(a, w), {0}
  d = f32[300,90] dot(b, v), {0}
  x = f32[300,90] dot(b, w), {0}
  y = f32[300,90] dot(a, v), {0}
  ROOT r = (f32[300,90], f32[300,90], f32[300,90], f32[300,90]) tuple(c, d, x, y)
}})",
                                      kProduct));
}

// lhs [k][m] is copied too: one copy of it, another of each rhs.
TEST(SharedCopies, OfWhatIsTransposed) {
  ExpectEvaluatorsResults(R"(HloModule m
ENTRY e {
  a = f32[200,140] parameter(0)
  v = f32[200,90] parameter(1)
  w = f32[200,90] parameter(2)
  c = f32[140,90] dot(a, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  d = f32[140,90] dot(a, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[140,90], f32[140,90]) tuple(c, d)
})");
}

// The array changes from iteration to iteration, and within one it is overwritten where it lies.
TEST(SharedCopies, NotOfWhatHasChanged) {
  ExpectEvaluatorsResults(fmt::format(R"(HloModule m
cond {{
  t = (s32[], f32[200,200], f32[300,200]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  three = s32[] constant(3)
  ROOT p = pred[] compare(i, three), direction=LT
}}
body {{
  t = (s32[], f32[200,200], f32[300,200]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  w = f32[200,200] get-tuple-element(t), index=1
  s = f32[300,200] get-tuple-element(t), index=2
  c = f32[300,200] dot(s, w), {0}
  d = f32[300,200] dot(c, w), {0}
  row = f32[1,200] slice(d), slice={{[3:4], [0:200]}}
  sign = f32[1,200] sign(row)
  zero = s32[] constant(0)
  changed = f32[200,200] dynamic-update-slice(w, sign, i, zero)
  f = f32[300,200] dot(s, changed), {0}
  g = f32[300,200] add(d, f)
  small = f32[300,200] sign(g)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[200,200], f32[300,200]) tuple(j, changed, small)
}}
ENTRY e {{
  w = f32[200,200] parameter(0)
  s = f32[300,200] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[200,200], f32[300,200]) tuple(zero, w, s)
  ROOT r = (s32[], f32[200,200], f32[300,200]) while(t), condition=cond, body=body
}})",
                                      kProduct));
}

// Of matrices that stay the same from trip to trip the copies are made in front of the loop, for all that read them.
TEST(SharedCopies, InFrontOfALoop) {
  ExpectEvaluatorsResults(fmt::format(R"(HloModule m
cond {{
  t = (s32[], f32[512,64], f32[64,128], f32[128,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  many = s32[] constant(20)
  ROOT p = pred[] compare(i, many), direction=LT
}}
body {{
  t = (s32[], f32[512,64], f32[64,128], f32[128,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  s = f32[512,64] get-tuple-element(t), index=1
  v = f32[64,128] get-tuple-element(t), index=2
  w = f32[128,64] get-tuple-element(t), index=3
  a = f32[512,128] dot(s, v), {0}
  b = f32[512,128] sign(a)
  c = f32[512,64] dot(b, w), {0}
  d = f32[512,64] sign(c)
  e = f32[512,128] dot(d, v), {0}
  f = f32[512,128] sign(e)
  g = f32[512,64] dot(f, w), {0}
  next = f32[512,64] sign(g)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[512,64], f32[64,128], f32[128,64]) tuple(j, next, v, w)
}}
ENTRY m {{
  s = f32[512,64] parameter(0)
  v = f32[64,128] parameter(1)
  w = f32[128,64] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[512,64], f32[64,128], f32[128,64]) tuple(zero, s, v, w)
  l = (s32[], f32[512,64], f32[64,128], f32[128,64]) while(t), condition=cond, body=body
  ROOT r = f32[512,64] get-tuple-element(l), index=1
}})",
                                      kProduct));
}

// A branch is no loop's body: what it returns is not what it was given.
TEST(SharedCopies, NotInABranch) {
  ExpectEvaluatorsResults(fmt::format(R"(HloModule m
yes {{
  t = (f32[512,64], f32[64,128], f32[128,64]) parameter(0)
  s = f32[512,64] get-tuple-element(t), index=0
  v = f32[64,128] get-tuple-element(t), index=1
  w = f32[128,64] get-tuple-element(t), index=2
  a = f32[512,128] dot(s, v), {0}
  b = f32[512,128] sign(a)
  c = f32[512,64] dot(b, w), {0}
  ROOT r = (f32[512,64]) tuple(c)
}}
no {{
  t = (f32[512,64], f32[64,128], f32[128,64]) parameter(0)
  s = f32[512,64] get-tuple-element(t), index=0
  ROOT r = (f32[512,64]) tuple(s)
}}
ENTRY m {{
  s = f32[512,64] parameter(0)
  v = f32[64,128] parameter(1)
  w = f32[128,64] parameter(2)
  p = f32[] parameter(3)
  zero = f32[] constant(0)
  go = pred[] compare(p, zero), direction=LE
  t = (f32[512,64], f32[64,128], f32[128,64]) tuple(s, v, w)
  ROOT l = (f32[512,64]) conditional(go, t, t), true_computation=yes, false_computation=no
}})",
                                      kProduct));
}

}  // namespace
}  // namespace hlorun
