// Products that compute an operand where they would load it, against the evaluator.
#include "backends/opencl/kernels/computed_operand.h"

#include <gtest/gtest.h>

#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

// Rhs is weights of 8 bits with a factor for each column, or for each row of [n][k]; a bias and the product's own
// rounding behind it.
std::string ScaledBytes(int64_t m, int64_t k, int64_t n, bool rhs_transposed) {
  const std::string rhs = rhs_transposed ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n);
  return fmt::format(R"(HloModule scaled
fused {{
  a = f32[{0},{1}] parameter(0)
  q = s8[{3}] parameter(1)
  factors = f32[{2}] parameter(2)
  bias = f32[{2}] parameter(3)
  w = f32[{3}] convert(q)
  wide = f32[{3}] broadcast(factors), dimensions={{{4}}}
  scaled = f32[{3}] multiply(w, wide)
  product = f32[{0},{2}] dot(a, scaled), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{5}}}
  more = f32[{0},{2}] broadcast(bias), dimensions={{1}}
  ROOT out = f32[{0},{2}] add(product, more)
}}
ENTRY main {{
  a = f32[{0},{1}] parameter(0)
  q = s8[{3}] parameter(1)
  factors = f32[{2}] parameter(2)
  bias = f32[{2}] parameter(3)
  ROOT out = f32[{0},{2}] fusion(a, q, factors, bias), kind=kOutput, calls=fused
}}
)",
                     m, k, n, rhs, rhs_transposed ? 0 : 1, rhs_transposed ? 1 : 0);
}

// One layer's weights of several, whichever `layer` says; e^w, so that what is beyond the matrix is not zero.
std::string SliceOfLayers(int64_t m, int64_t k, int64_t n) {
  return fmt::format(R"(HloModule layers
fused {{
  a = bf16[{0},{1}] parameter(0)
  layers = bf16[3,{1},{2}] parameter(1)
  layer = s32[] parameter(2)
  zero = s32[] constant(0)
  one = bf16[1,{1},{2}] dynamic-slice(layers, layer, zero, zero), dynamic_slice_sizes={{1,{1},{2}}}
  w = bf16[{1},{2}] bitcast(one)
  e = bf16[{1},{2}] exponential(w)
  ROOT product = f32[{0},{2}] dot(a, e), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
ENTRY main {{
  a = bf16[{0},{1}] parameter(0)
  layers = bf16[3,{1},{2}] parameter(1)
  layer = s32[] parameter(2)
  ROOT out = f32[{0},{2}] fusion(a, layers, layer), kind=kOutput, calls=fused
}}
)",
                     m, k, n);
}

// Both operands in batches, lhs one that is copied because it is no f32.
std::string Batches(int64_t m, int64_t k, int64_t n) {
  return fmt::format(R"(HloModule batches
fused {{
  a = f32[3,{0},{1}] parameter(0)
  b = f16[3,{1},{2}] parameter(1)
  x = bf16[3,{0},{1}] convert(a)
  y = bf16[3,{1},{2}] convert(b)
  ROOT product = f32[3,{0},{2}] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}}
ENTRY main {{
  a = f32[3,{0},{1}] parameter(0)
  b = f16[3,{1},{2}] parameter(1)
  ROOT out = f32[3,{0},{2}] fusion(a, b), kind=kOutput, calls=fused
}}
)",
                     m, k, n);
}

