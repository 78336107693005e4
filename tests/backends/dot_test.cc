// Matrix products on the device against sums in double on the host.
#include "backends/opencl/kernels/dot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;

TEST(Dot, SmallSizesOfEveryRemainder) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                   {1, 70, 33},
                                                                   {33, 17, 1},
                                                                   {2, 3, 5},
                                                                   {7, 19, 31},
                                                                   {13, 64, 32},
                                                                   {14, 33, 70},
                                                                   {15, 1, 49},
                                                                   {29, 40, 16},
                                                                   {70, 70, 70},
                                                                   {1, 100, 600},
                                                                   {20, 1024, 40}}) {
    for (int form = 0; form < 4; ++form) ExpectProduct({0, m, k, n, (form & 1) != 0, (form & 2) != 0}, Runner().spec());
  }
}

TEST(Dot, Batches) {
  for (int form = 0; form < 4; ++form)
    ExpectProduct({5, 21, 18, 37, (form & 1) != 0, (form & 2) != 0}, Runner().spec());
  ExpectProduct({3, 196, 64, 196, false, true}, Runner().spec());
}

TEST(Dot, OtherTypes) {
  using enum ElementType;
  for (const auto& [operand, result] : std::vector<std::pair<ElementType, ElementType>>{{kBF16, kBF16},
                                                                                        {kBF16, kF32},
                                                                                        {kF16, kF16},
                                                                                        {kF64, kF64},
                                                                                        {kS32, kS32},
                                                                                        {kS8, kS32},
                                                                                        {kS64, kS64},
                                                                                        {kS16, kS32}}) {
    ExpectProduct({0, 30, 45, 50, false, false, operand, result}, Runner().spec());
    ExpectProduct({2, 5, 21, 19, true, true, operand, result}, Runner().spec());
  }
}

TEST(Dot, WordsOfS8) {
  using enum ElementType;
  DeviceSpec spec = Runner().spec();
  spec.s8_dot = ListDevices().at(0)->spec().s8_dot;
  if (spec.s8_dot.empty()) GTEST_SKIP() << "no way to multiply words of s8 here: not measured";
  ProductShape shape{.m = 30, .n = 50, .k = 44, .lhs_type = kS8, .rhs_type = kS8, .compute_type = kS32};
  ASSERT_EQ(PlanProduct(shape, spec).words.kind, WordKind::kS8Quads);
  ExpectProduct({0, 16, 144, 333, false, true, kS8, kS32, -128, 127}, spec);  // roles exchanged
  for (const bool rhs_transposed : {false, true}) {
    ExpectProduct({0, 30, 44, 50, false, rhs_transposed, kS8, kS32, -128, 127}, spec);
    ExpectProduct({0, 33, 320, 31, false, rhs_transposed, kS8, kS32, -128, 127}, spec);
    ExpectProduct({3, 41, 68, 96, false, rhs_transposed, kS8, kS32, -128, 127}, spec);
    ExpectProduct({0, 13, 4, 16, false, rhs_transposed, kS8, kS32, -128, -128}, spec);  // the largest sums
    ExpectProduct({0, 13, 4, 16, false, rhs_transposed, kS8, kS32, 127, 127}, spec);
  }
  ExpectProduct({0, 40, 10000, 40, false, true, kS8, kS32, -128, 127}, spec);  // parts of a long sum
  ExpectProduct({0, 70, 50000, 40, false, false, kS8, kS32, -128, 127}, spec);
  ExpectProduct({0, 30, 46, 50, false, false, kS8, kS32, -128, 127}, spec);  // no whole words
  ExpectProduct({0, 30, 44, 50, true, true, kS8, kS32, -128, 127}, spec);    // no words in lhs
  ExpectProduct({0, 3, 44, 50, false, false, kS8, kS32, -128, 127}, spec);   // few rows
  ExpectProduct({0, 30, 44, 50, false, false, kS8, kS8, -128, 127}, spec);   // other sums
  spec.vector_bytes = 32;
  ExpectProduct({0, 30, 44, 50, false, false, kS8, kS32, -128, 127}, spec);  // other vectors
}

