// How products on CPU-class devices read, copy and cut their operands (product_plan.h).
#include "backends/opencl/kernels/product_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

TEST(Dot, PackedOperands) {
  ExpectProduct({0, 200, 100, 131}, Runner().spec());
  ExpectProduct({0, 203, 100, 131, true, true}, Runner().spec());
}

TEST(Dot, PanelsCopiedByTheGroupThatMultipliesThem) {
  using enum ElementType;
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 64 << 10;
  small.compute_units = 2;
  ProductShape shape;
  shape.m = 100;
  shape.k = 70;
  shape.n = 300;
  ASSERT_EQ(PlanProduct(shape, small).rhs, RhsForm::kBlocks);
  ExpectProduct({0, 100, 70, 300}, small);
  ExpectProduct({0, 133, 65, 290, true, false}, small);
  ExpectProduct({3, 97, 90, 200}, small);
  ExpectProduct({0, 100, 70, 300, false, false, kF16, kF32}, small);
  ExpectProduct({0, 100, 70, 300, false, false, kF64, kF64}, small);
  ExpectProduct({0, 100, 70, 300, false, false, kS32, kS32}, small);
  small.compute_units = 7;
  ExpectProduct({0, 100, 70, 1000}, small);
}

TEST(Dot, TurnedPanelsCopiedByTheGroupThatMultipliesThem) {
  using enum ElementType;
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 64 << 10;
  small.compute_units = 2;
  ASSERT_EQ(PlanProduct({.m = 200, .n = 300, .k = 70, .rhs_transposed = true}, small).rhs, RhsForm::kBlocks);
  for (const int64_t k : {64, 70, 100, 127, 144}) ExpectProduct({0, 200, k, 300, false, true}, small);
  ExpectProduct({0, 200, 96, 320, false, true}, small);  // whole panels
  ExpectProduct({0, 133, 65, 290, true, true}, small);
  ExpectProduct({3, 97, 90, 200, false, true}, small);
  ExpectProduct({0, 200, 100, 300, false, true, kF16, kF32}, small);
  ExpectProduct({0, 200, 100, 300, false, true, kF64, kF64}, small);
  ExpectProduct({0, 200, 100, 300, false, true, kS32, kS32}, small);
  const ProductPlan deep = PlanProduct({.m = 260, .n = 300, .k = 2100, .rhs_transposed = true}, small);
  ASSERT_EQ(deep.rhs, RhsForm::kBlocks);
  ASSERT_GT(deep.k_block, 0);
  ExpectProduct({0, 260, 2100, 300, false, true}, small);
  small.vector_bytes = 32;
  ExpectProduct({0, 200, 70, 300, false, true}, small);
  small.vector_bytes = 64;
  const ProductShape exchanged = WithLessToPack({.m = 256, .n = 400, .k = 2000, .rhs_transposed = true}, small);
  ASSERT_TRUE(exchanged.swapped);
  ASSERT_EQ(PlanProduct(exchanged, small).rhs, RhsForm::kBlocks);
  ExpectProduct({0, 256, 2000, 400, false, true}, small);
}

// Exchanged, 128 rows are eight whole vectors; 197 are thirteen, of which one has five columns, where tiles of 11 rows
// waste one.
TEST(Dot, RolesStayWhereExchangedTilesWouldBePartlyEmpty) {
  DeviceSpec spec = Runner().spec();
  spec.vector_bytes = 64;
  spec.l2_bytes = 1 << 20;
  spec.compute_units = 2;
  const auto is_exchanged = [&](int64_t m, int64_t n, int64_t k) {
    return WithLessToPack({.m = m, .n = n, .k = k, .rhs_transposed = true}, spec).swapped;
  };
  EXPECT_TRUE(is_exchanged(128, 3072, 768));
  EXPECT_FALSE(is_exchanged(197, 3072, 768));
  EXPECT_FALSE(is_exchanged(197, 768, 768));
  EXPECT_TRUE(is_exchanged(20, 768, 768)) << "few rows are not worth copies of a block of panels";
  const auto form = [&](int64_t m, int64_t n, int64_t k, bool rhs_transposed) {
    return PlanProduct({.m = m, .n = n, .k = k, .rhs_transposed = rhs_transposed}, spec).rhs;
  };
  EXPECT_EQ(form(197, 768, 768, true), RhsForm::kBlocks);
  EXPECT_EQ(form(197, 384, 384, true), RhsForm::kBlocks);
  EXPECT_EQ(form(197, 384, 384, false), RhsForm::kBlocks);
  EXPECT_EQ(form(128, 384, 384, false), RhsForm::kInPlace);
  EXPECT_EQ(form(197, 768, 192, true), RhsForm::kPanels) << "too short for its copies to be hidden";
  EXPECT_EQ(form(197, 256, 256, false), RhsForm::kPanels) << "in the caches anyway";
  spec.compute_units = 7;
  EXPECT_TRUE(is_exchanged(197, 768, 768)) << "too few blocks to share";
  spec.compute_units = 2;
  spec.vector_bytes = 32;
  EXPECT_TRUE(is_exchanged(20, 768, 768));
}

