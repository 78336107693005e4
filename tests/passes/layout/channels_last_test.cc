// Images between convolutions take the convolutions' order of dimensions, keep their values, and stay where that spares
// nothing.
#include "passes/layout/channels_last.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "passes/generic_context.h"
#include "passes/simplify/dce.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

constexpr const char* kHead = R"(HloModule m
  add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
  max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
  ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=GE }
  ENTRY e {
    x = f32[2,5,6,4] parameter(0)
    k = f32[3,3,4,4] parameter(1)
    v = f32[4] parameter(2)
    c = f32[2,5,6,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
    t = f32[2,4,5,6] transpose(c), dimensions={0,3,1,2}
    zero = f32[] constant(0)
    inf = f32[] constant(-inf)
)";

struct Case {
  const char* name;
  const char* text;
  int64_t transposes;  // that are left
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Case kCases[] = {
    {"NormAndActivation", R"(
    b = f32[2,4,5,6] broadcast(v), dimensions={1}
    z = f32[2,4,5,6] broadcast(zero), dimensions={}
    s = f32[2,4,5,6] add(t, b)
    m = f32[2,4,5,6] maximum(s, z)
    u = f32[2,5,6,4] transpose(m), dimensions={0,2,3,1}
    ROOT r = f32[2,5,6,4] convolution(u, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f)",
     0},
    {"Residual", R"(
    m = f32[2,4,5,6] tanh(t)
    u = f32[2,5,6,4] transpose(m), dimensions={0,2,3,1}
    d = f32[2,5,6,4] convolution(u, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
    w = f32[2,4,5,6] transpose(d), dimensions={0,3,1,2}
    s = f32[2,4,5,6] add(m, w)
    ROOT r = f32[2,5,6,4] transpose(s), dimensions={0,2,3,1})",
     0},
    {"Pooling", R"(
    p = f32[2,4,2,3] reduce-window(t, inf), window={size=1x1x3x2 stride=1x1x2x2}, to_apply=max
    q = f32[2,4,4,6] pad(p, zero), padding=0_0x0_0x1_1x2_1
    ROOT r = f32[2,4,6,4] transpose(q), dimensions={0,2,3,1})",
     0},
    {"PixelsByIndex", R"(
    i = s32[7,8,2] iota(), iota_dimension=0
    g = f32[2,4,7,8] gather(t, i), offset_dims={0,1}, collapsed_slice_dims={2,3}, start_index_map={3,2}, index_vector_dim=2, slice_sizes={2,4,1,1}
    ROOT r = f32[2,7,8,4] transpose(g), dimensions={0,2,3,1})",
     0},
    {"RowsByIndex", R"(
    i = s32[7,1] constant({{0},{4},{1},{1},{3},{2},{0}})
    g = f32[2,4,7,6] gather(t, i), offset_dims={0,1,3}, collapsed_slice_dims={2}, start_index_map={2}, index_vector_dim=1, slice_sizes={2,4,1,6}
    ROOT r = f32[2,7,6,4] transpose(g), dimensions={0,2,3,1})",
     0},
    {"GradientOfPixelsByIndex", R"(
    i = s32[3,1] constant({{4},{1},{4}})
    z = f32[2,4,7,6] broadcast(zero), dimensions={}
    p = f32[2,4,3,6] slice(t), slice={[0:2],[0:4],[1:4],[0:6]}
    g = f32[2,4,7,6] scatter(z, i, p), update_window_dims={0,1,3}, inserted_window_dims={2}, scatter_dims_to_operand_dims={2}, index_vector_dim=1, to_apply=add
    ROOT r = f32[2,7,6,4] transpose(g), dimensions={0,2,3,1})",
     0},
    {"ChannelsAndRowsByIndex", R"(
    i = s32[7,8,2] iota(), iota_dimension=1
    g = f32[2,7,8,6] gather(t, i), offset_dims={0,3}, collapsed_slice_dims={1,2}, start_index_map={1,2}, index_vector_dim=2, slice_sizes={2,1,1,6}
    ROOT r = f32[2,8,6,7] transpose(g), dimensions={0,2,3,1})",
     2},
    {"ChannelsByIndex", R"(
    i = s32[3] constant({3,0,3})
    g = f32[3,2,5,6] gather(t, i), offset_dims={1,2,3}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={2,1,5,6}
    ROOT r = f32[3,5,6,2] transpose(g), dimensions={0,2,3,1})",
     2},
    {"GradientOfPooling", R"(
    p = f32[2,4,2,3] reduce-window(t, inf), window={size=1x1x2x2 stride=1x1x2x2}, to_apply=max
    g = f32[2,4,5,6] select-and-scatter(t, p, zero), window={size=1x1x2x2 stride=1x1x2x2}, select=ge, scatter=add
    ROOT r = f32[2,5,6,4] transpose(g), dimensions={0,2,3,1})",
     0},
    {"ConcatenationAndSlice", R"(
    m = f32[2,4,5,6] tanh(t)
    j = f32[2,8,5,6] concatenate(t, m), dimensions={1}
    s = f32[2,4,4,3] slice(j), slice={[0:2], [2:6], [1:5], [0:6:2]}
    ROOT r = f32[2,4,3,4] transpose(s), dimensions={0,2,3,1})",
     0},
    {"MeanOfChannels", R"(
    m = f32[2,4,5,6] tanh(t)
    ROOT r = f32[2,4] reduce(m, zero), dimensions={2,3}, to_apply=add)",
     0},
    {"PointwiseProduct", R"(
    w = f32[4,7] parameter(3)
    m = f32[2,4,5,6] tanh(t)
    ROOT r = f32[2,5,6,7] dot(m, w), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
     0},
    {"BroadcastOfMasks", R"(
    p = f32[5,6] parameter(3)
    b = f32[2,4,5,6] broadcast(p), dimensions={2,3}
    i = f32[2,4,5,6] iota(), iota_dimension=1
    s = f32[2,4,5,6] multiply(t, b)
    y = f32[2,4,5,6] add(s, i)
    ROOT r = f32[2,5,6,4] transpose(y), dimensions={0,2,3,1})",
     0},
    // Others read the order with channels first: one transpose as before, at the end instead of at the beginning.
    {"ResultWithChannelsFirst", R"(
    m = f32[2,4,5,6] tanh(t)
    ROOT r = f32[2,120] reshape(m))",
     1},
    {"OtherTranspose", R"(
    m = f32[2,4,5,6] tanh(t)
    n = f32[2,4,5,6] negate(m)
    u = f32[2,5,6,4] transpose(n), dimensions={0,2,3,1}
    y = f32[6,5,4,2] transpose(m), dimensions={3,2,1,0}
    ROOT r = (f32[2,5,6,4], f32[6,5,4,2]) tuple(u, y))",
     1},
    // Sums of two arguments that come with channels first and stay so: to turn them would cost more.
    {"ArgumentsWithChannelsFirst", R"(
    y = f32[2,4,5,6] parameter(3)
    z = f32[2,4,5,6] parameter(4)
    a = f32[2,4,5,6] add(t, y)
    b = f32[2,4,5,6] add(a, z)
    ROOT r = f32[2,5,6,4] transpose(b), dimensions={0,2,3,1})",
     2},
    {"SumsThatLeaveAnotherOrder", R"(
    m = f32[2,4,5,6] tanh(t)
    ROOT r = f32[2,4,5] reduce(m, zero), dimensions={3}, to_apply=add)",
     1},
};

class ChannelsLastTest : public ::testing::TestWithParam<Case> {};

TEST_P(ChannelsLastTest, SparesTransposesAndKeepsValues) {
  const std::string text = std::string(kHead) + GetParam().text + "}";
  ChannelsLast pass;
  RunAndCompare(text, pass, kRounding);
  const auto module = RunPass(text, pass);
  GenericContext context;
  DeadCode().Run(*module, context);
  EXPECT_EQ(Count(*module, hlo::Opcode::kTranspose), GetParam().transposes);
}

INSTANTIATE_TEST_SUITE_P(All, ChannelsLastTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hlorun::passes