TEST(Dot, PairsOfBf16) {
  DeviceSpec spec = Runner().spec();
  spec.bf16_dot = ListDevices().at(0)->spec().bf16_dot;
  if (spec.bf16_dot.empty()) GTEST_SKIP() << "no way to multiply pairs of bf16 here: not measured";
  for (const ElementType result : {ElementType::kBF16, ElementType::kF32}) {
    for (const bool rhs_transposed : {false, true}) {
      ExpectProduct({0, 30, 46, 50, false, rhs_transposed, ElementType::kBF16, result}, spec);
      ExpectProduct({3, 41, 66, 96, false, rhs_transposed, ElementType::kBF16, result}, spec);
    }
  }
  ExpectProduct({0, 40, 5000, 40, false, true, ElementType::kBF16, ElementType::kF32}, spec);  // parts of a long sum
  ExpectProduct({0, 30, 45, 50, false, false, ElementType::kBF16, ElementType::kBF16}, spec);  // odd depth
  ExpectProduct({0, 30, 46, 50, true, false, ElementType::kBF16, ElementType::kBF16}, spec);   // no pairs in lhs
}

TEST(Dot, MatrixUnitIsTakenWhereItPays) {
  DeviceSpec spec;
  const ProductShape shape{.m = 64, .n = 64, .k = 64, .lhs_type = ElementType::kBF16, .rhs_type = ElementType::kBF16};
  EXPECT_FALSE(PlanMatrixUnit(shape, spec));
  spec.has_bf16_tiles = true;
  ASSERT_TRUE(PlanMatrixUnit(shape, spec));
  const auto takes = [&](const auto& change) {
    ProductShape changed = shape;
    change(changed);
    return PlanMatrixUnit(changed, spec).has_value();
  };
  EXPECT_FALSE(takes([](ProductShape& s) { s.lhs_type = ElementType::kF32; }));
  EXPECT_FALSE(takes([](ProductShape& s) { s.lhs_type = s.rhs_type = s.compute_type = ElementType::kS32; }));
  EXPECT_FALSE(takes([](ProductShape& s) { s.m = 4; }));
  EXPECT_FALSE(takes([](ProductShape& s) { s.n = 4; }));
  EXPECT_FALSE(takes([](ProductShape& s) { s.k = 100000; }));  // few results: parts of long sums
  EXPECT_FALSE(takes([](ProductShape& s) { s.depth_may_be_less = true; }));
  EXPECT_FALSE(takes([](ProductShape& s) { s.ends_at_sizes = true; }));
  EXPECT_FALSE(takes([](ProductShape& s) { s.m = s.n = 16; }));
  const auto takes_few = [&](bool rhs_transposed, int64_t rows) {
    return takes([&](ProductShape& s) {
      s.m = rows;
      s.n = 4096;
      s.rhs_transposed = rhs_transposed;
    });
  };
  EXPECT_TRUE(takes_few(false, 16));
  EXPECT_TRUE(takes_few(true, 32));
  EXPECT_FALSE(takes_few(true, 16));  // a large rhs is read as it lies
  spec.device_class = DeviceClass::kGpu;
  EXPECT_FALSE(PlanMatrixUnit(shape, spec));
}

TEST(Dot, TilesOfBf16OfEveryRemainder) {
  using enum ElementType;
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{12, 16, 96},
                                                                   {15, 17, 70},
                                                                   {17, 31, 65},
                                                                   {65, 33, 17},
                                                                   {33, 65, 63},
                                                                   {64, 255, 65},
                                                                   {63, 256, 64},
                                                                   {70, 257, 15},
                                                                   {96, 300, 200}}) {
    const ProductShape shape{.m = m, .n = n, .k = k, .lhs_type = kBF16, .rhs_type = kBF16};
    ASSERT_TRUE(PlanMatrixUnit(shape, *spec));
    for (int form = 0; form < 4; ++form) {
      ExpectProduct({0, m, k, n, (form & 1) != 0, (form & 2) != 0, kBF16, k % 2 == 0 ? kBF16 : kF32}, *spec);
    }
  }
}

