// Columns of rhs that work-groups of the matrix unit copy for themselves, where rhs comes from memory: the same bits as
// where a launch copies all of it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

using enum hlo::ElementType;

// 4 MiB are far.
DeviceSpec OfSmallCaches(DeviceSpec spec, int64_t units) {
  spec.l2_bytes = 256 << 10;
  spec.compute_units = units;
  return spec;
}

TEST(OwnColumns, WhereRhsComesFromMemory) {
  DeviceSpec spec;
  spec.has_bf16_tiles = true;
  spec.l2_bytes = 2 << 20;
  spec.compute_units = 2;
  const auto copies = [&](const ProductCase& c) { return PlanMatrixUnit(ShapeOfCase(c), spec)->CopiesColumns(); };
  EXPECT_TRUE(copies({0, 512, 4096, 8192, false, false, kBF16, kBF16}));
  EXPECT_TRUE(copies({0, 512, 4096, 8192, false, true, kBF16, kBF16}));
  EXPECT_FALSE(copies({0, 512, 4096, 4000, false, true, kBF16, kBF16}));   // 31 MiB
  EXPECT_FALSE(copies({0, 512, 16384, 8192, false, true, kBF16, kBF16}));  // too deep for the second
  EXPECT_TRUE(copies({0, 512, 768, 30522}));
  // Whether f32 goes in parts does not depend on the number of units.
  for (const int64_t units : {1, 2, 64, 500}) {
    spec.compute_units = units;
    const auto plan = PlanMatrixUnit(ShapeOfCase({0, 128, 768, 30522, false, true}), spec);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->CopiesColumns(), units < 500);
    EXPECT_LE(plan->slots, plan->ColumnGroups());
  }
  spec.compute_units = 2;
  ProductShape kept = ShapeOfCase({0, 512, 768, 30522});
  kept.rhs_is_kept = true;
  EXPECT_FALSE(PlanMatrixUnit(kept, spec)->CopiesColumns());
}

// Then one launch does all.
TEST(OwnColumns, RowsOfLhsAsTheyLie) {
  const std::optional<DeviceSpec> unit = Runner().WithMatrixUnit();
  if (!unit) GTEST_SKIP() << "no matrix unit here: not measured";
  const ProductCase c{0, 64, 64, 32800, false, true, kBF16, kBF16};
  const std::optional<MatrixUnitPlan> plan = PlanMatrixUnit(ShapeOfCase(c), OfSmallCaches(*unit, 2));
  ASSERT_TRUE(plan && plan->CopiesColumns() && plan->lhs_in_place);
  ExpectProduct(c, OfSmallCaches(*unit, 2));
}

TEST(OwnColumns, SameBits) {
  const std::optional<DeviceSpec> unit = Runner().WithMatrixUnit();
  if (!unit) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const int64_t units : {1, 2, 3}) {
    const DeviceSpec spec = OfSmallCaches(*unit, units);
    for (const bool is_turned : {false, true}) {
      for (const ProductCase& c : std::vector<ProductCase>{{0, 40, 64, 33001, false, is_turned, kBF16, kBF16},
                                                           {0, 64, 64, 32800, false, is_turned, kBF16, kF32},
                                                           {0, 33, 70, 33000, true, is_turned, kBF16, kF32},
                                                           {2, 40, 64, 17000, false, is_turned, kBF16, kF32},
                                                           {0, 50, 90, 50000, false, is_turned, kS8, kS32},
                                                           {0, 300, 64, 16500, false, is_turned},
                                                           {0, 330, 96, 16390, true, is_turned}}) {
        SCOPED_TRACE(::testing::Message() << c.m << " x " << c.k << " x " << c.n << ", " << is_turned << ", " << units);
        const std::optional<MatrixUnitPlan> plan = PlanMatrixUnit(ShapeOfCase(c), spec);
        ASSERT_TRUE(plan && plan->CopiesColumns());
        ASSERT_FALSE(PlanMatrixUnit(ShapeOfCase(c), *unit)->CopiesColumns());
        const ProductOperands operands = RandomOperands(c);
        EXPECT_TRUE(ProductOnDevice(c, operands, spec) == ProductOnDevice(c, operands, *unit));
      }
    }
  }
}

// Sums of an infinite number are mended from what a work-group has copied.
TEST(OwnColumns, InfiniteNumbers) {
  const std::optional<DeviceSpec> unit = Runner().WithMatrixUnit();
  if (!unit) GTEST_SKIP() << "no matrix unit here: not measured";
  const DeviceSpec spec = OfSmallCaches(*unit, 2);
  const ProductCase c{0, 300, 64, 16500, false, true};
  ASSERT_TRUE(PlanMatrixUnit(ShapeOfCase(c), spec)->CopiesColumns());
  ProductOperands operands = RandomOperands(c);
  operands.rhs.SetDouble(700 * c.k + 20, std::numeric_limits<double>::infinity());
  const hlo::Literal result = ProductOnDevice(c, operands, spec);
  for (int64_t i = 0; i < c.m; ++i) {
    const double met = operands.lhs.GetDouble(i * c.k + 20), got = result.GetDouble(i * c.n + 700);
    ASSERT_TRUE(met == 0 ? std::isnan(got) : std::isinf(got) && (got > 0) == (met > 0)) << i;
    ASSERT_TRUE(std::isfinite(result.GetDouble(i * c.n + 701)));
  }
}

}  // namespace
}  // namespace hlorun::opencl
