// Matrix products on the device against sums in double on the host.
#include "backends/opencl/kernels/dot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/product_plan.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/builder.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;

struct Case {
  int64_t batch, m, k, n;
  bool lhs_transposed = false, rhs_transposed = false;
  ElementType operand_type = ElementType::kF32, result_type = ElementType::kF32;
  int lowest = -5, highest = 5;  // of integers
};

LaunchRunner& Runner() {
  static LaunchRunner runner;
  return runner;
}

Shape MatrixShape(ElementType type, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  hlo::Dims dims = batch > 0 ? hlo::Dims{batch} : hlo::Dims{};
  dims.push_back(transposed ? columns : rows);
  dims.push_back(transposed ? rows : columns);
  return Shape(type, dims);
}

Literal RandomLiteral(const Shape& shape, unsigned seed, int lowest = -5, int highest = 5) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> reals(-1, 1);
  std::uniform_int_distribution<int> integers(lowest, highest);
  Literal literal(shape);
  const bool floating = hlo::IsFloating(shape.element_type());
  for (int64_t i = 0; i < shape.ElementCount(); ++i) literal.SetDouble(i, floating ? reals(random) : integers(random));
  return literal;
}

// A block with a guard of known bytes behind it: kernels may not write beyond what they asked for.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), storage_(bytes_ + kGuard + 64, 0xab) {}
  void* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64;
  }
  bool GuardIntact() {
    const auto* end = static_cast<const unsigned char*>(data()) + bytes_;
    return std::all_of(end, end + kGuard, [](unsigned char c) { return c == 0xab; });
  }

 private:
  static constexpr size_t kGuard = 4096;
  size_t bytes_;
  std::vector<unsigned char> storage_;
};

// The largest error relative to the largest magnitude.
void ExpectProduct(const Case& c, const DeviceSpec& spec) {
  SCOPED_TRACE(::testing::Message() << "batch " << c.batch << " m " << c.m << " k " << c.k << " n " << c.n
                                    << " transposed " << c.lhs_transposed << c.rhs_transposed << " "
                                    << hlo::ElementTypeName(c.operand_type) << " -> "
                                    << hlo::ElementTypeName(c.result_type));
  hlo::Module module("m");
  hlo::Computation* entry = module.AddComputation("main");
  hlo::Instruction* lhs =
      entry->AddParameter(0, MatrixShape(c.operand_type, c.batch, c.m, c.k, c.lhs_transposed), "lhs");
  hlo::Instruction* rhs =
      entry->AddParameter(1, MatrixShape(c.operand_type, c.batch, c.k, c.n, c.rhs_transposed), "rhs");
  hlo::attr::Dot attributes;
  const int64_t b = c.batch > 0 ? 1 : 0;
  if (b == 1) attributes.lhs_batch = attributes.rhs_batch = {0};
  attributes.lhs_contracting = {c.lhs_transposed ? b : b + 1};
  attributes.rhs_contracting = {c.rhs_transposed ? b + 1 : b};
  hlo::Instruction* dot = hlo::Builder(entry).Dot(lhs, rhs, attributes, c.result_type);
  entry->set_root(dot);

  const CompileOptions options;
  const auto launches = EmitDot(*dot, {-1}, {spec, options});
  ASSERT_TRUE(launches.has_value());
  const Literal x = RandomLiteral(lhs->shape(), 1, c.lowest, c.highest),
                y = RandomLiteral(rhs->shape(), 2, c.lowest, c.highest);
  Guarded out(dot->shape().ByteSize()), scratch(DotScratchBytes(*dot, {spec, options}));
  Runner().Run(*launches, {const_cast<std::byte*>(x.data()), const_cast<std::byte*>(y.data())}, {out.data()},
               scratch.data());
  EXPECT_TRUE(out.GuardIntact());
  EXPECT_TRUE(scratch.GuardIntact());

  Literal got(dot->shape());
  std::memcpy(got.mutable_data(), out.data(), static_cast<size_t>(got.ByteSize()));
  std::vector<double> a, w;
  for (int64_t i = 0; i < x.ElementCount(); ++i) a.push_back(x.GetDouble(i));
  for (int64_t i = 0; i < y.ElementCount(); ++i) w.push_back(y.GetDouble(i));
  double largest = 0, error = 0;
  for (int64_t batch = 0; batch < std::max<int64_t>(c.batch, 1); ++batch) {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < c.k; ++p) {
          const int64_t at = batch * c.m * c.k + (c.lhs_transposed ? p * c.m + i : i * c.k + p);
          const int64_t from = batch * c.k * c.n + (c.rhs_transposed ? j * c.k + p : p * c.n + j);
          sum += a[static_cast<size_t>(at)] * w[static_cast<size_t>(from)];
        }
        if (c.result_type == ElementType::kS8) sum = static_cast<int8_t>(static_cast<int64_t>(sum));
        largest = std::max(largest, std::abs(sum));
        const double difference = std::abs(sum - got.GetDouble((batch * c.m + i) * c.n + j));
        error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      }
    }
  }
  const double bound = c.result_type == ElementType::kBF16  ? 4e-3
                       : c.result_type == ElementType::kF16 ? 5e-4
                       : hlo::IsInteger(c.result_type)      ? 0
                                                            : 1e-5;
  EXPECT_LE(error, bound * largest);
}

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