TEST(Dot, TilesOfS8OfEveryRemainder) {
  using enum ElementType;
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const auto& [m, k, n] :
       std::vector<std::array<int64_t, 3>>{{12, 17, 96}, {65, 63, 17}, {33, 65, 63}, {32, 128, 64}, {64, 1027, 300}}) {
    for (int form = 0; form < 4; ++form) {
      const bool lhs = (form & 1) != 0, rhs = (form & 2) != 0;
      ExpectProduct({0, m, k, n, lhs, rhs, kS8, kS32, -128, 127}, *spec);
      if (k == 65) ExpectProduct({0, m, k, n, lhs, rhs, kS8, kS32, -128, -128}, *spec);  // the largest sums
    }
  }
  ExpectProduct({3, 41, 68, 96, false, false, kS8, kS32, -128, 127}, *spec);
  ExpectProduct({0, 30, 44, 50, false, false, kS8, kS8, -128, 127}, *spec);  // other sums: not by tiles
}

// Batches, and several groups of columns and blocks of depth.
TEST(Dot, TilesInGroups) {
  using enum ElementType;
  std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const bool rhs_transposed : {false, true}) {
    ExpectProduct({5, 40, 33, 70, false, rhs_transposed, kBF16, kF32}, *spec);
    ExpectProduct({0, 16, 300, 500, false, rhs_transposed, kBF16, kF32}, *spec);
    ExpectProduct({0, 40, 300, 500, false, rhs_transposed, kBF16, kBF16}, *spec);
  }
  spec->l2_bytes = 64 << 10;
  ExpectProduct({0, 200, 600, 333, false, false, kBF16, kF32}, *spec);
  ExpectProduct({2, 100, 600, 333, true, true, kBF16, kF32}, *spec);
  spec->compute_units = 7;
  ExpectProduct({0, 200, 600, 333, false, true, kBF16, kBF16}, *spec);
}

double HostDot(const Fused& run, int64_t i, int64_t j, int64_t k, int64_t n, bool rhs_transposed = false) {
  double sum = 0;
  for (int64_t p = 0; p < k; ++p)
    sum += run.operands[0].GetDouble(i * k + p) * run.operands[1].GetDouble(rhs_transposed ? j * k + p : p * n + j);
  return sum;
}

// relu(lhs * rhs + bias + residual), of sizes with every remainder.
std::string BiasReluText(int64_t m, int64_t k, int64_t n, bool rhs_transposed, const std::string& operands) {
  return fmt::format(R"(HloModule bias_relu
fused {{
  a = {5}[{0},{1}] parameter(0)
  b = {5}[{3}] parameter(1)
  bias = f32[{2}] parameter(2)
  residual = f32[{0},{2}] parameter(3)
  product = f32[{0},{2}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{4}}}
  wide = f32[{0},{2}] broadcast(bias), dimensions={{1}}
  sum = f32[{0},{2}] add(product, wide)
  total = f32[{0},{2}] add(sum, residual)
  zero = f32[] constant(0)
  zeros = f32[{0},{2}] broadcast(zero), dimensions={{}}
  ROOT relu = f32[{0},{2}] maximum(total, zeros)
}}
ENTRY main {{
  a = {5}[{0},{1}] parameter(0)
  b = {5}[{3}] parameter(1)
  bias = f32[{2}] parameter(2)
  residual = f32[{0},{2}] parameter(3)
  ROOT out = f32[{0},{2}] fusion(a, b, bias, residual), kind=kOutput, calls=fused
}}
)",
                     m, k, n, rhs_transposed ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n),
                     rhs_transposed ? 1 : 0, operands);
}

void ExpectBiasRelu(int64_t m, int64_t k, int64_t n, const AliasPattern& aliases,
                    const DeviceSpec& spec = Runner().spec(), bool rhs_transposed = false,
                    const std::string& operands = "f32") {
  SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << n << " alias " << aliases[0]);
  const Fused run = RunFusion(BiasReluText(m, k, n, rhs_transposed, operands), aliases, spec);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double sum = HostDot(run, i, j, k, n, rhs_transposed) + run.operands[2].GetDouble(j) +
                         run.operands[3].GetDouble(i * n + j);
      ASSERT_NEAR(run.result.GetDouble(i * n + j), std::max(sum, 0.0), 1e-5 * static_cast<double>(k)) << i << ", " << j;
    }
  }
}

TEST(Dot, BiasResidualReluInTheEpilogue) {
  ExpectBiasRelu(45, 30, 75, {-1});
  ExpectBiasRelu(3, 30, 21, {-1});
  ExpectBiasRelu(33, 20, 1, {-1});
  ExpectBiasRelu(230, 40, 75, {-1});
}

