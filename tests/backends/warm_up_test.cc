// Launches before a binary is taken, which must not touch what is not theirs.
#include <gtest/gtest.h>

#include "backends/opencl/runtime/compile_program.h"
#include "backends/opencl/runtime/quirks.h"

namespace hlorun::opencl {
namespace {

// Compiles `source`, whose kernels launch one group of two work-items; false: this platform launches nothing.
bool CompilesWith(const std::string& source, const std::vector<std::string>& kernels) {
  NameCpuToPlatforms();
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  std::vector<cl::Device> devices;
  platforms.at(0).getDevices(CL_DEVICE_TYPE_ALL, &devices);
  const Quirks quirks = QuirksOf(platforms[0].getInfo<CL_PLATFORM_NAME>(), devices[0].getInfo<CL_DEVICE_TYPE>());
  if (!quirks.binaries_need_launch || !quirks.may_take_raw_pointers) return false;
  ProgramRequest request;
  request.source = source;
  for (const std::string& kernel : kernels) request.kernels.push_back({kernel, false, 0, {Grid{{1, 1, 1}, {2, 1, 1}}}});
  request.raw_pointers = true;
  EXPECT_FALSE(CompileProgram(request, devices[0]).empty());
  return true;
}

// A kernel that reads an index again after a store, as those of scatters do: what it stores to is another array.
TEST(WarmUp, ArgumentsDoNotOverlap) {
  const bool launched = CompilesWith(R"(
__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void k(__global const int* index, __global int* sums) {
  if (get_local_id(0) == 0) sums[index[0]] = -(1 << 29);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 1) sums[index[0]] += 1;
})",
                                     {"k"});
  if (!launched) GTEST_SKIP() << "nothing is launched here";
}

// What one kernel stores is an index to another one, whose argument it is not.
TEST(WarmUp, KernelsFindZeros) {
  const bool launched = CompilesWith(R"(
__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void makes(__global int* key) { key[0] = -(1 << 29); }
__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void reads(__global const int* index, __global int* sums) {
  sums[index[0]] = 1;
})",
                                     {"makes", "reads"});
  if (!launched) GTEST_SKIP() << "nothing is launched here";
}

}  // namespace
}  // namespace hlorun::opencl