// Units take runs of groups: the fullest has little more than its share of the columns.
TEST(Dot, BlocksOfPanelsAreSharedOutEvenly) {
  DeviceSpec spec = Runner().spec();
  spec.vector_bytes = 64;
  spec.l2_bytes = 1 << 20;
  for (const int64_t units : {2, 4}) {
    spec.compute_units = units;
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
             {512, 1536, 768}, {197, 768, 2304}, {256, 1152, 1152}, {128, 768, 3072}, {256, 1024, 2816}}) {
      const ProductPlan plan = PlanProduct({.m = m, .n = n, .k = k}, spec);
      ASSERT_EQ(plan.rhs, RhsForm::kBlocks);
      const int64_t groups = (plan.slots + units - 1) / units,
                    blocks = (plan.column_blocks() + plan.slots - 1) / plan.slots;
      EXPECT_LE(static_cast<double>(groups * blocks * plan.panels_per_block * units),
                1.15 * static_cast<double>(plan.panels))
          << m << " x " << k << " x " << n << " on " << units;
    }
  }
}

TEST(Dot, FewRowsReadWideRows) {
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 64 << 10;
  const ProductShape shape{.m = 16, .n = 400, .k = 70};
  if (small.vector_bytes >= 64) {
    ASSERT_EQ(PlanProduct(shape, small).vectors, 3);
  }
  for (const int64_t m : {8, 16, 49, 64}) ExpectProduct({0, m, 70, m < 20 ? 400 : 500}, small);
  ExpectProduct({2, 20, 131, 96}, small);
}

// Rows of rhs [k][n] that pass by sums in private memory: one or two vectors at once, with and without a last one in
// part, parts of the depth that end early, several panels of columns, every type.
TEST(Dot, FewRowsLetALargeRhsStreamBy) {
  using enum ElementType;
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 1 << 10;
  ASSERT_TRUE(PlanProduct({.m = 16, .n = 96, .k = 500}, small).streams);
  EXPECT_FALSE(PlanProduct({.m = 25, .n = 96, .k = 500}, small).streams);
  EXPECT_FALSE(PlanProduct({.m = 1, .n = 96, .k = 500}, Runner().spec()).streams);
  EXPECT_FALSE(PlanProduct({.m = 1, .n = 96, .k = 500, .ends_at_sizes = true}, small).streams);
  for (const int64_t m : {1, 2, 3, 7, 9, 16}) {
    for (const int64_t n : {64, 69, 80, 96, 2500}) ExpectProduct({0, m, 131, n}, small);
  }
  ExpectProduct({0, 1, 1600, 64}, small);
  ExpectProduct({5, 2, 50, 100}, small);
  ExpectProduct({0, 3, 97, 96, true, false}, small);
  ExpectProduct({0, 96, 97, 1, true, false}, small);
  for (const auto& [operand, result] : std::vector<std::pair<ElementType, ElementType>>{
           {kBF16, kBF16}, {kF16, kF32}, {kF64, kF64}, {kS32, kS32}, {kS8, kS32}, {kS64, kS64}})
    ExpectProduct({0, 3, 200, 100, false, false, operand, result}, small);
}

// Of no more than the last cache has, too, where tiles in place would be two, or rows of rhs are crowded.
TEST(Dot, FewRowsStreamWhereTilesReadTwice) {
  DeviceSpec device = Runner().spec();
  device.vector_bytes = 64;
  device.l2_bytes = 256 << 10;
  const auto streams = [&](int64_t m, int64_t n, int64_t k) {
    return PlanProduct({.m = m, .n = n, .k = k}, device).streams;
  };
  EXPECT_TRUE(streams(12, 336, 400));   // 537,600 bytes
  EXPECT_FALSE(streams(12, 336, 380));  // 510,720
  EXPECT_FALSE(streams(8, 336, 400));
  EXPECT_FALSE(streams(17, 336, 400));
  EXPECT_TRUE(streams(3, 512, 200));   // rows half a page apart
  EXPECT_FALSE(streams(3, 512, 190));  // which fit into one and a half of the second cache
  EXPECT_TRUE(streams(24, 1024, 200));
  EXPECT_FALSE(streams(25, 1024, 200));
  device.vector_bytes = 32;
  EXPECT_FALSE(streams(12, 336, 400));
  device.vector_bytes = Runner().spec().vector_bytes;
  for (const int64_t m : {3, 12, 16, 24}) ExpectProduct({0, m, 400, 512}, device);
}

