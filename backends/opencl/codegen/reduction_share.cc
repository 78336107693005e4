#include "backends/opencl/codegen/reduction_share.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/powers_of_two.h"

namespace hlorun::opencl {
namespace {

// What fills a large GPU several times over, so that its last wave of groups is short beside the others.
constexpr int64_t kManyGroups = 2048;
// So many groups are left alone: cutting them would cost another launch.
constexpr int64_t kEnoughGroups = 512;
constexpr int64_t kSmallestSplit = 1 << 15;  // elements, of all results
constexpr int64_t kPartOfRow = 1 << 12;      // elements that are worth a group
constexpr int64_t kMostLanesOfRow = 1 << 10;
// Elements: with fewer the tree would be most of the work. Short rows have lanes enough to read whole sectors together.
constexpr int64_t kShareOfRowLane = 8, kShareOfShortRowLane = 4, kLanesOfShortRow = 8;
constexpr int64_t kShareOfItem = 16;  // loads of a work-item that are in flight together
constexpr int64_t kWarp = 32;
constexpr int64_t kGroup = 128, kLargeGroup = 256, kLargestGroup = 512;
constexpr int64_t kColumns = 64;  // two cache lines of floats
constexpr int64_t kShareOfColumnLane = 8;

// Parts whose size is a multiple of the lanes.
void Split(int64_t elements, int64_t parts, ReductionShare& share) {
  if (parts <= 1) return;
  share.part_elements = CeilDiv(CeilDiv(elements, parts), share.lanes) * share.lanes;
  share.parts = CeilDiv(elements, share.part_elements);
}

// Neighbouring work-items read neighbours of a row; short rows share a group.
ReductionShare ShareOfRows(const ReductionSize& size, bool may_split) {
  ReductionShare share{.part_elements = size.elements};
  const int64_t short_lanes = std::min(PowerFrom(CeilDiv(size.elements, kShareOfShortRowLane)), kLanesOfShortRow);
  share.lanes = std::min(std::max(PowerFrom(CeilDiv(size.elements, kShareOfRowLane)), short_lanes), kMostLanesOfRow);
  const bool is_large = size.results * size.elements >= kSmallestSplit && size.results < kEnoughGroups;
  if (may_split && is_large)
    Split(size.elements, std::min(kManyGroups / size.results, size.elements / kPartOfRow), share);
  const int64_t groups = size.results * share.parts;
  const int64_t wanted = std::max(kWarp, PowerFrom(CeilDiv(share.part_elements, kShareOfItem)));
  share.items = std::min({share.lanes, wanted, groups < kEnoughGroups ? kLargestGroup : kLargeGroup});
  share.across = std::min(std::max<int64_t>(1, kGroup / share.items), PowerFrom(size.results));
  while (share.across > 1 && size.results / share.across < kEnoughGroups && share.group() > kWarp) share.across /= 2;
  return share;
}

// Neighbouring work-items have neighbouring results. Of few results each has many lanes.
ReductionShare ShareOfColumns(const ReductionSize& size, bool may_split) {
  ReductionShare share{.part_elements = size.elements};
  share.across = std::min(kColumns, PowerFrom(size.results));
  share.lanes = std::min(kLargeGroup / share.across, PowerFrom(CeilDiv(size.elements, kShareOfColumnLane)));
  const int64_t groups = CeilDiv(size.results, share.across);
  const bool is_large = size.results * size.elements >= kSmallestSplit && groups < kEnoughGroups;
  if (may_split && is_large)
    Split(size.elements, std::min(kManyGroups / groups, size.elements / (share.lanes * kShareOfColumnLane)), share);
  share.items = share.lanes;
  share.across = std::max(share.across, std::min(kGroup / share.items, PowerFrom(size.results)));
  return share;
}

}  // namespace

ReductionShare ShareOf(const ReductionSize& size, bool may_split, int64_t item_bytes, const DeviceSpec& device) {
  ReductionShare share = size.is_rows ? ShareOfRows(size, may_split) : ShareOfColumns(size, may_split);
  const auto fits = [&] {
    return share.group() <= device.max_work_group_size && share.group() * item_bytes <= device.local_memory_bytes;
  };
  while (!fits() && share.across > 1 && (size.is_rows || share.items == 1)) share.across /= 2;
  while (!fits() && share.items > 1) share.items /= 2;
  while (!fits() && share.across > 1) share.across /= 2;
  return share;
}

}  // namespace hlorun::opencl
