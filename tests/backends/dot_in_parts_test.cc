// Products of f32 by the CPU's matrix unit, in three parts of bf16: as accurate as by multiplications of f32, whatever
// the operands.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

using hlo::Literal;

bool IsTaken(const ProductCase& c, const DeviceSpec& spec) { return PlanMatrixUnit(ShapeOfCase(c), spec).has_value(); }

TEST(DotInParts, TakenWhereCopiesPay) {
  DeviceSpec spec;
  EXPECT_FALSE(IsTaken({0, 512, 512, 512}, spec));
  spec.has_bf16_tiles = true;
  EXPECT_TRUE(IsTaken({0, 512, 512, 512}, spec));
  EXPECT_FALSE(IsTaken({0, 64, 512, 512}, spec));
  EXPECT_FALSE(IsTaken({12, 197, 64, 197}, spec));
  ProductShape shape{.m = 64, .n = 1024, .k = 1024};
  EXPECT_FALSE(PlanMatrixUnit(shape, spec));
  shape.rhs_is_kept = true;
  EXPECT_TRUE(PlanMatrixUnit(shape, spec));
  shape.multiplies_as_typed = true;
  EXPECT_FALSE(PlanMatrixUnit(shape, spec));
}

TEST(DotInParts, NotWhereTheProgramAsksForF32) {
  const auto text = [](const std::string& algorithm) {
    return "HloModule m\nENTRY main {\n  a = f32[512,512] parameter(0)\n"
           "  ROOT d = f32[512,512] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}" +
           algorithm + "\n}\n";
  };
  const auto as_typed = [&](const std::string& algorithm) {
    const auto module = hlo::ParseModule(text(algorithm));
    return ProductShapeOf(*module->entry()->root())->multiplies_as_typed;
  };
  EXPECT_FALSE(as_typed(""));
  EXPECT_FALSE(as_typed(", operand_precision={highest,highest}"));
  EXPECT_TRUE(as_typed(", algorithm=dot_f32_f32_f32"));
  // Its schedule may lie in a tuning file, whose problems do not say which algorithm is asked for.
  DeviceSpec spec;
  spec.has_bf16_tiles = true;
  EXPECT_EQ(WhyNot(PanelSchedule{}, ProductProblem{ShapeOfCase({0, 512, 512, 512})}, spec), "");
}

TEST(DotInParts, CopiesThroughMemoryWantMoreRows) {
  DeviceSpec spec;
  spec.has_bf16_tiles = true;
  spec.l2_bytes = 2 << 20;
  for (const bool is_turned : {false, true}) {
    EXPECT_TRUE(IsTaken({0, 128, 1024, 4096, false, is_turned}, spec));
    EXPECT_FALSE(IsTaken({0, 128, 4096, 4096, false, is_turned}, spec));
    EXPECT_TRUE(IsTaken({0, 256, 4096, 4096, false, is_turned}, spec));
    EXPECT_TRUE(IsTaken({0, 128, 768, 30522, false, is_turned}, spec));  // copies stay in the second cache
  }
}

TEST(DotInParts, AsAccurateAsF32) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  DeviceSpec small = *spec;
  small.l2_bytes = 256 << 10;  // sections of depth
  for (const ProductCase& c : std::vector<ProductCase>{{0, 606, 257, 650},
                                                       {0, 606, 257, 650, true, false},
                                                       {0, 606, 257, 650, false, true},
                                                       {0, 606, 257, 650, true, true},
                                                       {2, 513, 300, 545},
                                                       {0, 470, 700, 520, true, true}}) {
    SCOPED_TRACE(::testing::Message() << c.m << " x " << c.k << " x " << c.n << ", transposed " << c.lhs_transposed
                                      << c.rhs_transposed);
    ASSERT_TRUE(IsTaken(c, *spec));
    EXPECT_TRUE(PlanMatrixUnit(ShapeOfCase(c), small)->HasSections());
    const ProductOperands operands = RandomOperands(c);
    const Literal got = ProductOnDevice(c, operands, *spec);
    const double by_f32 = LargestError(c, operands, ProductOnDevice(c, operands, Runner().spec()));
    const double in_parts = LargestError(c, operands, got);
    EXPECT_LE(in_parts, 1.5 * by_f32);
    RecordProperty("share_of_error_of_f32", std::to_string(in_parts / by_f32));
    // The same sums, in the same order.
    EXPECT_TRUE(ProductOnDevice(c, operands, small) == got);
  }
}

// Integers of up to 24 bits, whose products with powers of two are exact: no part is lost.
TEST(DotInParts, WholeNumbersAreExact) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const ProductCase c{0, 512, 512, 512};
  ProductOperands operands = RandomOperands(c);
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t p = 0; p < c.k; ++p)
      operands.lhs.SetDouble(i * c.k + p, static_cast<double>((i * 7919 + p * 104729) % (1 << 24)));
  }
  for (int64_t p = 0; p < c.k; ++p) {
    for (int64_t j = 0; j < c.n; ++j) operands.rhs.SetDouble(p * c.n + j, p == j ? std::exp2(p % 9) : 0.0);
  }
  EXPECT_EQ(LargestError(c, operands, ProductOnDevice(c, operands, *spec)), 0);
}

// What is not finite, too large to be rounded to bf16, or small comes out as by multiplications of f32.
TEST(DotInParts, UncommonNumbers) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const double largest = std::numeric_limits<float>::max();
  const ProductCase c{0, 512, 512, 512};
  ProductOperands operands = RandomOperands(c);
  const auto set_lhs = [&](int64_t i, int64_t p, double x) { operands.lhs.SetDouble(i * c.k + p, x); };
  set_lhs(1, 5, kInf);
  set_lhs(2, 6, -kInf);
  set_lhs(40, 7, kNan);
  set_lhs(500, 511, kInf);
  set_lhs(500, 510, -kInf);
  operands.rhs.SetDouble(9 * c.n + 77, kInf);
  for (int64_t p = 0; p < c.k; ++p) {
    set_lhs(3, p, p == 8 ? largest : 0);  // alone: times at most 1
    set_lhs(4, p, operands.lhs.GetDouble(5 * c.k + p) * 1e-30);
    set_lhs(6, p, operands.lhs.GetDouble(5 * c.k + p) * 1e30);
  }
  const Literal got = ProductOnDevice(c, operands, *spec), expected = ProductOnDevice(c, operands, Runner().spec());
  for (int64_t i = 0; i < c.m; ++i) {
    double most = 0;
    for (int64_t j = 0; j < c.n; ++j) {
      const double e = std::abs(expected.GetDouble(i * c.n + j));
      if (std::isfinite(e)) most = std::max(most, e);
    }
    for (int64_t j = 0; j < c.n; ++j) {
      const double g = got.GetDouble(i * c.n + j), e = expected.GetDouble(i * c.n + j);
      if (std::isnan(e)) {
        EXPECT_TRUE(std::isnan(g)) << i << ", " << j << ": " << g;
      } else if (std::isinf(e)) {
        EXPECT_EQ(g, e) << i << ", " << j;
      } else {
        EXPECT_LE(std::abs(g - e), 1e-5 * most) << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace hlorun::opencl
