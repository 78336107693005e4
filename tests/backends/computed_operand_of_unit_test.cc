// Products by the CPU's matrix unit whose packing computes what it copies: the bits of the same product of operands
// that are in memory.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/product_plan.h"
#include "hlo/computation.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "tests/backends/product_case.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Literal;

struct Parameter {
  std::string name, shape;
};

// What makes an operand, in text: its shape, what it is made of, and the ops; none where it is a parameter itself.
struct Maker {
  std::string name, shape;
  std::vector<Parameter> parameters;
  std::string ops;

  Maker InMemory() const { return {name, shape, {{name, shape}}, ""}; }
};

std::string ShapeOf(const std::string& type, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  if (transposed) std::swap(rows, columns);
  return batch == 0 ? fmt::format("{}[{},{}]", type, rows, columns)
                    : fmt::format("{}[{},{},{}]", type, batch, rows, columns);
}

std::string NameOf(ElementType type) {
  switch (type) {
    case ElementType::kS8: return "s8";
    case ElementType::kS32: return "s32";
    case ElementType::kBF16: return "bf16";
    default: return "f32";
  }
}

// x = a * c * 2 * d * f, with a factor f for each place along the last dimension; rounded to s8. `large`: some of it is
// infinite, the rest is not.
Maker Lhs(const ProductCase& c, bool large) {
  const bool is_bytes = c.operand_type == ElementType::kS8;
  const std::string type = is_bytes ? "f32" : NameOf(c.operand_type);
  const std::string shape = ShapeOf(type, c.batch, c.m, c.k, c.lhs_transposed);
  const std::string result = ShapeOf(NameOf(c.operand_type), c.batch, c.m, c.k, c.lhs_transposed);
  const std::string factors = fmt::format("{}[{}]", type, c.lhs_transposed ? c.m : c.k);
  std::string ops = fmt::format(
      "  c = {0}[] constant({2})\n  cs = {1} broadcast(c), dimensions={{}}\n  s = {1} multiply(a, cs)\n"
      "  s2 = {1} add(s, s)\n  d = {0}[] constant({3})\n  ds = {1} broadcast(d), dimensions={{}}\n"
      "  s3 = {1} multiply(s2, ds)\n  fs = {1} broadcast(f), dimensions={{{4}}}\n",
      type, shape, large ? "1.7023e38" : "1", large ? "1e-36" : "40", c.batch > 0 ? 2 : 1);
  ops += is_bytes
             ? fmt::format("  s4 = {0} multiply(s3, fs)\n  s5 = {0} round-nearest-even(s4)\n  x = {1} convert(s5)\n",
                           shape, result)
             : fmt::format("  x = {} multiply(s3, fs)\n", shape);
  return {"x", result, {{"a", shape}, {"f", factors}}, ops};
}

// y = q * g of bytes q, or their sum in bytes.
Maker Rhs(const ProductCase& c) {
  const std::string type = NameOf(c.operand_type), shape = ShapeOf(type, c.batch, c.k, c.n, c.rhs_transposed);
  const std::string ops =
      fmt::format("  gs = {0} broadcast(g), dimensions={{{1}}}\n  w = {0} convert(q)\n  y = {0} {2}(w, gs)\n", shape,
                  c.batch > 0 ? 2 : 1, type == "s8" ? "add" : "multiply");
  return {"y",
          shape,
          {{"q", ShapeOf("s8", c.batch, c.k, c.n, c.rhs_transposed)},
           {"g", fmt::format("{}[{}]", type, c.rhs_transposed ? c.k : c.n)}},
          ops};
}

std::string InText(const std::vector<Parameter>& parameters) {
  std::string text;
  for (size_t i = 0; i < parameters.size(); ++i)
    text += fmt::format("  {} = {} parameter({})\n", parameters[i].name, parameters[i].shape, i);
  return text;
}

