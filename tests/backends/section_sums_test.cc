// Long sums of floats: as accurate as short ones, and the same in whatever blocks the depth goes.
#include "backends/opencl/kernels/section_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/opencl/kernels/product_plan.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

// One chain of 12,000 additions is about 3e-6 of the largest element off; sections of 256 and 47 of them 3e-7.
TEST(SectionSums, DeepProductsAreAccurate) {
  const ProductCase cases[] = {{0, 40, 12000, 70},
                               {0, 40, 12000, 70, true, false},
                               {0, 40, 12000, 70, false, true},
                               {2, 150, 6000, 40},
                               {0, 40, 12000, 70, false, false, hlo::ElementType::kBF16, hlo::ElementType::kF32}};
  for (const ProductCase& c : cases) {
    const ProductOperands operands = RandomOperands(c);
    EXPECT_LT(LargestError(c, operands, ProductOnDevice(c, operands, Runner().spec())), 1e-6)
        << c.m << " transposed " << c.lhs_transposed << c.rhs_transposed;
  }
}

TEST(SectionSums, BlocksOfDepthDoNotChangeBits) {
  for (const bool rhs_transposed : {false, true}) {
    const ProductCase c{0, 260, 2100, 300, false, rhs_transposed};
    const ProductOperands operands = RandomOperands(c);
    DeviceSpec small = Runner().spec(), large = small;
    small.l2_bytes = 64 << 10;
    large.l2_bytes = 8 << 20;
    const ProductShape shape{.m = c.m, .n = c.n, .k = c.k, .rhs_transposed = rhs_transposed};
    ASSERT_GT(PlanProduct(shape, small).k_block, 0);
    ASSERT_EQ(PlanProduct(shape, large).k_block, 0);
    const hlo::Literal in_blocks = ProductOnDevice(c, operands, small), whole = ProductOnDevice(c, operands, large);
    EXPECT_TRUE(std::equal(whole.data(), whole.data() + whole.ByteSize(), in_blocks.data())) << rhs_transposed;
  }
}

TEST(SectionSums, ShortSumsAndIntegersAreOneChain) {
  EXPECT_TRUE(GoesBySections(hlo::ElementType::kF32, 1024));
  EXPECT_FALSE(GoesBySections(hlo::ElementType::kF32, 1023));
  EXPECT_FALSE(GoesBySections(hlo::ElementType::kS32, 100000));
}

}  // namespace
}  // namespace hlorun::opencl