// A factor for each column of lhs.
std::string ScaledLhs(int64_t m, int64_t k, int64_t n) {
  return fmt::format(R"(HloModule lhs
fused {{
  a = bf16[{0},{1}] parameter(0)
  b = bf16[{1},{2}] parameter(1)
  factors = bf16[{1}] parameter(2)
  wide = bf16[{0},{1}] broadcast(factors), dimensions={{1}}
  x = bf16[{0},{1}] multiply(a, wide)
  ROOT product = f32[{0},{2}] dot(x, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
ENTRY main {{
  a = bf16[{0},{1}] parameter(0)
  b = bf16[{1},{2}] parameter(1)
  factors = bf16[{1}] parameter(2)
  ROOT out = f32[{0},{2}] fusion(a, b, factors), kind=kOutput, calls=fused
}}
)",
                     m, k, n);
}

bool HasKernel(const std::string& text, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  return EmitDot(*module->entry()->root(), {-1}, {spec, {}}).has_value();
}

void ExpectEvaluators(const std::string& text, const DeviceSpec& spec) {
  SCOPED_TRACE(text);
  ASSERT_TRUE(HasKernel(text, spec));
  const Fused run = RunFusion(text, {-1}, spec);
  const hlo::Literal expected = hlo::Evaluate(*run.module, run.operands);
  double largest = 0, error = 0;
  for (int64_t i = 0; i < expected.ElementCount(); ++i) {
    largest = std::max(largest, std::abs(expected.GetDouble(i)));
    error = std::max(error, std::abs(expected.GetDouble(i) - run.result.GetDouble(i)));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(error, 1e-5 * largest);
}

DeviceSpec OfClass(DeviceClass device_class) {
  DeviceSpec spec = Runner().spec();
  spec.device_class = device_class;
  spec.has_bf16_tiles = spec.has_s8_tiles = false;
  return spec;
}

// With a second cache that even small operands are larger than: rows stream by, columns are dot products.
TEST(ComputedOperand, OfFewRows) {
  DeviceSpec spec = OfClass(DeviceClass::kCpu);
  spec.l2_bytes = 16 << 10;
  for (const bool rhs_transposed : {false, true}) {
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{512, 160}, {640, 96}, {300, 75}, {1000, 333}}) {
      ExpectEvaluators(ScaledBytes(1, k, n, rhs_transposed), spec);
      ExpectEvaluators(ScaledBytes(4, k, n, rhs_transposed), spec);
    }
  }
  for (const int64_t n : {160, 75}) ExpectEvaluators(SliceOfLayers(1, 600, n), spec);
  for (const int64_t n : {75, 200}) ExpectEvaluators(ScaledBytes(12, 300, n, false), spec);
}

TEST(ComputedOperand, OfPanels) {
  for (const int64_t l2_bytes : {Runner().spec().l2_bytes, int64_t{64} << 10}) {
    DeviceSpec spec = OfClass(DeviceClass::kCpu);
    spec.l2_bytes = l2_bytes;
    spec.bf16_dot.clear();
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{9, 64, 96}, {9, 30, 75}, {200, 300, 333}}) {
      ExpectEvaluators(ScaledBytes(m, k, n, false), spec);
      ExpectEvaluators(SliceOfLayers(m, k, n), spec);
      if (m > 9) ExpectEvaluators(Batches(m, 304, n), spec);
    }
  }
}

TEST(ComputedOperand, OfGpuClass) {
  const DeviceSpec spec = OfClass(DeviceClass::kGpu);
  for (const bool rhs_transposed : {false, true}) {
    ExpectEvaluators(ScaledBytes(1, 128, 96, rhs_transposed), spec);
    ExpectEvaluators(ScaledBytes(7, 130, 75, rhs_transposed), spec);
  }
  ExpectEvaluators(SliceOfLayers(3, 75, 333), spec);
  ExpectEvaluators(SliceOfLayers(1, 3000, 40), spec);
}

// Copies of lhs go by vectors along all of its elements: only whole ones are of one row.
TEST(ComputedOperand, OfRowsThatAreCopied) {
  DeviceSpec spec = OfClass(DeviceClass::kCpu);
  spec.bf16_dot.clear();
  ExpectEvaluators(ScaledLhs(200, 304, 333), spec);
  EXPECT_FALSE(HasKernel(ScaledLhs(200, 300, 333), spec));
}

// Each tile of rows would compute all of rhs again.
TEST(ComputedOperand, NotOfManyTiles) {
  EXPECT_FALSE(HasKernel(ScaledBytes(600, 128, 96, false), OfClass(DeviceClass::kGpu)));
  EXPECT_FALSE(HasKernel(ScaledBytes(600, 128, 600, true), OfClass(DeviceClass::kCpu)));  // turned as it is copied
}

TEST(ComputedOperand, WhatIsReadForOperandsOnly) {
  const auto module = hlo::ParseModule(ScaledBytes(2, 8, 16, false));
  const hlo::Instruction& fusion = *module->entry()->root();
  const hlo::Instruction& dot = *fusion.called()->root()->operand(0);
  EXPECT_FALSE(IsComputed(fusion, dot, 0));
  EXPECT_TRUE(IsComputed(fusion, dot, 1));
  for (const int64_t number : {0, 1, 2}) EXPECT_TRUE(IsForOperandsOnly(*fusion.called()->parameter(number), dot));
  EXPECT_FALSE(IsForOperandsOnly(*fusion.called()->parameter(3), dot));
}

}  // namespace
}  // namespace hlorun::opencl
