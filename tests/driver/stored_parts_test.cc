// Products and convolutions that store a part of a larger array: the evaluator's values, whether the array is theirs to
// write or is copied first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/passes/equivalence.h"

namespace hlorun {
namespace {

using hlo::Literal;

struct Program {
  std::string name, body;  // of the entry
};

// Two products of `x`, one finished by an activation, beside an array; parts of vectors, rows, columns and batches.
Program Products(const std::string& type, int64_t k) {
  return {"products_" + type, fmt::format(R"(
  x = {0}[333,{1}] parameter(0)
  y = {0}[{1},72] parameter(1)
  z = {0}[201,{1}] parameter(2)
  p = {0}[333,13] parameter(3)
  u = {0}[72] parameter(4)
  d = {0}[333,72] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  e = {0}[333,201] dot(x, z), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  us = {0}[333,72] broadcast(u), dimensions={{1}}
  f = {0}[333,72] maximum(d, us)
  ROOT c = {0}[333,286] concatenate(e, p, f), dimensions={{1}})",
                                          type, k)};
}

constexpr const char* kConvolutions = R"(
  x = f32[2,30,30,24] parameter(0)
  v = f32[1,1,24,32] parameter(1)
  w = f32[3,3,24,48] parameter(2)
  t = f32[3,3,1,24] parameter(3)
  u = f32[5,5,6,32] parameter(4)
  o = f32[3,3,136,16] parameter(5)
  zero = f32[] constant(0)
  zeros = f32[2,30,30,48] broadcast(zero), dimensions={}
  a = f32[2,30,30,32] convolution(x, v), window={size=1x1}, dim_labels=b01f_01io->b01f
  b = f32[2,30,30,48] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  c = f32[2,30,30,48] maximum(b, zeros)
  d = f32[2,30,30,24] convolution(x, t), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=24
  e = f32[2,30,30,32] convolution(x, u), window={size=5x5 pad=2_2x2_2}, dim_labels=b01f_01io->b01f, feature_group_count=4
  f = f32[2,30,30,136] concatenate(a, c, d, e), dimensions={3}
  g = f32[2,30,30,16] convolution(f, o), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  ROOT r = (f32[2,30,30,136], f32[2,30,30,16]) tuple(f, g))";

// Filters of few channels, whose vectors are pixels of a row, above each other.
constexpr const char* kFilters = R"(
  x = f32[2,40,150,3] parameter(0)
  v = f32[5,5,1,3] parameter(1)
  w = f32[3,3,3,3] parameter(2)
  p = f32[2,3,150,3] parameter(3)
  a = f32[2,40,150,3] convolution(x, v), window={size=5x5 pad=2_2x2_2}, dim_labels=b01f_01io->b01f, feature_group_count=3
  b = f32[2,40,150,3] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  c = f32[2,40,150,3] tanh(b)
  ROOT f = f32[2,83,150,3] concatenate(a, p, c), dimensions={1})";

// A few features among others of each pixel, from a start that is clamped.
constexpr const char* kFeatures = R"(
  x = f32[2,40,150,3] parameter(0)
  w = f32[3,3,3,2] parameter(1)
  y = f32[2,45,150,7] parameter(2)
  a = f32[2,45,150,7] add(y, y)
  b = f32[2,40,150,2] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  zero = s32[] constant(0)
  far = s32[] constant(100)
  some = s32[] constant(3)
  ROOT c = f32[2,45,150,7] dynamic-update-slice(a, b, zero, far, zero, some))";