// Two and three rows are one tile, as wide as registers are left for it.
TEST(Dot, FewRowsAreOneTile) {
  DeviceSpec device = Runner().spec();
  device.vector_bytes = 64;
  for (const int64_t spare : {0, 4}) {
    device.spare_registers = spare;
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7})
      EXPECT_EQ(PlanProduct({.m = m, .n = 512, .k = 100}, device).tiles, 1) << m;
  }
}

// One row of rhs [n][k] at a time where it comes from memory in short rows, in up to four strands.
TEST(Dot, ALargeRhsIsWalkedRowByRow) {
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 1 << 10;
  const ProductPlan plan = PlanProduct({.m = 1, .n = 50, .k = 200, .rhs_transposed = true}, small);
  EXPECT_EQ(plan.vectors, 1);
  EXPECT_EQ(plan.strands, 4);
  EXPECT_EQ(PlanProduct({.m = 5, .n = 50, .k = 200, .rhs_transposed = true}, small).strands, 1);
  EXPECT_EQ(PlanProduct({.m = 1, .n = 50, .k = 2000, .rhs_transposed = true}, small).strands, 1);
  for (const int64_t m : {1, 3, 4}) {
    for (const int64_t k : {1, 15, 16, 40, 64, 71, 128, 200}) ExpectProduct({0, m, k, 50, false, true}, small);
  }
}

// Squares that end where the depth ends, and chunks that take what is left.
TEST(Dot, TransposedPanelsOfEveryDepth) {
  for (const int64_t k : {1, 15, 16, 17, 63, 64, 65, 79, 127, 128, 130})
    ExpectProduct({0, 520, k, 35, false, true}, Runner().spec());
}

// Of lhs [k][m] and rhs [n][k], exchanged, only one is copied.
TEST(Dot, BothTransposedAreExchanged) {
  using enum ElementType;
  const DeviceSpec& spec = Runner().spec();
  ASSERT_TRUE(
      WithLessToPack({.m = 64, .n = 100, .k = 500, .lhs_transposed = true, .rhs_transposed = true}, spec).swapped);
  ASSERT_FALSE(
      WithLessToPack({.m = 64, .n = 100, .k = 50, .lhs_transposed = true, .rhs_transposed = true}, spec).swapped);
  ExpectProduct({0, 64, 500, 100, true, true}, spec);
  ExpectProduct({0, 33, 301, 210, true, true}, spec);
  ExpectProduct({3, 20, 131, 37, true, true}, spec);
  ExpectProduct({0, 20, 5000, 40, true, true}, spec);  // parts of a long sum
  ExpectProduct({0, 20, 200, 40, true, true, kF64, kF64}, spec);
  ExpectProduct({0, 20, 200, 40, true, true, kBF16, kBF16}, spec);
  ExpectProduct({0, 20, 200, 40, true, true, kS8, kS32}, spec);
}

// Rows of a large rhs [n][k] are read as they lie, with the roles exchanged.
TEST(Dot, LhsIsPackedWhereItIsTheSmallerOne) {
  using enum ElementType;
  const DeviceSpec& spec = Runner().spec();
  const ProductShape shape{.m = 16, .n = 300, .k = 70, .rhs_transposed = true};
  ASSERT_TRUE(WithLessToPack(shape, spec).swapped);
  ASSERT_FALSE(WithLessToPack({.m = 300, .n = 16, .k = 70, .rhs_transposed = true}, spec).swapped);
  for (const int64_t m : {9, 15, 16, 17, 32, 33, 40, 70}) ExpectProduct({0, m, 70, 301, false, true}, spec);
  ExpectProduct({0, 10, 33, 23, false, true}, spec);
  ExpectProduct({3, 20, 131, 96, false, true}, spec);
  ExpectProduct({0, 16, 1024, 100, false, true}, spec);   // rows a page apart
  ExpectProduct({0, 16, 2048, 40, false, true}, spec);    // parts of a long sum
  ExpectProduct({0, 12, 30000, 130, false, true}, spec);  // in blocks
  ExpectProduct({0, 20, 80, 300, false, true, kF64, kF64}, spec);
  ExpectProduct({0, 20, 80, 300, false, true, kS32, kS32}, spec);
  ExpectProduct({0, 20, 80, 300, false, true, kS8, kS32}, spec);
  ExpectProduct({0, 20, 80, 300, false, true, kBF16, kBF16}, spec);
  DeviceSpec small = spec;
  small.l2_bytes = 64 << 10;
  small.compute_units = 7;
  ExpectProduct({0, 35, 1000, 333, false, true}, small);
  for (const int bytes : {8, 16, 32}) {  // several squares in a tile; for f64 in 8 bytes none
    small.vector_bytes = bytes;
    ExpectProduct({0, 19, 70, 333, false, true}, small);
    ExpectProduct({0, 19, 70, 333, false, true, kF64, kF64}, small);
  }
}

