// Results have the same bits in each run, whatever the number of compute units is: shares of work follow it, the order
// of sums and the choice of kernels must not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include "driver/api/literals.h"
#include "driver/include/hlorun/hlorun.h"
#include "tests/passes/equivalence.h"

namespace hlorun {
namespace {

struct Program {
  std::string name;
  std::string body;  // of the entry computation
};

// x less its mean over each image and group of channels, over its deviation.
std::string GroupNorm(int64_t images) {
  return fmt::format(R"(
  x = f32[{0},784,32,16] parameter(0)
  zero = f32[] constant(0)
  sum = f32[{0},32] reduce(x, zero), dimensions={{1,3}}, to_apply=add
  means = f32[{0},784,32,16] broadcast(sum), dimensions={{0,2}}
  d = f32[{0},784,32,16] subtract(x, means)
  q = f32[{0},784,32,16] multiply(d, d)
  variance = f32[{0},32] reduce(q, zero), dimensions={{1,3}}, to_apply=add
  scale = f32[{0},32] rsqrt(variance)
  scales = f32[{0},784,32,16] broadcast(scale), dimensions={{0,2}}
  ROOT n = f32[{0},784,32,16] multiply(d, scales))",
                     images);
}

std::string Dot(const std::string& type, int64_t m, int64_t n, int64_t k) {
  return fmt::format(R"(
  x = {0}[{1},{3}] parameter(0)
  w = {0}[{3},{2}] parameter(1)
  ROOT d = {0}[{1},{2}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}})",
                     type, m, n, k);
}

std::string Convolution(const std::string& type, int64_t side, int64_t channels, int64_t stride) {
  return fmt::format(R"(
  x = {0}[3,{1},{1},{2}] parameter(0)
  w = {0}[3,3,{2},{2}] parameter(1)
  ROOT c = {0}[3,{3},{3},{2}] convolution(x, w), window={{size=3x3 stride={4}x{4} pad=1_1x1_1}}, dim_labels=b01f_01io->b01f)",
                     type, side, channels, (side - 1) / stride + 1, stride);
}