// Of channels that are no whole vectors, over the array that is added: vectors that overlap must not add twice.
constexpr const char* kChannels = R"(
condition { p = (s32[], f32[2,12,20,37], f32[3,3,1,37], f32[3,3,1,37]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            n = s32[] constant(3)
            ROOT b = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[2,12,20,37], f32[3,3,1,37], f32[3,3,1,37]) parameter(0)
       i = s32[] get-tuple-element(p), index=0
       s = f32[2,12,20,37] get-tuple-element(p), index=1
       w = f32[3,3,1,37] get-tuple-element(p), index=2
       v = f32[3,3,1,37] get-tuple-element(p), index=3
       a = f32[2,12,20,37] convolution(s, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=37
       t = f32[2,12,20,37] tanh(a)
       b = f32[2,12,20,37] convolution(t, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=37
       c = f32[2,12,20,37] add(b, s)
       one = s32[] constant(1)
       j = s32[] add(i, one)
       ROOT t2 = (s32[], f32[2,12,20,37], f32[3,3,1,37], f32[3,3,1,37]) tuple(j, c, w, v) }
ENTRY e { x = f32[2,12,20,37] parameter(0)
          w = f32[3,3,1,37] parameter(1)
          v = f32[3,3,1,37] parameter(2)
          zero = s32[] constant(0)
          t = (s32[], f32[2,12,20,37], f32[3,3,1,37], f32[3,3,1,37]) tuple(zero, x, w, v)
          l = (s32[], f32[2,12,20,37], f32[3,3,1,37], f32[3,3,1,37]) while(t), condition=condition, body=body
          ROOT r = f32[2,12,20,37] get-tuple-element(l), index=1 })";

// Small and large products in a loop's body, and in a branch.
constexpr const char* kLoop = R"(
body { p = (s32[], f32[SIZE,40], f32[40,24], f32[64,40]) parameter(0)
       i = s32[] get-tuple-element(p), index=0
       x = f32[SIZE,40] get-tuple-element(p), index=1
       w = f32[40,24] get-tuple-element(p), index=2
       v = f32[64,40] get-tuple-element(p), index=3
       d = f32[SIZE,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
       c = f32[SIZE,64] concatenate(d, x), dimensions={1}
       f = f32[SIZE,40] dot(c, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
       little = f32[] constant(0.01)
       scale = f32[SIZE,40] broadcast(little), dimensions={}
       k = f32[SIZE,40] multiply(f, scale)
       g = f32[SIZE,40] tanh(k)
       e = f32[SIZE,24] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
       zero = s32[] constant(0)
       some = s32[] constant(9)
       h = f32[SIZE,40] dynamic-update-slice(g, e, zero, some)
       one = s32[] constant(1)
       j = s32[] add(i, one)
       ROOT t = (s32[], f32[SIZE,40], f32[40,24], f32[64,40]) tuple(j, h, w, v) }
condition { p = (s32[], f32[SIZE,40], f32[40,24], f32[64,40]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            n = s32[] constant(5)
            ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[SIZE,40] parameter(0)
          w = f32[40,24] parameter(1)
          v = f32[64,40] parameter(2)
          zero = s32[] constant(0)
          t = (s32[], f32[SIZE,40], f32[40,24], f32[64,40]) tuple(zero, x, w, v)
          l = (s32[], f32[SIZE,40], f32[40,24], f32[64,40]) while(t), condition=condition, body=body
          ROOT r = f32[SIZE,40] get-tuple-element(l), index=1 })";

constexpr const char* kBranch = R"(
taken { p = (f32[SIZE,40], f32[40,24]) parameter(0)
        x = f32[SIZE,40] get-tuple-element(p), index=0
        w = f32[40,24] get-tuple-element(p), index=1
        d = f32[SIZE,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT c = f32[SIZE,64] concatenate(x, d), dimensions={1} }
other { p = (f32[SIZE,40], f32[40,24]) parameter(0)
        x = f32[SIZE,40] get-tuple-element(p), index=0
        zero = f32[] constant(0)
        ROOT c = f32[SIZE,64] pad(x, zero), padding=0_0x3_21 }
ENTRY e { x = f32[SIZE,40] parameter(0)
          w = f32[40,24] parameter(1)
          t = (f32[SIZE,40], f32[40,24]) tuple(x, w)
          first = f32[1,1] slice(x), slice={[0:1], [0:1]}
          number = f32[] reshape(first)
          zero = f32[] constant(0)
          which = pred[] compare(number, zero), direction=GT
          ROOT r = f32[SIZE,64] conditional(which, t, t), true_computation=taken, false_computation=other })";

std::string WithSize(std::string text, int64_t size) {
  for (size_t at = 0; (at = text.find("SIZE", at)) != std::string::npos;) text.replace(at, 4, std::to_string(size));
  return text;
}

std::vector<Program> Programs() {
  return {
      Products("f32", 64),
      Products("f32", 1),
      Products("f64", 40),
      Products("f16", 64),
      Products("bf16", 64),
      Products("s32", 20),
      {"convolutions", kConvolutions},
      {"filters", kFilters},
      {"filtered_features", kFeatures},
      {"channels", kChannels},
      {"loop", WithSize(kLoop, 1000)},
      {"small_loop", WithSize(kLoop, 3)},
      {"branch", WithSize(kBranch, 1000)},
      {"rows", R"(
  x = f32[130,40] parameter(0)
  y = f32[40,131] parameter(1)
  z = f32[77,40] parameter(2)
  d = f32[130,131] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[77,131] dot(z, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[207,131] concatenate(d, e), dimensions={0})"},
      {"batches", R"(
  x = f32[6,70,40] parameter(0)
  y = f32[6,40,50] parameter(1)
  z = f32[6,70,30] parameter(2)
  d = f32[6,70,50] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  ROOT c = f32[6,70,80] concatenate(z, d), dimensions={2})"},
      // One column of a product, and a product of one row.
      {"columns", R"(
  x = f32[20000,40] parameter(0)
  y = f32[40,16] parameter(1)
  z = f32[40,1] parameter(2)
  d = f32[20000,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[20000,1] dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[20000,17] concatenate(e, d), dimensions={1})"},
      {"one_row", R"(
  x = f32[1,400] parameter(0)
  y = f32[400,16500] parameter(1)
  p = f32[1,3] parameter(2)
  d = f32[1,16500] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[1,16503] concatenate(p, d), dimensions={1})"},
      {"padded", R"(
  x = bf16[300,40] parameter(0)
  y = bf16[40,131] parameter(1)
  u = bf16[] parameter(2)
  d = bf16[300,131] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = bf16[307,141] pad(d, u), padding=3_4x9_1)"},
      // The array that is updated is needed as it was; and a start that is clamped.
      {"update_of_a_copy", R"(
  x = f32[130,40] parameter(0)
  y = f32[40,50] parameter(1)
  a = f32[200,70] parameter(2)
  b = f32[200,70] add(a, a)
  d = f32[130,50] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  five = s32[] constant(5)
  far = s32[] constant(100)
  c = f32[200,70] dynamic-update-slice(b, d, five, far)
  ROOT t = (f32[200,70], f32[200,70]) tuple(b, c))"},
      // A part's product reads the array that the part goes to, by another shape, and a function of it.
      {"update_of_an_operand", R"(
  x = f32[64,64] parameter(0)
  w = f32[128,32] parameter(1)
  a = f32[64,64] add(x, x)
  b = f32[32,128] reshape(a)
  d = f32[32,32] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = s32[] constant(0)
  some = s32[] constant(16)
  ROOT c = f32[64,64] dynamic-update-slice(a, d, zero, some))"},
      {"update_of_what_is_computed", R"(
  x = f32[64,64] parameter(0)
  w = f32[64,32] parameter(1)
  a = f32[64,64] add(x, x)
  b = f32[64,64] abs(a)
  d = f32[64,32] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = s32[] constant(0)
  some = s32[] constant(16)
  ROOT c = f32[64,64] dynamic-update-slice(a, d, zero, some))"},
      {"update_of_numbers", R"(
  x = f32[64,40] parameter(0)
  w = f32[40,32] parameter(1)
  one = f32[] constant(1)
  a = f32[64,64] broadcast(one), dimensions={}
  d = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = s32[] constant(0)
  some = s32[] constant(16)
  ROOT c = f32[64,64] dynamic-update-slice(a, d, zero, some))"},
      // A sum and a pooling are no products.
      {"update_by_a_sum", R"(
  x = f32[300,700] parameter(0)
  a = f32[1000] parameter(1)
  b = f32[1000] add(a, a)
  start = f32[] constant(0)
  d = f32[300] reduce(x, start), dimensions={1}, to_apply=add
  some = s32[] constant(17)
  ROOT c = f32[1000] dynamic-update-slice(b, d, some))"},
      {"windows_beside_a_convolution", R"(
  x = f32[2,30,30,24] parameter(0)
  w = f32[3,3,24,48] parameter(1)
  b = f32[2,30,30,48] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  start = f32[] constant(-inf)
  p = f32[2,30,30,24] reduce-window(x, start), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=largest
  ROOT f = f32[2,30,30,72] concatenate(p, b), dimensions={3})"},
      // What finishes a part reads the part as it was.
      {"update_by_what_was", R"(
  x = f32[64,40] parameter(0)
  w = f32[40,32] parameter(1)
  y = f32[64,64] parameter(2)
  a = f32[64,64] add(y, y)
  d = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  old = f32[64,32] slice(a), slice={[0:64], [16:48]}
  s = f32[64,32] add(d, old)
  zero = s32[] constant(0)
  some = s32[] constant(16)
  ROOT c = f32[64,64] dynamic-update-slice(a, s, zero, some))"},
  };
}

std::string TextOf(const Program& program) {
  const std::string reducers = R"(HloModule m
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
largest { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] maximum(a, b) }
)";
  return program.body.find("ENTRY") != std::string::npos ? reducers + program.body
                                                         : reducers + "ENTRY e {" + program.body + "\n}";
}

class StoredPartsTest : public ::testing::TestWithParam<std::tuple<std::string, size_t>> {};

TEST_P(StoredPartsTest, EqualsTheEvaluator) {
  const auto& [device_class, number] = GetParam();
  const std::string text = TextOf(Programs()[number]);
  ClientOptions options;
  options.device_spec = fmt::format(R"({{"device_class": "{}", "l2_bytes": 65536}})", device_class);
  const auto client = Client::Create(options);
  const auto module = passes::Parse(text);
  const std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, 1);
  const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
  const auto given = ToDevice(*client, arguments);
  // One part is the same in every run, or all are, or none.
  for (std::vector<int64_t> constant : {std::vector<int64_t>{}, {0, 1}, {0, 2}, {0, 1, 2, 3}}) {
    std::erase_if(constant, [&](int64_t number) { return number >= static_cast<int64_t>(arguments.size()); });
    CompileOptions compile;
    compile.constant_parameters = constant;
    const auto executable = client->Compile(Module::FromText(text), compile);
    for (int run = 0; run < 2; ++run) {
      const std::vector<Literal> results = ToLiterals(executable->Run(given));
      for (size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(passes::Difference(expected[i], results[i], passes::kRounding), "")
            << "result " << i << ", run " << run << ", " << constant.size() << " constant parameters";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, StoredPartsTest,
                         ::testing::Combine(::testing::Values("cpu", "gpu"),
                                            ::testing::Range<size_t>(0, Programs().size())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) + "_" +
                                  Programs()[std::get<1>(info.param)].name;
                         });

}  // namespace
}  // namespace hlorun