TEST(Dot, ResidualSharesTheResultsBuffer) {
  ExpectBiasRelu(45, 30, 75, {3});
  ExpectBiasRelu(20, 3000, 40, {3});  // through partial sums
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 64 << 10;
  ExpectBiasRelu(100, 70, 300, {3}, small);
  ExpectBiasRelu(101, 2100, 300, {3}, small);  // in blocks of depth
}

TEST(Dot, EpilogueOfExchangedRoles) {
  const DeviceSpec& spec = Runner().spec();
  for (const int64_t alias : {-1, 3}) {
    ExpectBiasRelu(16, 90, 301, {alias}, spec, true);
    ExpectBiasRelu(37, 90, 128, {alias}, spec, true);
    ExpectBiasRelu(16, 3000, 40, {alias}, spec, true);  // through partial sums
  }
}

DeviceSpec GpuClass() {
  DeviceSpec gpu = Runner().spec();
  gpu.device_class = DeviceClass::kGpu;
  gpu.max_work_group_size = 128;
  gpu.local_memory_bytes = 16 << 10;
  return gpu;
}

// lhs * rhs + bias, whose columns are `heads` of `size`, put as [heads][rows][size].
void ExpectHeads(int64_t m, int64_t k, int64_t heads, int64_t size, bool rhs_transposed, bool has_bias,
                 const DeviceSpec& spec = Runner().spec()) {
  SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << heads << " of " << size
                                    << (rhs_transposed ? " t" : ""));
  const int64_t n = heads * size;
  const Fused run =
      RunFusion(fmt::format(R"(HloModule heads
fused {{
  a = f32[{0},{1}] parameter(0)
  b = f32[{3}] parameter(1)
  bias = f32[{2}] parameter(2)
  product = f32[{0},{2}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{4}}}
  wide = f32[{0},{2}] broadcast(bias), dimensions={{1}}
  sum = f32[{0},{2}] add(product, wide)
  apart = f32[{0},{5},{6}] reshape({7})
  ROOT together = f32[{5},{0},{6}] transpose(apart), dimensions={{1,0,2}}
}}
ENTRY main {{
  a = f32[{0},{1}] parameter(0)
  b = f32[{3}] parameter(1)
  bias = f32[{2}] parameter(2)
  ROOT out = f32[{5},{0},{6}] fusion(a, b, bias), kind=kOutput, calls=fused
}}
)",
                            m, k, n, rhs_transposed ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n),
                            rhs_transposed ? 1 : 0, heads, size, has_bias ? "sum" : "product"),
                {-1}, spec);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double sum = HostDot(run, i, j, k, n, rhs_transposed) + (has_bias ? run.operands[2].GetDouble(j) : 0);
      ASSERT_NEAR(run.result.GetDouble((j / size * m + i) * size + j % size), sum, 1e-5 * static_cast<double>(k))
          << i << ", " << j;
    }
  }
}

TEST(Dot, ResultsThatAreRearranged) {
  DeviceSpec narrow = Runner().spec(), small = narrow;
  narrow.vector_bytes = 32;
  small.l2_bytes = 64 << 10;
  for (const bool has_bias : {false, true}) {
    for (const bool rhs_transposed : {false, true}) {
      for (const DeviceSpec& spec : {Runner().spec(), narrow, small, GpuClass()}) {
        ExpectHeads(45, 30, 3, 32, rhs_transposed, has_bias, spec);
        ExpectHeads(33, 20, 5, 48, rhs_transposed, has_bias, spec);
        ExpectHeads(230, 40, 2, 16, rhs_transposed, has_bias, spec);
        ExpectHeads(3, 30, 4, 64, rhs_transposed, has_bias, spec);
        ExpectHeads(1, 30, 4, 64, rhs_transposed, has_bias, spec);
      }
      ExpectHeads(20, 3000, 3, 16, rhs_transposed, has_bias);  // through partial sums
      ExpectHeads(16, 90, 20, 16, rhs_transposed, has_bias);   // exchanged, where rhs is transposed
      ExpectHeads(16, 90, 8, 64, rhs_transposed, has_bias);    // the same; few tiles cross heads
      ExpectHeads(101, 2100, 6, 48, rhs_transposed, has_bias, small);
    }
  }
}