std::string FusionOf(const ProductCase& c, const Maker& lhs, const Maker& rhs) {
  std::vector<Parameter> all = lhs.parameters;
  all.insert(all.end(), rhs.parameters.begin(), rhs.parameters.end());
  std::string names;
  for (const Parameter& parameter : all) names += (names.empty() ? "" : ", ") + parameter.name;
  const int64_t b = c.batch > 0 ? 1 : 0;
  return fmt::format(
      "HloModule m\nfused {{\n{0}{1}{2}  ROOT r = {3} dot(x, y){4}, lhs_contracting_dims={{{5}}}, "
      "rhs_contracting_dims={{{6}}}\n}}\nENTRY e {{\n{0}  ROOT r = {3} fusion({7}), kind=kOutput, calls=fused\n}}\n",
      InText(all), lhs.ops, rhs.ops, ShapeOf(NameOf(c.result_type), c.batch, c.m, c.n, false),
      b == 1 ? ", lhs_batch_dims={0}, rhs_batch_dims={0}" : "", c.lhs_transposed ? b : b + 1,
      c.rhs_transposed ? b + 1 : b, names);
}

// What a maker makes of its parameters, the operands from `first` on.
Literal Made(const Maker& maker, const std::vector<Literal>& operands, size_t first) {
  const auto begin = operands.begin() + static_cast<int64_t>(first);
  const std::vector<Literal> own(begin, begin + static_cast<int64_t>(maker.parameters.size()));
  if (maker.ops.empty()) return own[0];
  std::string text = "HloModule m\nENTRY e {\n" + InText(maker.parameters) + maker.ops;
  text.insert(text.rfind("  ") + 2, "ROOT ");
  return hlo::Evaluate(*hlo::ParseModule(text + "}\n"), own);
}

std::optional<MatrixUnitPlan> PlanOf(const std::string& text, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  return PlanMatrixUnit(*ProductShapeOf(*module->entry()->root()->called()->root()), spec);
}

bool HasKernel(const std::string& text, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  return EmitDot(*module->entry()->root(), {-1}, {spec, {}}).has_value();
}

Literal ExpectBitsOfMemory(const ProductCase& c, const Maker& lhs, const Maker& rhs, const DeviceSpec& spec) {
  const std::string text = FusionOf(c, lhs, rhs);
  SCOPED_TRACE(text);
  EXPECT_TRUE(PlanOf(text, spec));
  const Fused run = RunFusion(text, {-1}, spec);
  const Literal x = Made(lhs, run.operands, 0), y = Made(rhs, run.operands, lhs.parameters.size());
  EXPECT_TRUE(run.result == ProductOnDevice(c, {x, y}, spec));
  return run.result;
}

// Both operands computed; rhs alone where lhs lies in tiles.
void ExpectBitsOfMemory(const ProductCase& c, const DeviceSpec& spec) {
  const Maker lhs = Lhs(c, false), rhs = Rhs(c);
  ExpectBitsOfMemory(c, HasKernel(FusionOf(c, lhs, rhs), spec) ? lhs : lhs.InMemory(), rhs, spec);
}

std::vector<ProductCase> InEachOrder(const ProductCase& c) {
  std::vector<ProductCase> cases;
  for (const bool lhs_transposed : {false, true}) {
    for (const bool rhs_transposed : {false, true}) {
      cases.push_back(c);
      cases.back().lhs_transposed = lhs_transposed;
      cases.back().rhs_transposed = rhs_transposed;
    }
  }
  return cases;
}

// Sizes that tiles divide, and others; parts of a tile and of a row are left in each direction.
TEST(ComputedOperandOfUnit, Bf16) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const auto& [batch, m, k, n] : std::vector<std::array<int64_t, 4>>{{0, 64, 96, 128}, {3, 75, 59, 50}}) {
    for (ProductCase c : InEachOrder({batch, m, k, n})) {
      c.operand_type = ElementType::kBF16;
      ExpectBitsOfMemory(c, *spec);
    }
  }
}

TEST(ComputedOperandOfUnit, S8) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const auto& [batch, m, k, n] : std::vector<std::array<int64_t, 4>>{{0, 64, 128, 96}, {3, 75, 99, 50}}) {
    for (ProductCase c : InEachOrder({batch, m, k, n})) {
      c.operand_type = ElementType::kS8;
      c.result_type = ElementType::kS32;
      ExpectBitsOfMemory(c, *spec);
    }
  }
}