TEST(Dot, PackedOperands) {
  ExpectProduct({0, 200, 100, 131}, Runner().spec());
  ExpectProduct({0, 203, 100, 131, true, true}, Runner().spec());
}

TEST(Dot, PanelsCopiedByTheGroupThatMultipliesThem) {
  using enum ElementType;
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 64 << 10;
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
  const ProductShape shape{.m = 16, .n = 500, .k = 70};
  if (small.vector_bytes >= 64) {
    ASSERT_EQ(PlanProduct(shape, small).vectors, 3);
  }
  for (const int64_t m : {8, 16, 49, 64}) ExpectProduct({0, m, 70, 500}, small);
  ExpectProduct({2, 20, 131, 96}, small);
}

// Rows of rhs [k][n] that pass by sums in private memory: one or two vectors at once, with and without a last one in
// part, parts of the depth that end early, several panels of columns, every type.
TEST(Dot, FewRowsLetALargeRhsStreamBy) {
  using enum ElementType;
  DeviceSpec small = Runner().spec();
  small.l2_bytes = 1 << 10;
  ASSERT_TRUE(PlanProduct({.m = 16, .n = 96, .k = 500}, small).streams);
  EXPECT_FALSE(PlanProduct({.m = 17, .n = 96, .k = 500}, small).streams);
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

// A fusion in text: its only fusion instruction is run, with random operands.
struct Fused {
  std::unique_ptr<hlo::Module> module;
  const hlo::Instruction* fusion = nullptr;
  std::vector<Literal> operands;
  Literal result;
};

Fused RunFusion(const std::string& text, const AliasPattern& aliases = {-1}, const DeviceSpec& spec = Runner().spec()) {
  Fused run;
  run.module = hlo::ParseModule(text);
  run.fusion = run.module->entry()->root();
  const CompileOptions options;
  const auto launches = EmitDot(*run.fusion, aliases, {spec, options});
  if (!launches) throw std::runtime_error("no kernel");
  std::vector<void*> operands;
  for (const hlo::Instruction* operand : run.fusion->operands()) {
    run.operands.push_back(RandomLiteral(operand->shape(), static_cast<unsigned>(run.operands.size() + 1)));
  }
  for (const Literal& operand : run.operands) operands.push_back(const_cast<std::byte*>(operand.data()));
  Guarded out(run.fusion->shape().ByteSize()), scratch(DotScratchBytes(*run.fusion, {spec, options}));
  if (aliases[0] >= 0) {
    const Literal& shared = run.operands[static_cast<size_t>(aliases[0])];
    std::memcpy(out.data(), shared.data(), static_cast<size_t>(shared.ByteSize()));
    operands[static_cast<size_t>(aliases[0])] = out.data();
  }
  Runner().Run(*launches, operands, {out.data()}, scratch.data());
  EXPECT_TRUE(out.GuardIntact());
  EXPECT_TRUE(scratch.GuardIntact());
  run.result = Literal(run.fusion->shape());
  std::memcpy(run.result.mutable_data(), out.data(), static_cast<size_t>(run.result.ByteSize()));
  return run;
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

TEST(Dot, GpuClassEpilogue) { ExpectBiasRelu(45, 30, 75, {3}, GpuClass()); }

TEST(Dot, NarrowVectors) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 32;
  for (int form = 0; form < 4; ++form) ExpectProduct({0, 43, 37, 29, (form & 1) != 0, (form & 2) != 0}, narrow);
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
  ASSERT_EQ(form({.m = 32, .n = 2048, .k = 512}), RhsForm::kInPlace);
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