// Rows of lhs without padding are not copied.
TEST(Dot, TilesOfLhsInPlace) {
  using enum ElementType;
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const auto in_place = [&](int64_t m, int64_t k, bool transposed = false) {
    const ProductShape shape{
        .m = m, .n = 64, .k = k, .lhs_transposed = transposed, .lhs_type = kBF16, .rhs_type = kBF16};
    return PlanMatrixUnit(shape, *spec)->lhs_in_place;
  };
  EXPECT_TRUE(in_place(64, 256));
  EXPECT_TRUE(in_place(64, 768));
  EXPECT_FALSE(in_place(64, 1024));  // rows in few sets of the first cache
  EXPECT_FALSE(in_place(65, 256));
  EXPECT_FALSE(in_place(64, 257));
  EXPECT_FALSE(in_place(64, 256, true));
  for (const bool rhs_transposed : {false, true}) {
    ExpectProduct({3, 64, 64, 40, false, rhs_transposed, kBF16, kF32}, *spec);
    ExpectProduct({0, 96, 768, 70, false, rhs_transposed, kBF16, kF32}, *spec);
    ExpectProduct({0, 32, 320, 64, false, rhs_transposed, kS8, kS32, -128, 127}, *spec);
  }
}

TEST(Dot, EpilogueOfTiles) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const int64_t alias : {-1, 3}) {
    ExpectBiasRelu(45, 30, 75, {alias}, *spec, false, "bf16");
    ExpectBiasRelu(64, 600, 64, {alias}, *spec, true, "bf16");
    ExpectBiasRelu(41, 90, 300, {alias}, *spec, true, "bf16");
    ExpectBiasRelu(32, 90, 256, {alias}, *spec, false, "bf16");
  }
}

double Bf16(double x) {
  Literal rounded(Shape::Scalar(ElementType::kBF16));
  rounded.SetDouble(0, x);
  return rounded.GetDouble(0);
}

TEST(Dot, EpilogueRoundsLikeTheOpsOneByOne) {
  const Fused run = RunFusion(R"(HloModule rounding
fused {
  a = bf16[9,16] parameter(0)
  b = bf16[16,20] parameter(1)
  product = bf16[9,20] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  third = bf16[] constant(0.333)
  thirds = bf16[9,20] broadcast(third), dimensions={}
  scaled = bf16[9,20] multiply(product, thirds)
  ROOT wide = f32[9,20] convert(scaled)
}
ENTRY main {
  a = bf16[9,16] parameter(0)
  b = bf16[16,20] parameter(1)
  ROOT out = f32[9,20] fusion(a, b), kind=kOutput, calls=fused
}
)");
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      const double expected = Bf16(Bf16(HostDot(run, i, j, 16, 20)) * Bf16(0.333));
      const double got = run.result.GetDouble(i * 20 + j);
      EXPECT_NEAR(got, expected, 0.008 * std::abs(expected));  // a rounding more or less
      EXPECT_EQ(got, Bf16(got));
    }
  }
}

TEST(Dot, GpuClass) {
  for (int form = 0; form < 4; ++form) ExpectProduct({0, 70, 37, 90, (form & 1) != 0, (form & 2) != 0}, GpuClass());
  ExpectProduct({3, 21, 18, 37}, GpuClass());
  ExpectProduct({0, 33, 40, 1}, GpuClass());
  ExpectProduct({0, 64, 64, 64, false, false, ElementType::kF64, ElementType::kF64}, GpuClass());
  ExpectProduct({0, 30, 45, 50, false, true, ElementType::kBF16, ElementType::kBF16}, GpuClass());
}

// What a CPU with the instruction does with pairs is none of the other class's kernels.
TEST(Dot, GpuClassTakesNoPairs) {
  DeviceSpec gpu = GpuClass();
  gpu.bf16_dot = gpu.s8_dot = "assembly";
  ExpectProduct({0, 30, 44, 50, false, false, ElementType::kS8, ElementType::kS32, -128, 127}, gpu);
  for (const bool rhs_transposed : {false, true})
    ExpectProduct({2, 30, 46, 50, false, rhs_transposed, ElementType::kBF16, ElementType::kBF16}, gpu);
}

DeviceSpec WithS8Fragments() {
  DeviceSpec spec = GpuClass();
  spec.matrix_fragments = "plain";
  spec.has_s8_fragments = true;
  spec.local_memory_bytes = 48 << 10;
  return spec;
}

