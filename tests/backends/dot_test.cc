// Matrix products on the device against sums in double on the host.
#include "backends/opencl/kernels/dot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "hlo/builder.h"
#include "hlo/module.h"
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

Literal RandomLiteral(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> reals(-1, 1);
  std::uniform_int_distribution<int> integers(-5, 5);
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
  SCOPED_TRACE(::testing::Message() << "batch " << c.batch << " m " << c.m << " k " << c.k << " n " << c.n << " transposed "
                                    << c.lhs_transposed << c.rhs_transposed << " " << hlo::ElementTypeName(c.operand_type) << " -> "
                                    << hlo::ElementTypeName(c.result_type));
  hlo::Module module("m");
  hlo::Computation* entry = module.AddComputation("main");
  hlo::Instruction* lhs = entry->AddParameter(0, MatrixShape(c.operand_type, c.batch, c.m, c.k, c.lhs_transposed), "lhs");
  hlo::Instruction* rhs = entry->AddParameter(1, MatrixShape(c.operand_type, c.batch, c.k, c.n, c.rhs_transposed), "rhs");
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
  const Literal x = RandomLiteral(lhs->shape(), 1), y = RandomLiteral(rhs->shape(), 2);
  Guarded out(dot->shape().ByteSize()), scratch(DotScratchBytes(*dot, spec));
  Runner().Run(*launches, {const_cast<std::byte*>(x.data()), const_cast<std::byte*>(y.data())}, {out.data()}, scratch.data());
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
        largest = std::max(largest, std::abs(sum));
        const double difference = std::abs(sum - got.GetDouble((batch * c.m + i) * c.n + j));
        error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      }
    }
  }
  const double bound = c.result_type == ElementType::kBF16 ? 4e-3 : c.result_type == ElementType::kF16 ? 5e-4
                       : hlo::IsInteger(c.result_type) ? 0 : 1e-5;
  EXPECT_LE(error, bound * largest);
}

TEST(Dot, SmallSizesOfEveryRemainder) {
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 70, 33}, {33, 17, 1}, {2, 3, 5}, {7, 19, 31}, {13, 64, 32}, {14, 33, 70}, {15, 1, 49}, {29, 40, 16}, {70, 70, 70}}) {
    for (int form = 0; form < 4; ++form) ExpectProduct({0, m, k, n, (form & 1) != 0, (form & 2) != 0}, Runner().spec());
  }
}

TEST(Dot, Batches) {
  for (int form = 0; form < 4; ++form) ExpectProduct({5, 21, 18, 37, (form & 1) != 0, (form & 2) != 0}, Runner().spec());
  ExpectProduct({3, 196, 64, 196, false, true}, Runner().spec());
}

TEST(Dot, PackedOperands) {
  ExpectProduct({0, 200, 100, 131}, Runner().spec());
  ExpectProduct({0, 203, 100, 131, true, true}, Runner().spec());
}

TEST(Dot, PartsOfALongSum) {
  ExpectProduct({0, 20, 5000, 40}, Runner().spec());
  ExpectProduct({0, 65, 3001, 43, true, false}, Runner().spec());
  ExpectProduct({2, 9, 4100, 33, true, true}, Runner().spec());
}

TEST(Dot, OtherTypes) {
  using enum ElementType;
  for (const auto& [operand, result] : std::vector<std::pair<ElementType, ElementType>>{
           {kBF16, kBF16}, {kBF16, kF32}, {kF16, kF16}, {kF64, kF64}, {kS32, kS32}, {kS8, kS32}, {kS64, kS64}, {kS16, kS32}}) {
    ExpectProduct({0, 30, 45, 50, false, false, operand, result}, Runner().spec());
    ExpectProduct({2, 5, 21, 19, true, true, operand, result}, Runner().spec());
  }
}

TEST(Dot, NarrowVectors) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 32;
  for (int form = 0; form < 4; ++form) ExpectProduct({0, 43, 37, 29, (form & 1) != 0, (form & 2) != 0}, narrow);
}

}  // namespace
}  // namespace hlorun::opencl
