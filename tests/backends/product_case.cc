#include "tests/backends/product_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/opencl/kernels/dot.h"
#include "hlo/builder.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;

constexpr size_t kGuard = 4096, kAlignment = 64;

Shape MatrixShape(ElementType type, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  hlo::Dims dims = batch > 0 ? hlo::Dims{batch} : hlo::Dims{};
  dims.push_back(transposed ? columns : rows);
  dims.push_back(transposed ? rows : columns);
  return Shape(type, dims);
}

}  // namespace

ProductShape ShapeOfCase(const ProductCase& c) {
  return {.batch = std::max<int64_t>(c.batch, 1),
          .m = c.m,
          .n = c.n,
          .k = c.k,
          .lhs_transposed = c.lhs_transposed,
          .rhs_transposed = c.rhs_transposed,
          .lhs_type = c.operand_type,
          .rhs_type = c.operand_type,
          .compute_type = SumType(c.operand_type, c.operand_type, c.result_type).value()};
}

LaunchRunner& Runner() {
  static LaunchRunner runner;
  return runner;
}

Literal RandomLiteral(const Shape& shape, unsigned seed, int lowest, int highest) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> reals(-1, 1);
  std::uniform_int_distribution<int> integers(lowest, highest);
  Literal literal(shape);
  const bool floating = hlo::IsFloating(shape.element_type());
  for (int64_t i = 0; i < shape.ElementCount(); ++i) literal.SetDouble(i, floating ? reals(random) : integers(random));
  return literal;
}

Guarded::Guarded(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), storage_(bytes_ + kGuard + kAlignment, 0xab) {}

void* Guarded::data() {
  const auto address = reinterpret_cast<uintptr_t>(storage_.data());
  return storage_.data() + (kAlignment - address % kAlignment) % kAlignment;
}

bool Guarded::GuardIntact() {
  const auto* end = static_cast<const unsigned char*>(data()) + bytes_;
  return std::all_of(end, end + kGuard, [](unsigned char c) { return c == 0xab; });
}

ProductOperands RandomOperands(const ProductCase& c) {
  return {RandomLiteral(MatrixShape(c.operand_type, c.batch, c.m, c.k, c.lhs_transposed), 1, c.lowest, c.highest),
          RandomLiteral(MatrixShape(c.operand_type, c.batch, c.k, c.n, c.rhs_transposed), 2, c.lowest, c.highest)};
}

Literal ProductOnDevice(const ProductCase& c, const ProductOperands& operands, const DeviceSpec& spec) {
  hlo::Module module("m");
  hlo::Computation* entry = module.AddComputation("main");
  hlo::Instruction* lhs = entry->AddParameter(0, operands.lhs.shape(), "lhs");
  hlo::Instruction* rhs = entry->AddParameter(1, operands.rhs.shape(), "rhs");
  hlo::attr::Dot attributes;
  const int64_t b = c.batch > 0 ? 1 : 0;
  if (b == 1) attributes.lhs_batch = attributes.rhs_batch = {0};
  attributes.lhs_contracting = {c.lhs_transposed ? b : b + 1};
  attributes.rhs_contracting = {c.rhs_transposed ? b + 1 : b};
  hlo::Instruction* dot = hlo::Builder(entry).Dot(lhs, rhs, attributes, c.result_type);
  entry->set_root(dot);

  Literal got(dot->shape());
  const CompileOptions options;
  const auto launches = EmitDot(*dot, {-1}, {spec, options});
  EXPECT_TRUE(launches.has_value());
  if (!launches) return got;
  Guarded out(dot->shape().ByteSize()), scratch(DotScratchBytes(*dot, {spec, options}));
  Runner().Run(*launches, {const_cast<std::byte*>(operands.lhs.data()), const_cast<std::byte*>(operands.rhs.data())},
               {out.data()}, scratch.data());
  EXPECT_TRUE(out.GuardIntact());
  EXPECT_TRUE(scratch.GuardIntact());
  std::memcpy(got.mutable_data(), out.data(), static_cast<size_t>(got.ByteSize()));
  return got;
}

double LargestError(const ProductCase& c, const ProductOperands& operands, const Literal& got) {
  std::vector<double> a, w;
  for (int64_t i = 0; i < operands.lhs.ElementCount(); ++i) a.push_back(operands.lhs.GetDouble(i));
  for (int64_t i = 0; i < operands.rhs.ElementCount(); ++i) w.push_back(operands.rhs.GetDouble(i));
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
  return error == 0 ? 0 : error / largest;
}

void ExpectProduct(const ProductCase& c, const DeviceSpec& spec) {
  SCOPED_TRACE(::testing::Message() << "batch " << c.batch << " m " << c.m << " k " << c.k << " n " << c.n
                                    << " transposed " << c.lhs_transposed << c.rhs_transposed << " "
                                    << hlo::ElementTypeName(c.operand_type) << " -> "
                                    << hlo::ElementTypeName(c.result_type));
  const ProductOperands operands = RandomOperands(c);
  const double bound = c.result_type == ElementType::kBF16  ? 4e-3
                       : c.result_type == ElementType::kF16 ? 5e-4
                       : hlo::IsInteger(c.result_type)      ? 0
                                                            : 1e-5;
  EXPECT_LE(LargestError(c, operands, ProductOnDevice(c, operands, spec)), bound);
}

Fused RunFusion(const std::string& text, const AliasPattern& aliases, const DeviceSpec& spec) {
  Fused run;
  run.module = hlo::ParseModule(text);
  run.fusion = run.module->entry()->root();
  const CompileOptions options;
  const auto launches = EmitDot(*run.fusion, aliases, {spec, options});
  if (!launches) throw std::runtime_error("no kernel");
  std::vector<void*> operands;
  for (const hlo::Instruction* operand : run.fusion->operands()) {
    run.operands.push_back(
        RandomLiteral(operand->shape(), static_cast<unsigned>(run.fusion->OperandIndex(operand) + 1)));
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

}  // namespace hlorun::opencl