TEST(ComputedOperandOfUnit, F32InParts) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  DeviceSpec small = *spec;
  small.l2_bytes = 256 << 10;  // sections of depth
  for (const ProductCase& c : InEachOrder({0, 606, 257, 650})) ExpectBitsOfMemory(c, *spec);
  ExpectBitsOfMemory({0, 512, 256, 512}, *spec);
  ExpectBitsOfMemory({2, 513, 300, 545}, small);
}

// One of them is in memory.
TEST(ComputedOperandOfUnit, OneSide) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const ElementType type : {ElementType::kBF16, ElementType::kS8}) {
    ProductCase c{0, 75, 90, 50};
    c.operand_type = type;
    if (type == ElementType::kS8) c.result_type = ElementType::kS32;
    ExpectBitsOfMemory(c, Lhs(c, false), Rhs(c).InMemory(), *spec);
    ExpectBitsOfMemory(c, Lhs(c, false).InMemory(), Rhs(c), *spec);
  }
}

// Sums of infinite numbers are mended from the copies, not from the operand.
TEST(ComputedOperandOfUnit, F32ThatIsInfinite) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const ProductCase c{0, 606, 257, 650};
  const Literal result = ExpectBitsOfMemory(c, Lhs(c, true), Rhs(c), *spec);
  int64_t finite = 0, infinite = 0;
  for (int64_t i = 0; i < result.ElementCount(); ++i) {
    finite += std::isfinite(result.GetDouble(i)) ? 1 : 0;
    infinite += std::isinf(result.GetDouble(i)) ? 1 : 0;
  }
  EXPECT_GT(finite, 0);
  EXPECT_GT(infinite, 0);
}

// Rows of bytes that the unit would read as they lie are copied where they are computed; rows of bf16 are not computed.
TEST(ComputedOperandOfUnit, RowsThatLieInTiles) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  for (const ElementType type : {ElementType::kS8, ElementType::kBF16}) {
    ProductCase c{0, 96, 192, 96};
    c.operand_type = type;
    if (type == ElementType::kS8) c.result_type = ElementType::kS32;
    const std::string text = FusionOf(c, Lhs(c, false), Rhs(c).InMemory());
    EXPECT_TRUE(PlanOf(text, *spec)->lhs_in_place);
    EXPECT_EQ(HasKernel(text, *spec), type == ElementType::kS8);
    EXPECT_TRUE(HasKernel(FusionOf(c, Lhs(c, false).InMemory(), Rhs(c)), *spec));
  }
}

// Two arrays of long rows would be read 64 rows at once.
TEST(ComputedOperandOfUnit, NotOfTwoArraysOfLongRows) {
  DeviceSpec spec = Runner().spec();
  spec.device_class = DeviceClass::kCpu;
  spec.has_bf16_tiles = true;
  const auto may = [&](int64_t k, bool lhs_transposed, const char* makes) {
    const std::string lhs = ShapeOf("f32", 0, 512, k, lhs_transposed), rhs = ShapeOf("f32", 0, k, 768, false);
    const std::string text = fmt::format(
        "HloModule m\nENTRY e {{\n  a = {0} parameter(0)\n  b = {0} parameter(1)\n  w = {1} parameter(2)\n"
        "  x = {0} {2}\n  ROOT r = f32[512,768] dot(x, w), lhs_contracting_dims={{{3}}}, rhs_contracting_dims={{0}}\n}}\n",
        lhs, rhs, makes, lhs_transposed ? 0 : 1);
    const auto module = hlo::ParseModule(text);
    const hlo::Instruction& dot = *module->entry()->root();
    EXPECT_TRUE(PlanMatrixUnit(*ProductShapeOf(dot), spec));
    return MayComputeOperand(dot, 0, *dot.operand(0), {spec, {}});
  };
  EXPECT_FALSE(may(2048, false, "multiply(a, b)"));
  EXPECT_TRUE(may(1024, false, "multiply(a, b)"));
  EXPECT_TRUE(may(2048, true, "multiply(a, b)"));
  EXPECT_TRUE(may(2048, false, "abs(a)"));
}

}  // namespace
}  // namespace hlorun::opencl
