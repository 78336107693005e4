// A matrix by its own transpose: tiles above the diagonal store what lies below it, too (product_plan.h).
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "hlo/text/parser.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

struct Gram {
  int64_t batch = 1, m = 0, k = 0;
  bool transposed = false;  // [k][m]
  ElementType operands = ElementType::kF32, result = ElementType::kF32;
};

std::string DimensionsOf(const Gram& c) {
  return c.transposed ? fmt::format("{},{}", c.k, c.m) : fmt::format("{},{}", c.m, c.k);
}

// The product, or `residual - product * factor`, by rows: what finishes it is not symmetric.
std::string TextOf(const Gram& c, bool finishes) {
  const std::string in = fmt::format("{}[{},{}]", hlo::ElementTypeName(c.operands), c.batch, DimensionsOf(c));
  const std::string out = fmt::format("{}[{},{},{}]", hlo::ElementTypeName(c.result), c.batch, c.m, c.m);
  const int contracted = c.transposed ? 1 : 2;
  const std::string dot = fmt::format(
      "{0} dot(x, x), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{{1}}}, rhs_contracting_dims={{{1}}}",
      out, contracted);
  if (!finishes) return fmt::format("HloModule m\nENTRY main {{\n  x = {} parameter(0)\n  ROOT r = {}\n}}\n", in, dot);
  const std::string row = fmt::format("{}[{}]", hlo::ElementTypeName(c.result), c.m);
  return fmt::format(R"(HloModule m
fused {{
  x = {0} parameter(0)
  residual = {1} parameter(1)
  factor = {2} parameter(2)
  product = {3}
  wide = {1} broadcast(factor), dimensions={{2}}
  scaled = {1} multiply(product, wide)
  ROOT out = {1} subtract(residual, scaled)
}}
ENTRY main {{
  x = {0} parameter(0)
  residual = {1} parameter(1)
  factor = {2} parameter(2)
  ROOT r = {1} fusion(x, residual, factor), kind=kOutput, calls=fused
}}
)",
                     in, out, row, dot);
}

// The rows of each batch.
std::vector<double> RowsOf(const Gram& c, const hlo::Literal& x) {
  std::vector<double> rows;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t row = 0; row < c.m; ++row) {
      for (int64_t p = 0; p < c.k; ++p)
        rows.push_back(x.GetDouble(b * c.m * c.k + (c.transposed ? p * c.m + row : row * c.k + p)));
    }
  }
  return rows;
}

ProductShape ShapeOf(const Gram& c) {
  const auto module = hlo::ParseModule(TextOf(c, false));
  return ProductShapeOf(*module->entry()->root()).value();
}

// `is_mirrored`: whether a place is stored with the sums of the one opposite.
void ExpectSums(const Gram& c, const DeviceSpec& spec, bool finishes, int64_t alias,
                const std::function<bool(int64_t i, int64_t j)>& is_mirrored) {
  SCOPED_TRACE(TextOf(c, finishes));
  const Fused run = RunFusion(TextOf(c, finishes), {alias}, spec);
  const std::vector<double> rows = RowsOf(c, run.operands[0]);
  const double bound = hlo::IsFloating(c.result) ? 1e-5 * static_cast<double>(c.k) : 0;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.m; ++j) {
        const int64_t at = (b * c.m + i) * c.m + j;
        const double* const batch = rows.data() + b * c.m * c.k;
        double expected = std::inner_product(batch + i * c.k, batch + (i + 1) * c.k, batch + j * c.k, 0.0);
        if (finishes) expected = run.operands[1].GetDouble(at) - expected * run.operands[2].GetDouble(j);
        ASSERT_NEAR(run.result.GetDouble(at), expected, bound) << b << ", " << i << ", " << j;
        if (!finishes && is_mirrored(i, j)) {
          ASSERT_EQ(run.result.GetDouble(at), run.result.GetDouble((b * c.m + j) * c.m + i));
        }
      }
    }
  }
}

void ExpectGram(const Gram& c, const DeviceSpec& spec, bool finishes = false, int64_t alias = -1) {
  ASSERT_TRUE(PlanProduct(ShapeOf(c), spec).mirrors);
  ExpectSums(c, spec, finishes, alias, [](int64_t, int64_t) { return true; });
}

// By the matrix unit: what lies in blocks of the diagonal is summed twice.
void ExpectGramOfUnit(const Gram& c, const DeviceSpec& spec, bool finishes = false, int64_t alias = -1) {
  const std::optional<MatrixUnitPlan> plan = PlanMatrixUnit(ShapeOf(c), spec);
  ASSERT_TRUE(plan && plan->mirrors) << TextOf(c, finishes);
  ExpectSums(c, spec, finishes, alias,
             [](int64_t i, int64_t j) { return i / MatrixUnitPlan::kBlock != j / MatrixUnitPlan::kBlock; });
}

