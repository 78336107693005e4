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

// Numbers in pairs, and their halves in vectors of four: out[2 i] = in[2 i + 1], out[2 i + 1] = in[2 i].
std::string ExchangedPairs(int64_t size, DeviceClass device_class) {
  const ir::BufferRef in = ir::MakeBuffer("in", hlo::ElementType::kF32, size, kGlobal, false);
  const ir::BufferRef out = ir::MakeBuffer("out", hlo::ElementType::kF32, size, kGlobal, true);
  const ir::Var i = ir::MakeIndex("i", 0, 63, ir::kIndex32);
  const ir::Expr even = ir::Ref(i) * 2, odd = even + 1, two = ir::Int(2, ir::kIndex32);
  const auto every_other = [&](const ir::Expr& first) { return ir::Ramp(first, two, 4); };
  ScheduledKernel kernel;
  kernel.function.name = "f";
  kernel.function.parameters = {in, out};
  kernel.function.body =
      ir::Block({ir::Let(i, ir::Cast(ir::Call(ir::kIndex32, "get_group_id", {ir::Int(0)}), ir::kIndex32.element)),
                 ir::Store(out, every_other(even), ir::Load(in, every_other(odd))),
                 ir::Store(out, every_other(odd), ir::Load(in, every_other(even)))});
  return ToOpenClC(kernel, Device(device_class, true));
}

TEST(OpenClC, PairsAreVectorsTakenApart) {
  const std::string text = ExchangedPairs(128, DeviceClass::kCpu);
  EXPECT_THAT(text, HasSubstr("hl_store_in_turns2_g_float4(out + (i * 2), hl_every2_1_g_float4(in + (i * 2)), "
                              "hl_every2_0_g_float4(in + (i * 2)));"));
  // Vectors of whole pairs would reach beyond the last element; GPUs load what they want.
  EXPECT_THAT(ExchangedPairs(127, DeviceClass::kCpu), HasSubstr("hl_every2_g_float4(in + ((i * 2) + 1))"));
  EXPECT_THAT(ExchangedPairs(128, DeviceClass::kGpu), Not(HasSubstr("hl_every")));
}

}  // namespace
}  // namespace hlorun::opencl
