// What platforms are told about this machine.
#include "backends/opencl/runtime/quirks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace hlorun::opencl {
namespace {

TEST(Quirks, NameCpusThatHaveAllFeatures) {
  const Quirks quirks = QuirksOf("Intel(R) OpenCL", CL_DEVICE_TYPE_CPU);
  HostCpu cpu;
  for (const std::string& feature : quirks.target_features) {
    EXPECT_FALSE(IsTarget(quirks, cpu)) << cpu.isa;
    cpu.isa += (cpu.isa.empty() ? "" : ",") + feature;
  }
  EXPECT_TRUE(IsTarget(quirks, cpu));
  EXPECT_FALSE(IsTarget(QuirksOf("Portable Computing Language", CL_DEVICE_TYPE_CPU), cpu));
}

// A later change is not what the platform has been told.
TEST(Quirks, WhatTheUserNamesStays) {
  const Quirks quirks = QuirksOf("Intel(R) OpenCL", CL_DEVICE_TYPE_CPU);
  setenv(quirks.target_variable, "skx", 1);
  NameCpuToPlatforms();
  EXPECT_STREQ(std::getenv(quirks.target_variable), "skx");
  setenv(quirks.target_variable, "icx", 1);
  EXPECT_EQ(CpuTargetOf(quirks), "skx");
}

}  // namespace
}  // namespace hlorun::opencl