DeviceSpec OfSmallCaches(int64_t units = 2) {
  DeviceSpec spec = Runner().spec();
  spec.l2_bytes = 64 << 10;
  spec.compute_units = units;
  spec.has_bf16_tiles = spec.has_s8_tiles = false;
  return spec;
}

TEST(MirroredProduct, ShapesOfOneMatrixAlone) {
  EXPECT_TRUE(ShapeOf({.m = 128, .k = 64}).is_symmetric);
  EXPECT_TRUE(ShapeOf({.m = 128, .k = 64, .transposed = true}).is_symmetric);
  const auto of = [](const std::string& dot) {
    const auto module = hlo::ParseModule(
        "HloModule m\nENTRY main {\n  x = f32[96,96] parameter(0)\n  y = f32[96,96] "
        "parameter(1)\n  ROOT r = f32[96,96] dot(" +
        dot + "\n}\n");
    return ProductShapeOf(*module->entry()->root())->is_symmetric;
  };
  EXPECT_TRUE(of("x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"));
  EXPECT_FALSE(of("x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  EXPECT_FALSE(of("x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"));
}

TEST(MirroredProduct, PlansOfEnoughPanelsAndDepth) {
  const DeviceSpec spec = OfSmallCaches();
  EXPECT_TRUE(PlanProduct(ShapeOf({.m = 128, .k = 64}), spec).mirrors);
  EXPECT_TRUE(PlanProduct(ShapeOf({.m = 131, .k = 64, .transposed = true}), spec).mirrors);
  EXPECT_FALSE(PlanProduct(ShapeOf({.m = 24, .k = 64}), spec).mirrors);
  EXPECT_FALSE(PlanProduct(ShapeOf({.m = 128, .k = 8}), spec).mirrors);
  EXPECT_FALSE(PlanProduct(ShapeOf({.m = 1024, .k = 48}), spec).mirrors);  // a result beyond the second cache
  ProductShape sized = ShapeOf({.m = 128, .k = 64});
  sized.ends_at_sizes = true;
  EXPECT_FALSE(PlanProduct(sized, spec).mirrors);
  const ProductPlan plan = PlanProduct(ShapeOf({.m = 200, .k = 300}), spec);
  EXPECT_EQ(plan.columns() % plan.rows, 0);
}

TEST(MirroredProduct, SizesOfEveryRemainder) {
  DeviceSpec roomy = Runner().spec();
  roomy.has_bf16_tiles = roomy.has_s8_tiles = false;
  for (const DeviceSpec& spec : {roomy, OfSmallCaches(), OfSmallCaches(7)}) {
    for (const bool transposed : {false, true}) {
      for (const int64_t m : {96, 97, 103, 128, 150, 197})
        ExpectGram({.m = m, .k = 70, .transposed = transposed}, spec);
      ExpectGram({.batch = 3, .m = 100, .k = 70, .transposed = transposed}, spec);
      ExpectGram({.m = 530, .k = 64, .transposed = transposed}, spec);
      ExpectGram({.m = 130, .k = 2100, .transposed = transposed}, spec);
    }
  }
}

TEST(MirroredProduct, PanelsOfEachGroupsOwn) {
  const DeviceSpec spec = OfSmallCaches(1);
  for (const bool transposed : {false, true}) {
    for (const int64_t depth : {300, 2100}) {
      const Gram c{.batch = 2, .m = 235, .k = depth, .transposed = transposed};
      const ProductPlan plan = PlanProduct(ShapeOf(c), spec);
      ASSERT_EQ(plan.rhs, RhsForm::kBlocks);
      ExpectGram(c, spec);
    }
  }
}

TEST(MirroredProduct, RowsPagesApartAreSpread) {
  DeviceSpec spec = OfSmallCaches();
  spec.vector_bytes = 32;
  const Gram c{.m = 270, .k = 1024};
  if (PlanProduct(ShapeOf(c), spec).lhs != LhsForm::kSpread) GTEST_SKIP() << "rows stay where there are 32 registers";
  ExpectGram(c, spec);
}

// Parts of long sums are added by a kernel of their own, which mirrors nothing; then nothing is as it is for mirrors.
TEST(MirroredProduct, NotInParts) {
  const DeviceSpec spec = OfSmallCaches();
  const ProductShape shape = ShapeOf({.m = 100, .k = 65536, .transposed = true});
  ProductShape of_two = shape;
  of_two.is_symmetric = false;
  const ProductPlan plan = PlanProduct(shape, spec), expected = PlanProduct(of_two, spec);
  ASSERT_TRUE(plan.CombinesParts());
  EXPECT_FALSE(plan.mirrors);
  EXPECT_EQ(plan.rows, expected.rows);
  EXPECT_EQ(plan.k_parts, expected.k_parts);
}

// They were measured of two matrices.
TEST(MirroredProduct, NotByTunedSchedules) {
  const DeviceSpec spec = OfSmallCaches();
  const ProductShape shape = ShapeOf({.m = 256, .k = 256});
  const PanelSchedule schedule{.rows = 12, .vectors = 2, .tiles_per_block = 4, .panels_per_block = 2};
  const ProductPlan plan = PlanProduct(shape, spec, &schedule);
  EXPECT_TRUE(plan.mirrors);
  EXPECT_EQ(plan.rows, PlanProduct(shape, spec).rows);
}

TEST(MirroredProduct, NarrowVectors) {
  DeviceSpec spec = OfSmallCaches();
  spec.vector_bytes = 32;
  ASSERT_TRUE(PlanProduct(ShapeOf({.m = 101, .k = 64}), spec).mirrors);
  ExpectGram({.m = 101, .k = 64}, spec);
  ExpectGram({.m = 101, .k = 64, .transposed = true}, spec);
}

TEST(MirroredProduct, OtherTypes) {
  using enum ElementType;
  const DeviceSpec spec = OfSmallCaches();
  for (const bool transposed : {false, true}) {
    ExpectGram({1, 130, 64, transposed, kF64, kF64}, spec);
    ExpectGram({1, 130, 64, transposed, kS32, kS32}, spec);
    ExpectGram({1, 130, 64, transposed, kBF16, kF32}, spec);
    ExpectGram({1, 130, 64, transposed, kS8, kS32}, spec);
    ExpectGram({1, 130, 64, transposed, kF16, kF32}, spec);
  }
}

// Each place is finished once, or the second time would read what the first has stored.
TEST(MirroredProduct, FinishedWhereItIsStored) {
  for (const int64_t alias : {-1, 1}) {
    for (const bool transposed : {false, true}) {
      ExpectGram({.m = 103, .k = 40, .transposed = transposed}, OfSmallCaches(), true, alias);
      ExpectGram({.batch = 2, .m = 128, .k = 2100, .transposed = transposed}, OfSmallCaches(), true, alias);
      ExpectGram({.m = 530, .k = 64, .transposed = transposed}, OfSmallCaches(), true, alias);
    }
  }
}

TEST(MirroredProduct, ByTheMatrixUnit) {
  using enum ElementType;
  const std::optional<DeviceSpec> unit = Runner().WithMatrixUnit();
  if (!unit) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const int64_t units : {1, 2, 7}) {
    DeviceSpec spec = *unit, small = *unit;
    spec.compute_units = small.compute_units = units;
    small.l2_bytes = 256 << 10;  // sections of depth
    for (const bool transposed : {false, true}) {
      ExpectGramOfUnit({.m = 810, .k = 350, .transposed = transposed}, spec);
      const Gram cut{.m = 810, .k = 450, .transposed = transposed};
      ASSERT_TRUE(PlanMatrixUnit(ShapeOf(cut), small)->HasSections());
      ExpectGramOfUnit(cut, small);
      ExpectGramOfUnit({2, 128, 600, transposed, kBF16, kF32}, spec);
      ExpectGramOfUnit({1, 300, 600, transposed, kBF16, kF32}, small);
      for (const int64_t m : {160, 161, 175, 191, 200}) ExpectGramOfUnit({1, m, 800, transposed, kS8, kS32}, spec);
    }
  }
}

TEST(MirroredProduct, FinishedByTheMatrixUnit) {
  using enum ElementType;
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  DeviceSpec small = *spec;
  small.l2_bytes = 256 << 10;
  for (const int64_t alias : {-1, 1}) {
    ExpectGramOfUnit({.m = 810, .k = 350}, *spec, true, alias);
    ExpectGramOfUnit({.m = 810, .k = 450}, small, true, alias);
    ExpectGramOfUnit({2, 129, 600, true, kBF16, kF32}, *spec, true, alias);
    ExpectGramOfUnit({1, 330, 512, false, kBF16, kF32}, *spec, true, alias);
  }
}

TEST(MirroredProduct, PlansOfTheMatrixUnit) {
  using enum ElementType;
  DeviceSpec spec;
  spec.has_bf16_tiles = true;
  spec.compute_units = 2;
  const auto plan = [&](const Gram& c) { return PlanMatrixUnit(ShapeOf(c), spec).value(); };
  EXPECT_TRUE(plan({1, 512, 1024, false, kBF16, kF32}).mirrors);
  EXPECT_FALSE(plan({1, 512, 128, false, kBF16, kF32}).mirrors);  // shallow
  EXPECT_FALSE(plan({4, 32, 512, false, kBF16, kF32}).mirrors);   // one block
  // As many groups of columns for both units, whose rows grow from one to the next.
  EXPECT_EQ(plan({1, 512, 1024, false, kBF16, kF32}).ColumnGroups() % 4, 0);
}

}  // namespace
}  // namespace hlorun::opencl
