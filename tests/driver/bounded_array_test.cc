// Arrays dense and at their bound: what is copied, and when.
#include "driver/api/bounded_array.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "backends/opencl/runtime/device.h"

namespace hlorun {
namespace {

// With plain pointers where the device takes them, and with cl_mem.
class BoundedArrayTest : public ::testing::TestWithParam<bool> {
 protected:
  BoundedArrayTest() {
    const std::shared_ptr<opencl::Device> device = opencl::FindDevice("");
    DeviceSpec spec = device->spec();
    spec.raw_pointers = spec.raw_pointers && GetParam();
    context_ = opencl::OpenDevice(device, spec);
  }

  // Memory of s32[dimensions] that counts up.
  opencl::DeviceArray Counting(const hlo::Dims& dimensions) {
    opencl::DeviceArray array{hlo::Shape(hlo::ElementType::kS32, dimensions), {}, nullptr};
    std::vector<int32_t> values(static_cast<size_t>(array.shape->ElementCount()));
    std::iota(values.begin(), values.end(), 0);
    array.memory = opencl::PoolOf(context_)->Allocate(array.shape->ByteSize(), "a test's array");
    opencl::CopyToDevice(context_, values.data(), array.memory, array.shape->ByteSize());
    return array;
  }

  std::vector<int32_t> Read(const opencl::DeviceMemory& memory) {
    std::vector<int32_t> values(static_cast<size_t>(memory.bytes()) / sizeof(int32_t));
    opencl::CopyToHost(context_, memory, values.data(), memory.bytes());
    return values;
  }

  static bool Same(const opencl::DeviceMemory& a, const opencl::DeviceMemory& b) {
    return a.host() == b.host() && a.buffer() == b.buffer() && a.offset() == b.offset();
  }

  std::shared_ptr<opencl::DeviceContext> context_;
};

TEST_P(BoundedArrayTest, GoesToTheSameBoundWithoutACopy) {
  const opencl::DeviceArray whole = Counting({3, 4});
  BoundedArray array(whole, {2, 3}, context_);
  EXPECT_EQ(array.shape().ToString(false), "s32[2,3]");
  EXPECT_TRUE(Same(array.AtBound({3, 4}).memory, whole.memory));
  EXPECT_TRUE(Same(array.ToDonate({3, 4}).memory, whole.memory));
  std::vector<int32_t> host(6);
  array.ToHost(host.data());
  EXPECT_EQ(host, (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
}

TEST_P(BoundedArrayTest, IsMadeDenseOnce) {
  const opencl::DeviceArray whole = Counting({3, 4});
  BoundedArray array(whole, {2, 3}, context_);
  const opencl::DeviceMemory dense = array.Dense().memory;
  EXPECT_EQ(Read(dense), (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
  EXPECT_TRUE(Same(array.Dense().memory, dense));
  EXPECT_TRUE(Same(array.AtBound({2, 3}).memory, dense));
  EXPECT_TRUE(Same(array.AtBound({3, 4}).memory, whole.memory));
}

// Whole rows lie at the front of the bound's memory.
TEST_P(BoundedArrayTest, FewerRowsAreDenseWhereTheyLie) {
  const opencl::DeviceArray whole = Counting({3, 4});
  BoundedArray array(whole, {2, 4}, context_);
  const opencl::DeviceMemory dense = array.Dense().memory;
  EXPECT_TRUE(Same(dense, whole.memory));
  EXPECT_EQ(dense.bytes(), 32);
  EXPECT_TRUE(Same(array.AtBound({3, 4}).memory, whole.memory));
}

TEST_P(BoundedArrayTest, GoesToAnotherBoundThroughOneCopyThatIsKept) {
  BoundedArray array(Counting({3, 4}), {2, 3}, context_);
  const opencl::DeviceMemory other = array.AtBound({2, 5}).memory;
  const std::vector<int32_t> values = Read(other);
  ASSERT_EQ(values.size(), 10U);
  EXPECT_EQ(std::vector<int32_t>(values.begin(), values.begin() + 3), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(std::vector<int32_t>(values.begin() + 5, values.begin() + 8), (std::vector<int32_t>{4, 5, 6}));
  EXPECT_TRUE(Same(array.AtBound({2, 5}).memory, other));
  // From there to a third, and back to elements one after another.
  EXPECT_EQ(Read(array.AtBound({4, 4}).memory)[5], 5);
  EXPECT_EQ(Read(array.Dense().memory), (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
}

TEST_P(BoundedArrayTest, ADonatedCopyIsNotKept) {
  BoundedArray array(Counting({2, 3}), context_);
  const opencl::DeviceMemory given = array.ToDonate({3, 4}).memory;
  EXPECT_EQ(Read(given)[4], 3);
  EXPECT_FALSE(Same(array.AtBound({3, 4}).memory, given));
}

TEST_P(BoundedArrayTest, OfSizeZero) {
  BoundedArray array(Counting({3, 4}), {3, 0}, context_);
  EXPECT_EQ(array.Dense().memory.bytes(), 0);
  array.ToHost(nullptr);
  BoundedArray dense(Counting({0, 4}), context_);
  EXPECT_EQ(dense.AtBound({3, 4}).memory.bytes(), 48);
}

TEST_P(BoundedArrayTest, SeveralThreadsShareOneCopy) {
  BoundedArray array(Counting({64, 64}), {64, 33}, context_);
  std::vector<opencl::DeviceMemory> dense(8);
  std::vector<std::thread> threads;
  for (opencl::DeviceMemory& memory : dense) {
    threads.emplace_back([&] { memory = array.Dense().memory; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const opencl::DeviceMemory& memory : dense) {
    EXPECT_TRUE(Same(memory, dense.front()));
    EXPECT_EQ(Read(memory)[33], 64);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, BoundedArrayTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "pointers" : "buffers"; });

}  // namespace
}  // namespace hlorun
