// Launches before a binary is taken, which must not touch what is not theirs.
#include <gtest/gtest.h>

#include "backends/opencl/runtime/compile_program.h"
#include "backends/opencl/runtime/quirks.h"

namespace hlorun::opencl {
namespace {

// A kernel that reads an index again after a store, as those of scatters do: what it stores to is another array.
TEST(WarmUp, ArgumentsDoNotOverlap) {
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  std::vector<cl::Device> devices;
  platforms.at(0).getDevices(CL_DEVICE_TYPE_ALL, &devices);
  const Quirks quirks = QuirksOf(platforms[0].getInfo<CL_PLATFORM_NAME>(), devices[0].getInfo<CL_DEVICE_TYPE>());
  if (!quirks.binaries_need_launch || !quirks.may_take_raw_pointers) GTEST_SKIP() << "nothing is launched here";
  ProgramRequest request;
  request.source = R"(
__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void k(__global const int* index, __global int* sums) {
  if (get_local_id(0) == 0) sums[index[0]] = -(1 << 29);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 1) sums[index[0]] += 1;
})";
  request.kernels = {{"k", false, 0, {Grid{{1, 1, 1}, {2, 1, 1}}}}};
  request.raw_pointers = true;
  EXPECT_FALSE(CompileProgram(request, devices[0]).empty());
}

}  // namespace
}  // namespace hlorun::opencl
