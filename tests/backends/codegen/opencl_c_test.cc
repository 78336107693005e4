// How vectors of elements side by side are read and written: as such only where they are known to lie at a multiple of
// their size.
#include "backends/opencl/codegen/opencl_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlorun::opencl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DeviceSpec Device(DeviceClass device_class, bool raw_pointers) {
  DeviceSpec device;
  device.device_class = device_class;
  device.raw_pointers = raw_pointers;
  return device;
}

// out[i .. i + 4] = in[i .. i + 4], both in `space`, where i is a multiple of `factor`.
std::string CopyOfFour(ir::Buffer::Space space, int64_t factor, const DeviceSpec& device) {
  const ir::BufferRef in = ir::MakeBuffer("in", hlo::ElementType::kF32, 640, space, true);
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, 640, space, true);
  const ir::Var i = ir::MakeIndex("i", 0, 639, ir::kIndex32);
  i->factor = factor;
  const ir::Expr at = ir::Ramp(ir::Ref(i), 4);
  ScheduledKernel kernel;
  kernel.function.name = "f";
  std::vector<ir::Stmt> body;
  if (space == ir::Buffer::Space::kGlobal)
    kernel.function.parameters = {in, out};
  else
    body = {ir::DeclareArray(in), ir::DeclareArray(out)};
  body.push_back(ir::Let(i, ir::Cast(ir::Call(ir::kIndex32, "get_group_id", {ir::Int(0)}), ir::kIndex32.element)));
  body.push_back(ir::Store(out, at, ir::Load(in, at)));
  kernel.function.body = ir::Block(std::move(body));
  return ToOpenClC(kernel, device);
}

constexpr auto kGlobal = ir::Buffer::Space::kGlobal, kLocal = ir::Buffer::Space::kLocal;

TEST(OpenClC, BuffersOfGpusHoldVectors) {
  const std::string text = CopyOfFour(kGlobal, 4, Device(DeviceClass::kGpu, false));
  EXPECT_THAT(text, HasSubstr("*(__global float4*)(out + i) = *(__global const float4*)(in + i);"));
}

TEST(OpenClC, PointersMayPointAnywhere) {
  const std::string aligned = "float4*)(";
  EXPECT_THAT(CopyOfFour(kGlobal, 4, Device(DeviceClass::kGpu, true)), Not(HasSubstr(aligned)));
  EXPECT_THAT(CopyOfFour(kGlobal, 4, Device(DeviceClass::kCpu, false)), Not(HasSubstr(aligned)));
  EXPECT_THAT(CopyOfFour(kLocal, 4, Device(DeviceClass::kCpu, false)), Not(HasSubstr(aligned)));
}

TEST(OpenClC, LocalArraysHoldVectorsWhateverArgumentsAre) {
  for (const bool raw_pointers : {false, true}) {
    const std::string text = CopyOfFour(kLocal, 4, Device(DeviceClass::kGpu, raw_pointers));
    EXPECT_THAT(text, HasSubstr("*(__local float4*)(out + i) = *(__local const float4*)(in + i);"));
  }
}

TEST(OpenClC, APlaceThatIsNoMultipleHoldsNone) {
  for (const int64_t factor : {1, 2, 6})
    EXPECT_THAT(CopyOfFour(kLocal, factor, Device(DeviceClass::kGpu, false)), Not(HasSubstr("float4*)("))) << factor;
  EXPECT_THAT(CopyOfFour(kLocal, 12, Device(DeviceClass::kGpu, false)), HasSubstr("float4*)("));
}

}  // namespace
}  // namespace hlorun::opencl
