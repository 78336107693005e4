// The measured cost table: which rows it has, and that it is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/tuning/kept_roofline.h"
#include "backends/opencl/tuning/peak_kernels.h"
#include "hlo/error.h"
#include "tests/end_to_end/command.h"

namespace hlorun::opencl {
namespace {

using ::testing::HasSubstr;
using testing_support::FilesUnder;
using testing_support::ReadAll;
using testing_support::TemporaryFolder;

std::shared_ptr<DeviceContext> Context(const std::function<void(DeviceSpec&)>& change = {}) {
  const std::shared_ptr<Device> device = FindDevice("");
  DeviceSpec spec = device->spec();
  if (change) change(spec);
  return OpenDevice(device, spec);
}

class KeptRoofline : public ::testing::Test {
 protected:
  DeviceSpec Measured(const std::shared_ptr<DeviceContext>& context, bool use_disk_cache = true) {
    measured_ = false;
    BuildOptions build;
    build.use_disk_cache = use_disk_cache;
    build.cache_dir = folder_.path();
    return MeasuredSpec(context, build, [this](const std::string&) { measured_ = true; });
  }
  const TemporaryFolder folder_;
  bool measured_ = false;
};

// No machine at hand may have two units whose kernels call the same functions.
TEST(PeakKernels, AProgramDefinesWhatSeveralCallOnce) {
  DeviceSpec device;
  device.has_bf16_tiles = device.has_s8_tiles = true;
  const std::vector<PeakKernel> kernels = {PeakOf("bf16_tiles_gflops").make(device, "bf16", 1),
                                           PeakOf("s8_tiles_gflops").make(device, "s8", 1)};
  const std::string program = ProgramOf(kernels);
  for (const PeakKernel& kernel : kernels) {
    EXPECT_THAT(program, HasSubstr(kernel.source));
    for (const std::string_view function : kernel.functions) {
      const size_t at = program.find(function);
      ASSERT_NE(at, std::string::npos);
      EXPECT_EQ(program.find(function, at + 1), std::string::npos) << function;
    }
  }
}

TEST_F(KeptRoofline, IsMeasuredOnceAndFoundAgain) {
  const std::shared_ptr<DeviceContext> context = Context();
  const DeviceSpec first = Measured(context);
  EXPECT_TRUE(measured_);
  for (const char* cost : {"f32_gflops", "bandwidth_gbps", "memory_read_gbps", "launch_us", "launch_and_finish_us",
                           "queues_meet_us"})
    EXPECT_GT(first.Cost(cost), 0) << cost;
  EXPECT_EQ(first.Cost("f64_gflops") > 0, context->spec().has_f64);
  EXPECT_EQ(first.Cost("bf16_words_gflops") > 0, !context->spec().bf16_dot.empty());
  EXPECT_EQ(first.Cost("s8_words_gflops") > 0, !context->spec().s8_dot.empty());
  EXPECT_EQ(first.Cost("bf16_tiles_gflops") > 0, context->spec().has_bf16_tiles);
  // Orders of magnitude that no device leaves; a kernel whose loop was optimised away would.
  EXPECT_LT(first.f32_gflops / static_cast<double>(context->spec().compute_units), 2000);
  EXPECT_LT(first.Cost("l1_read_gbps") / static_cast<double>(context->spec().compute_units), 2000);

  EXPECT_EQ(Measured(context).ToJson(), first.ToJson());
  EXPECT_FALSE(measured_);
  Measured(context, /*use_disk_cache=*/false);
  EXPECT_TRUE(measured_);
}

TEST_F(KeptRoofline, WhatCannotBeReadIsMeasuredAnew) {
  const std::shared_ptr<DeviceContext> context = Context();
  const std::string path = RooflinePathIn(folder_.path(), MeasuredDevice(*context));
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const std::string device = MeasuredDevice(*context);
  for (const std::string& text :
       {std::string("{\"device\": \"" + device + "\", \"costs\": {\"f32_g"), std::string("[]"),
        "{\"device\": \"" + device + "\", \"costs\": {\"f32_gflops\": \"x\"}}",
        "{\"device\": \"" + device + "\", \"costs\": {\"f32_gflops\": 1}}",
        std::string("{\"device\": \"another\", \"costs\": {\"f32_gflops\": 1, \"bandwidth_gbps\": 1, "
                    "\"launch_us\": 1}}")}) {
    std::ofstream(path) << text;
    EXPECT_NE(Measured(context).f32_gflops, 1) << text;
    EXPECT_TRUE(measured_) << text;
  }
  // The last measurement mended it.
  Measured(context);
  EXPECT_FALSE(measured_);
}

TEST_F(KeptRoofline, AnotherDeviceHasAnotherFile) {
  const std::string here = MeasuredDevice(*Context());
  EXPECT_EQ(here, MeasuredDevice(*Context()));
  EXPECT_NE(here, MeasuredDevice(*Context([](DeviceSpec& spec) { spec.compute_units += 1; })));
  EXPECT_NE(here, MeasuredDevice(*Context([](DeviceSpec& spec) { spec.l2_bytes *= 2; })));
  EXPECT_NE(RooflinePathIn("a", here), RooflinePathIn("a", here + "x"));
}

TEST_F(KeptRoofline, ASpecsOwnCostsWin) {
  const DeviceSpec given = Measured(Context([](DeviceSpec& spec) {
    spec.f32_gflops = 7;
    spec.bandwidth_gbps = 8;
    spec.launch_us = 9;
  }));
  EXPECT_FALSE(measured_);
  EXPECT_EQ(given.f32_gflops, 7);
  EXPECT_EQ(FilesUnder(folder_.path()), "");
}

TEST(PeakKernels, UnitsThatAreNotThereAreLeftOut) {
  DeviceSpec device;
  device.has_f64 = false;
  std::vector<std::string> there;
  const auto list = [&] {
    there.clear();
    for (const Peak& peak : Peaks()) {
      if (peak.is_there(device)) there.emplace_back(peak.cost);
    }
    return there;
  };
  EXPECT_THAT(list(), ::testing::ElementsAre("f32_gflops", "s32_gflops"));
  device.has_f64 = device.has_bf16_tiles = true;
  device.s8_dot = "assembly";
  EXPECT_THAT(list(),
              ::testing::ElementsAre("f32_gflops", "f64_gflops", "s32_gflops", "s8_words_gflops", "bf16_tiles_gflops"));
  // 32 registers of 16 lanes, three quarters of them sums.
  EXPECT_EQ(PeakOf("f32_gflops").make(device, "k", 10).operations, 2.0 * 16 * 24 * 10);
  EXPECT_EQ(PeakOf("s8_words_gflops").make(device, "k", 10).operations, 2.0 * 4 * 16 * 24 * 10);
  EXPECT_EQ(PeakOf("bf16_tiles_gflops").make(device, "k", 10).operations, 2.0 * 32 * 32 * 32 * 4 * 10);
  device.s8_dot = "magic";
  EXPECT_THROW(PeakOf("s8_words_gflops").make(device, "k", 10), Error);
}

}  // namespace
}  // namespace hlorun::opencl