std::vector<Program> Programs() {
  std::vector<Program> programs = {
      {"softmax_rows", R"(
  x = f32[37,5000] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[37] reduce(x, low), dimensions={1}, to_apply=max
  ms = f32[37,5000] broadcast(m), dimensions={0}
  d = f32[37,5000] subtract(x, ms)
  e = f32[37,5000] exponential(d)
  s = f32[37] reduce(e, zero), dimensions={1}, to_apply=add
  ss = f32[37,5000] broadcast(s), dimensions={0}
  ROOT r = f32[37,5000] divide(e, ss))"},
      {"sum_of_all", R"(
  x = f32[1000,1000] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add)"},
      {"columns", R"(
  x = f32[3000,300] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[300] reduce(x, zero), dimensions={0}, to_apply=add)"},
      {"middle", R"(
  x = f32[5,3000,70] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[5,70] reduce(x, zero), dimensions={1}, to_apply=add)"},
      {"cumulative_rows", R"(
  x = f32[3,100000] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[3,100000] reduce-window(x, zero), window={size=1x100000 pad=0_0x99999_0}, to_apply=add)"},
      {"cumulative_columns", R"(
  x = f32[2000,100] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[2000,100] reduce-window(x, zero), window={size=2000x1 pad=1999_0x0_0}, to_apply=add)"},
      {"scatter_add", R"(
  into = f32[50,64] parameter(0)
  rows = s32[4000,1] parameter(1)
  updates = f32[4000,64] parameter(2)
  ROOT r = f32[50,64] scatter(into, rows, updates), to_apply=add, update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1)"},
      {"gradient_of_weights", R"(
  x = f32[6,28,28,32] parameter(0)
  g = f32[6,28,28,48] parameter(1)
  ROOT w = f32[3,3,32,48] convolution(x, g), window={size=28x28 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf)"},
      {"region", R"(
  x = f32[7,90] parameter(0)
  zero = f32[] constant(0)
  s = f32[7] reduce(x, zero), dimensions={1}, to_apply=add
  t = f32[7] tanh(s)
  ts = f32[7,90] broadcast(t), dimensions={0}
  p = f32[7,90] multiply(x, ts)
  ROOT r = f32[90] reduce(p, zero), dimensions={0}, to_apply=add)"},
      {"windows", R"(
  x = f32[2,90,110,20] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[2,90,110,20] reduce-window(x, zero), window={size=1x11x11x1 pad=0_0x5_5x5_5x0_0}, to_apply=add)"},
      {"pooling", R"(
  x = f32[3,64,51,51] parameter(0)
  s = f32[64] parameter(1)
  zero = f32[] constant(0)
  ss = f32[3,64,51,51] broadcast(s), dimensions={1}
  p = f32[3,64,51,51] multiply(x, ss)
  w = f32[3,64,26,26] reduce-window(p, zero), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1}, to_apply=add
  part = f32[] constant(0.111)
  parts = f32[3,64,26,26] broadcast(part), dimensions={}
  ROOT r = f32[3,64,26,26] multiply(w, parts))"},
      {"chosen", R"(
  i = s32[300,1,1] parameter(0)
  u = f32[300,1] parameter(1)
  x = f32[300,2000] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[300,2000] broadcast(zero), dimensions={}
  c = f32[300,2000] scatter(zeros, i, u), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add
  d = f32[300,2000] subtract(x, c)
  ROOT r = f32[300] reduce(d, zero), dimensions={1}, to_apply=add)"},
      {"depthwise", R"(
  x = f32[3,40,40,64] parameter(0)
  w = f32[3,3,1,64] parameter(1)
  ROOT c = f32[3,40,40,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=64)"},
  };
  for (const int64_t images : {2, 3}) programs.push_back({fmt::format("group_norm_{}", images), GroupNorm(images)});
  int64_t number = 0;
  const auto add_dot = [&](const std::string& type, int64_t m, int64_t n, int64_t k) {
    programs.push_back({fmt::format("dot_{}_{}", type, number++), Dot(type, m, n, k)});
  };
  add_dot("f32", 1, 700, 3000);
  add_dot("f32", 5, 1000, 1000);
  add_dot("f32", 17, 300, 5000);
  add_dot("f32", 70, 90, 20000);
  add_dot("f32", 130, 2000, 500);
  add_dot("f32", 2000, 20, 100);
  add_dot("bf16", 17, 300, 5000);
  add_dot("bf16", 300, 300, 300);
  add_dot("f64", 70, 90, 2000);
  for (const auto& [side, channels, stride] :
       {std::array<int64_t, 3>{28, 64, 1}, {13, 256, 1}, {28, 64, 2}, {50, 8, 1}})
    programs.push_back(
        {fmt::format("convolution_{}_{}_{}", side, channels, stride), Convolution("f32", side, channels, stride)});
  programs.push_back({"convolution_bf16", Convolution("bf16", 28, 64, 1)});
  return programs;
}

std::string ModuleOf(const std::string& body) {
  return R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
ENTRY main {)" +
         body + "\n}";
}

std::string SpecOf(int64_t units, const std::string& device_class) {
  return fmt::format(R"({{"compute_units": {}, "device_class": "{}"}})", units, device_class);
}

// The results of so many runs, one after the other.
std::vector<std::vector<Literal>> ResultsWith(const std::string& device_spec, const std::string& text, int runs) {
  ClientOptions options;
  options.device_spec = device_spec;
  const auto client = Client::Create(options);
  const auto arguments = passes::RandomArguments(*passes::Parse(text), passes::Inputs::kMild, 1);
  const auto executable = client->Compile(Module::FromText(text), {});
  std::vector<std::vector<Literal>> results;
  for (int run = 0; run < runs; ++run) results.push_back(ToLiterals(executable->Run(ToDevice(*client, arguments))));
  return results;
}

using OnClass = std::tuple<Program, const char*>;

class ComputeUnitsTest : public ::testing::TestWithParam<OnClass> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(ComputeUnitsTest, ChangeNoBit) {
  const auto& [program, device_class] = GetParam();
  const std::string text = ModuleOf(program.body);
  const std::vector<Literal> expected = ResultsWith(SpecOf(1, device_class), text, 1)[0];
  for (const std::vector<Literal>& results : ResultsWith(SpecOf(6, device_class), text, 3)) {
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(passes::Difference(expected[i], results[i], passes::kBitwise), "") << "result " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ComputeUnitsTest,
                         ::testing::Combine(::testing::ValuesIn(Programs()), ::testing::Values("cpu", "gpu")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

// More than there are panels for: the rows of a tile, which a sum of what is made of results follows, stay.
TEST(ComputeUnits, ManyChangeNoBit) {
  const std::string text = ModuleOf(R"(
  x = f32[64,256] parameter(0)
  w = f32[256,8192] parameter(1)
  d = f32[64,8192] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,8192] tanh(d)
  zero = f32[] constant(0)
  ROOT r = f32[8192] reduce(t, zero), dimensions={0}, to_apply=add)");
  const auto spec = [](int64_t units) { return fmt::format(R"({{"compute_units": {}, "l2_bytes": 1048576}})", units); };
  EXPECT_EQ(
      passes::Difference(ResultsWith(spec(1), text, 1)[0][0], ResultsWith(spec(128), text, 1)[0][0], passes::kBitwise),
      "");
}

}  // namespace
}  // namespace hlorun
