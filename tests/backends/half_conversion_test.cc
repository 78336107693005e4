// Every half to a float, and floats to halves where rounding decides, by each way in which kernels of this device may
// convert them and by vectors of every number of lanes: the bits of the host's conversions.
#include "backends/opencl/codegen/half_conversion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/codegen/opencl_helpers.h"
#include "backends/opencl/runtime/device.h"
#include "hlo/error.h"
#include "hlo/number_types.h"
#include "hlo/text/parser.h"
#include "tests/backends/launch_runner.h"

namespace hlorun::opencl {
namespace {

constexpr int kHalves = 1 << 16;

float ValueOf(int bits) { return static_cast<float>(std::bit_cast<hlo::half>(static_cast<uint16_t>(bits))); }
uint16_t BitsOf(float value) { return std::bit_cast<uint16_t>(static_cast<hlo::half>(value)); }

LaunchRunner& Runner() {
  static LaunchRunner runner;
  return runner;
}

// By integers, and by the device's own form.
std::vector<DeviceSpec> Forms() {
  std::vector<DeviceSpec> specs;
  const DeviceSpec device = FindDevice("")->spec();
  const std::string here = device.half_conversion;
  for (const std::string& form : {std::string(), here}) {
    for (const int64_t vector_bytes : {4, 8, 16, 32, 64}) {
      // Assembly has no operand for vectors that the device has not.
      if (!form.empty() && vector_bytes > device.vector_bytes) continue;
      DeviceSpec& spec = specs.emplace_back(Runner().spec());
      spec.vector_bytes = vector_bytes;
      spec.half_conversion = form;
    }
    if (here.empty()) break;
  }
  return specs;
}

template <typename To, typename From>
std::vector<To> Results(const std::string& text, std::vector<From> operand, size_t count, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(text);
  std::vector<To> result(count);
  const CompileOptions options;
  Runner().Run(EmitInstruction(*module->entry()->root(), {-1}, {spec, options}), {operand.data()}, {result.data()},
               nullptr);
  return result;
}

TEST(HalfConversion, EveryHalf) {
  std::vector<uint16_t> halves(kHalves);
  for (int i = 0; i < kHalves; ++i) halves[static_cast<size_t>(i)] = static_cast<uint16_t>(i);
  const std::string text = fmt::format(
      "HloModule m\nENTRY e {{\n  a = f16[{0}] parameter(0)\n  ROOT r = f32[{0}] convert(a)\n}}\n", kHalves);
  for (const DeviceSpec& spec : Forms()) {
    const auto got = Results<float>(text, halves, halves.size(), spec);
    for (int i = 0; i < kHalves; ++i) {
      const float want = ValueOf(i), value = got[static_cast<size_t>(i)];
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(value)) << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(want)) << i << " " << spec.half_conversion;
      }
    }
  }
}

// The middle between each half and the next, what is next to it on both sides, and halves themselves, through a
// comparison, which compilers like to do on halves.
TEST(HalfConversion, RoundsToNearestEven) {
  std::vector<float> values = {INFINITY,   -INFINITY, NAN,      1e30F,          -1e-30F,
                               65519.996F, 65520.0F,  0x1p-25F, 0x1.000002p-25F};
  for (int i = 0; i < 0x7bff; ++i) {
    const float value = ValueOf(i), middle = (value + ValueOf(i + 1)) / 2;
    for (const float tried : {value, std::nextafter(middle, 0.0F), middle, std::nextafter(middle, INFINITY)})
      values.push_back(i % 2 == 0 ? tried : -tried);
  }
  while (values.size() % 16 != 5) values.push_back(1.0F);
  const std::string text = fmt::format(
      "HloModule m\nf {{\n  a = f32[{0}] parameter(0)\n  h = f16[{0}] convert(a)\n  zero = f16[] constant(0)\n"
      "  zeros = f16[{0}] broadcast(zero), dimensions={{}}\n  is_less = pred[{0}] compare(h, zeros), direction=LT\n"
      "  n = f16[{0}] negate(h)\n  ROOT r = f16[{0}] select(is_less, n, h)\n}}\n"
      "ENTRY e {{\n  a = f32[{0}] parameter(0)\n  ROOT r = f16[{0}] fusion(a), kind=kLoop, calls=f\n}}\n",
      values.size());
  for (const DeviceSpec& spec : Forms()) {
    const auto got = Results<uint16_t>(text, values, values.size(), spec);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t rounded = BitsOf(values[i]);
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(ValueOf(got[i]))) << i;
      } else {
        ASSERT_EQ(got[i], ValueOf(rounded) < 0 ? rounded & 0x7fff : rounded)
            << values[i] << " " << spec.half_conversion;
      }
    }
  }
}

TEST(HalfConversion, UnknownForm) {
  DeviceSpec spec;
  spec.half_conversion = "guess";
  EXPECT_THROW(HelperSet{spec}, Error);
}

}  // namespace
}  // namespace hlorun::opencl
