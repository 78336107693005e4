// Matrix products of random operands on the first OpenCL device, compared with sums in double on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/kernels/product_plan.h"
#include "hlo/device_spec.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {

struct ProductCase {
  int64_t batch, m, k, n;
  bool lhs_transposed = false, rhs_transposed = false;
  hlo::ElementType operand_type = hlo::ElementType::kF32, result_type = hlo::ElementType::kF32;
  int lowest = -5, highest = 5;  // of integers
};

// What a kernel is planned for.
ProductShape ShapeOfCase(const ProductCase& c);

// The process's one.
LaunchRunner& Runner();

hlo::Literal RandomLiteral(const hlo::Shape& shape, unsigned seed, int lowest = -5, int highest = 5);

// A block with a guard of known bytes behind it: kernels may not write beyond what they asked for.
class Guarded {
 public:
  explicit Guarded(int64_t bytes);
  void* data();
  bool GuardIntact();

 private:
  size_t bytes_;
  std::vector<unsigned char> storage_;
};

struct ProductOperands {
  hlo::Literal lhs, rhs;
};
ProductOperands RandomOperands(const ProductCase& c);

// The product on the device; guards are checked.
hlo::Literal ProductOnDevice(const ProductCase& c, const ProductOperands& operands, const DeviceSpec& spec);

// Of `got`, against sums in double: the largest error, as a share of the largest magnitude; infinite where one is NaN.
double LargestError(const ProductCase& c, const ProductOperands& operands, const hlo::Literal& got);

// Of random operands: the largest error is within what the result's type allows.
void ExpectProduct(const ProductCase& c, const DeviceSpec& spec);

// A fusion in text, the module's root, run with random operands.
struct Fused {
  std::unique_ptr<hlo::Module> module;
  const hlo::Instruction* fusion = nullptr;
  std::vector<hlo::Literal> operands;
  hlo::Literal result;
};
Fused RunFusion(const std::string& text, const AliasPattern& aliases = {-1}, const DeviceSpec& spec = Runner().spec());

}  // namespace hlorun::opencl
