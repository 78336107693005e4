// How groups share a reduction: the order of its sums is the shape's, the rest the device's.
#include "backends/opencl/codegen/reduction_share.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace hlorun::opencl {
namespace {

std::vector<ReductionSize> Sizes() {
  std::vector<ReductionSize> sizes;
  for (const int64_t results : {1, 3, 10, 64, 511, 4096, 1000003}) {
    for (const int64_t elements : {1, 2, 3, 10, 16, 64, 100, 1000, 4096, 12544, 100000, 16777216}) {
      for (const bool is_rows : {true, false}) sizes.push_back({results, elements, is_rows});
    }
  }
  return sizes;
}

DeviceSpec Device(int64_t group, int64_t local_memory) {
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  device.max_work_group_size = group;
  device.local_memory_bytes = local_memory;
  return device;
}

TEST(ReductionShare, OrderFollowsFromTheShapeAlone) {
  const DeviceSpec rich = Device(1024, 48 << 10);
  for (const ReductionSize& size : Sizes()) {
    const ReductionShare want = ShareOf(size, true, 8, rich);
    for (const DeviceSpec& poor : {Device(256, 32 << 10), Device(128, 16 << 10), Device(7, 1 << 10), Device(1, 8)}) {
      const ReductionShare got = ShareOf(size, true, 8, poor);
      EXPECT_EQ(got.parts, want.parts);
      EXPECT_EQ(got.part_elements, want.part_elements);
      EXPECT_EQ(got.lanes, want.lanes);
      EXPECT_LE(got.group(), poor.max_work_group_size);
      EXPECT_LE(got.group() * 8, poor.local_memory_bytes);
    }
  }
}

TEST(ReductionShare, CoversEveryElementOnce) {
  const DeviceSpec device = Device(1024, 48 << 10);
  for (const ReductionSize& size : Sizes()) {
    const ReductionShare share = ShareOf(size, true, 4, device);
    SCOPED_TRACE(testing::Message() << size.results << " of " << size.elements
                                    << (size.is_rows ? " rows" : " columns"));
    EXPECT_GE(share.parts * share.part_elements, size.elements);
    EXPECT_LT((share.parts - 1) * share.part_elements, size.elements) << "an empty part";
    EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(share.lanes)));
    EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(share.across)));
    EXPECT_EQ(share.lanes % share.items, 0);
    EXPECT_TRUE(share.parts == 1 || share.part_elements % share.lanes == 0);
    EXPECT_EQ(ShareOf(size, false, 4, device).parts, 1);
  }
}

// 132 compute units with several groups each.
TEST(ReductionShare, LargeReductionsFillADevice) {
  const DeviceSpec device = Device(1024, 48 << 10);
  for (const ReductionSize& size :
       {ReductionSize{1, 1 << 24, true}, ReductionSize{64, 1 << 18, true}, ReductionSize{4096, 4096, true},
        ReductionSize{4096, 4096, false}, ReductionSize{64, 100352, true}, ReductionSize{64, 100352, false}}) {
    const ReductionShare share = ShareOf(size, true, 4, device);
    EXPECT_GE((size.results + share.across - 1) / share.across * share.parts, 1000)
        << size.results << " of " << size.elements;
    EXPECT_GE(share.group(), 128);
  }
  const ReductionShare narrow = ShareOf({10, 100000, false}, true, 4, device);
  EXPECT_GE(narrow.parts, 500);
  const ReductionShare short_rows = ShareOf({1 << 20, 16, true}, true, 4, device);
  EXPECT_EQ(short_rows.group(), 128) << "short rows share a group";
}

}  // namespace
}  // namespace hlorun::opencl