// The places of matrix instructions: rows and columns in whole words of four, of two, and odd ones; parts of sums.
TEST(Dot, FragmentsOfS8) {
  using enum ElementType;
  for (int form = 0; form < 4; ++form) {
    const bool lhs = (form & 1) != 0, rhs = (form & 2) != 0;
    ExpectProduct({0, 80, 96, 144, lhs, rhs, kS8, kS32, -128, 127}, WithS8Fragments());
    ExpectProduct({2, 36, 68, 20, lhs, rhs, kS8, kS32, -128, 127}, WithS8Fragments());
    ExpectProduct({3, 34, 70, 50, lhs, rhs, kS8, kS32, -128, 127}, WithS8Fragments());
    ExpectProduct({0, 33, 65, 21, lhs, rhs, kS8, kS32, -128, -128}, WithS8Fragments());
  }
  ExpectProduct({0, 16, 5000, 40, false, false, kS8, kS32, -128, 127}, WithS8Fragments());
  ExpectProduct({0, 30, 44, 50, false, false, kS8, kS8, -128, 127}, WithS8Fragments());  // other sums: by tiles
}

// A quantized layer: sums as f32, with a factor and a bias for each column.
TEST(Dot, EpilogueOfS8Fragments) {
  for (const int64_t n : {64, 75}) {
    const Fused run = RunFusion(fmt::format(R"(HloModule quantized
fused {{
  a = s8[45,36] parameter(0)
  b = s8[36,{0}] parameter(1)
  factors = f32[{0}] parameter(2)
  bias = f32[{0}] parameter(3)
  product = s32[45,{0}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  sums = f32[45,{0}] convert(product)
  wide_factors = f32[45,{0}] broadcast(factors), dimensions={{1}}
  scaled = f32[45,{0}] multiply(sums, wide_factors)
  wide_bias = f32[45,{0}] broadcast(bias), dimensions={{1}}
  ROOT out = f32[45,{0}] add(scaled, wide_bias)
}}
ENTRY main {{
  a = s8[45,36] parameter(0)
  b = s8[36,{0}] parameter(1)
  factors = f32[{0}] parameter(2)
  bias = f32[{0}] parameter(3)
  ROOT out = f32[45,{0}] fusion(a, b, factors, bias), kind=kOutput, calls=fused
}}
)",
                                            n),
                                {-1}, WithS8Fragments());
    for (int64_t i = 0; i < 45; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double expected = HostDot(run, i, j, 36, n) * run.operands[2].GetDouble(j) + run.operands[3].GetDouble(j);
        ASSERT_NEAR(run.result.GetDouble(i * n + j), expected, 1e-4) << i << ", " << j;
      }
    }
  }
}

// Words of four bytes, whichever operand has signs: whole words of k and what is beyond them, parts of sums.
TEST(Dot, IntegerDotOfBytes) {
  using enum ElementType;
  DeviceSpec spec = GpuClass();
  spec.has_integer_dot = true;
  for (int form = 0; form < 4; ++form) {
    const bool lhs = (form & 1) != 0, rhs = (form & 2) != 0;
    ExpectProduct({0, 80, 96, 144, lhs, rhs, kS8, kS32, -128, 127}, spec);
    ExpectProduct({2, 36, 68, 20, lhs, rhs, kS8, kS32, -128, 127}, spec);
    ExpectProduct({3, 34, 70, 50, lhs, rhs, kS8, kS32, -128, 127}, spec);
    ExpectProduct({0, 33, 65, 21, lhs, rhs, kU8, kS32, 0, 255}, spec);
    ExpectProduct({0, 48, 40, 64, lhs, rhs, kU8, kS32, 0, 255}, spec);
  }
  ExpectProduct({0, 1, 40, 64, false, false, kS8, kS32, -128, 127}, spec);
  ExpectProduct({0, 16, 5000, 40, false, false, kS8, kS32, -128, 127}, spec);
  ExpectProduct({0, 30, 44, 50, false, false, kS8, kS8, -128, 127}, spec);  // other sums: one by one
}

TEST(Dot, GpuClassEpilogue) { ExpectBiasRelu(45, 30, 75, {3}, GpuClass()); }

TEST(Dot, NarrowVectors) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 32;
  for (int form = 0; form < 4; ++form) ExpectProduct({0, 43, 37, 29, (form & 1) != 0, (form & 2) != 0}, narrow);
}

}  // namespace
}  // namespace hlorun::opencl
