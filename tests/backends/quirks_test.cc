// What platforms are told about this machine.
#include "backends/opencl/runtime/quirks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backends/opencl/runtime/host_cpu.h"

namespace hlorun::opencl {
namespace {

constexpr const char* kVariable = "CL_CONFIG_CPU_TARGET_ARCH";

TEST(Quirks, NameTheCpuWhereItHasTheFeatures) {
  unsetenv(kVariable);
  NameCpuToPlatforms();
  const char* named = std::getenv(kVariable);
  const bool has_all = ThisCpu().Has("amxbf16") && ThisCpu().Has("avx512fp16") && ThisCpu().Has("avxvnni");
  EXPECT_EQ(named != nullptr ? std::string(named) : "", has_all ? "sapphirerapids" : "");
}

TEST(Quirks, LeaveWhatTheUserNames) {
  setenv(kVariable, "skx", 1);
  NameCpuToPlatforms();
  EXPECT_STREQ(std::getenv(kVariable), "skx");
}

}  // namespace
}  // namespace hlorun::opencl