TEST(Dot, PartsOfALongSum) {
  ExpectProduct({0, 20, 5000, 40}, Runner().spec());
  ExpectProduct({0, 65, 3001, 43, true, false}, Runner().spec());
  ExpectProduct({2, 9, 4100, 33, true, true}, Runner().spec());
}

// Sums wait in scratch between blocks of depth, the last of which may be short, as may the last tile and panel.
TEST(Dot, DeepProductsInBlocks) {
  using enum ElementType;
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 64 << 10;
  const ProductPlan packed = PlanProduct({.m = 523, .n = 130, .k = 2100}, small);
  ASSERT_EQ(packed.rhs, RhsForm::kPanels);
  ASSERT_EQ(packed.k_parts, 1);
  ASSERT_GT(packed.k_block, 0);
  const ProductPlan own = PlanProduct({.m = 101, .n = 300, .k = 2100}, small);
  ASSERT_EQ(own.rhs, RhsForm::kBlocks);
  ASSERT_GT(own.k_block, 0);
  ExpectProduct({0, 523, 2100, 130}, small);
  ExpectProduct({0, 101, 2100, 300}, small);
  ExpectProduct({2, 97, 2100, 290}, small);
  ExpectProduct({0, 97, 2100, 290, false, false, kF16, kF32}, small);
  ExpectProduct({0, 97, 2100, 290, false, false, kS32, kS32}, small);
}

TEST(Dot, OrderOfSumsDoesNotDependOnTheCores) {
  DeviceSpec one = Runner().spec(), many = one;
  one.compute_units = 1;
  many.compute_units = 64;
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1024, 2816}, {1, 4096, 512}, {20, 5000, 40}, {64, 100352, 64}, {256, 4096, 1024}}) {
    ProductShape shape;
    shape.m = m;
    shape.k = k;
    shape.n = n;
    EXPECT_EQ(PlanProduct(shape, one).k_parts, PlanProduct(shape, many).k_parts);
    EXPECT_EQ(PlanProduct(shape, one).k_block, PlanProduct(shape, many).k_block);
  }
}

// Rows a multiple of a page apart are copied to other distances, where tiles are low.
TEST(Dot, RowsPagesApartAreSpread) {
  using enum ElementType;
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 32;
  narrow.l2_bytes = 512 << 10;
  narrow.l3_bytes = 32 << 20;
  const auto form = [&](const ProductShape& shape) { return PlanProduct(shape, narrow).lhs; };
  ASSERT_EQ(form({.m = 40, .n = 300, .k = 1024}), LhsForm::kSpread);
  ASSERT_EQ(form({.m = 40, .n = 300, .k = 1040}), LhsForm::kInPlace);
  ASSERT_EQ(form({.m = 40, .n = 100, .k = 1024}), LhsForm::kInPlace);
  ASSERT_EQ(form({.m = 6, .n = 300, .k = 1024}), LhsForm::kInPlace);
  ASSERT_EQ(form({.m = 6272, .n = 768, .k = 3072}), LhsForm::kInPlace);  // the copy would pass through memory
  for (const bool rhs_transposed : {false, true}) {
    ExpectProduct({0, 43, 1024, 300, false, rhs_transposed}, narrow);
    ExpectProduct({3, 20, 1024, 270, false, rhs_transposed}, narrow);
    ExpectProduct({0, 210, 1024, 260, false, rhs_transposed}, narrow);
  }
  ExpectProduct({0, 43, 512, 260, false, false, kF64, kF64}, narrow);
  ExpectProduct({0, 43, 1024, 260, false, false, kBF16, kBF16}, narrow);
  ExpectProduct({0, 43, 1024, 260, false, false, kS8, kS32}, narrow);
  ExpectProduct({0, 500, 2048, 260}, narrow);  // in blocks of depth
  narrow.vector_bytes = 16;
  ExpectProduct({0, 43, 1024, 260}, narrow);
}

// Where the second cache holds few panels of 16 columns, blocks of depth begin earlier.
TEST(Dot, NarrowPanelsGoByBlocksOfDepthEarlier) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 32;
  narrow.l2_bytes = 512 << 10;
  ASSERT_EQ(PlanProduct({.m = 1024, .n = 1024, .k = 1024}, narrow).k_block, 0);
  ASSERT_GT(PlanProduct({.m = 2048, .n = 2048, .k = 2048}, narrow).k_block, 0);
  narrow.vector_bytes = 64;
  narrow.l2_bytes = 1 << 20;
  ASSERT_EQ(PlanProduct({.m = 2048, .n = 2048, .k = 2048}, narrow).k_block, 0);
}

// Sixteen registers are too few for the wide rows by which few rows of lhs read a large rhs in place.
TEST(Dot, FewRowsOfNarrowTilesCopyTheirPanels) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 32;
  narrow.l2_bytes = 512 << 10;
  const auto form = [&](const ProductShape& shape) { return PlanProduct(shape, narrow).rhs; };
  ASSERT_EQ(form({.m = 32, .n = 2048, .k = 512}), RhsForm::kBlocks);
  ASSERT_EQ(form({.m = 12, .n = 1024, .k = 512}), RhsForm::kBlocks);
  ASSERT_EQ(form({.m = 32, .n = 256, .k = 256}), RhsForm::kInPlace);  // in the second cache
  ExpectProduct({0, 12, 512, 1030}, narrow);
  ExpectProduct({0, 33, 520, 1024}, narrow);
  narrow.vector_bytes = 64;
  ASSERT_EQ(form({.m = 32, .n = 2032, .k = 512}), RhsForm::kInPlace);
}

// Rows of rhs a page apart, or a half of one, that the sets of the second cache do not hold.
TEST(Dot, CrowdedRowsAreCopied) {
  DeviceSpec device = Runner().spec();
  device.vector_bytes = 64;
  device.l2_bytes = 256 << 10;
  const auto plan = [&](const ProductShape& shape) { return PlanProduct(shape, device); };
  ASSERT_EQ(plan({.m = 32, .n = 1024, .k = 300}).rhs, RhsForm::kBlocks);
  ASSERT_EQ(plan({.m = 32, .n = 512, .k = 600}).rhs, RhsForm::kBlocks);
  ASSERT_EQ(plan({.m = 24, .n = 1024, .k = 300}).rhs, RhsForm::kInPlace);
  ASSERT_EQ(plan({.m = 32, .n = 1040, .k = 300}).rhs, RhsForm::kInPlace);
  // A few tiles copy few rows, which are long, and send for none.
  ASSERT_GT(plan({.m = 32, .n = 1024, .k = 300}).k_block, 0);
  ASSERT_FALSE(plan({.m = 32, .n = 1024, .k = 300}).SendsForBlocks());
  ASSERT_TRUE(plan({.m = 190, .n = 1024, .k = 300}).SendsForBlocks());
  ExpectProduct({0, 32, 300, 1024}, device);
  ExpectProduct({2, 37, 300, 1024}, device);
  ExpectProduct({0, 190, 300, 1024}, device);
  ExpectProduct({0, 35, 300, 1024, false, false, ElementType::kBF16, ElementType::kF32}, device);
  ExpectProduct({0, 61, 300, 1024, false, false, ElementType::kS32, ElementType::kS32}, device);
}

// Tiles behind the first find rhs in the second cache: nothing is sent for.
TEST(Dot, ANearRhsIsNotReadAhead) {
  const DeviceSpec device = Runner().spec();
  ASSERT_TRUE(PlanProduct({.batch = 96, .m = 128, .n = 64, .k = 128}, device).rhs_stays);
  ASSERT_FALSE(PlanProduct({.batch = 96, .m = 128, .n = 64, .k = 1 << 16}, device).rhs_stays);
  ASSERT_FALSE(PlanProduct({.batch = 96, .m = 4, .n = 64, .k = 128}, device).rhs_stays);
}

}  // namespace
}  // namespace hlorun::opencl
