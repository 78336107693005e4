// What work-items of a sub-group hand each other (sub_groups.h), as kernel IR.
#pragma once

#include <utility>
#include <vector>

#include "backends/opencl/codegen/emission.h"

namespace hlorun::opencl {

// The size of the sub-groups that a group of `items` consists of; 1 where the device has none whose lanes can hand each
// other values.
int64_t SubGroupSizeFor(int64_t items, const DeviceSpec& device);

// Exchanges of a kernel of GPU class with groups of `group` work-items, whose SubGroupSizeFor is not 1. Each stands
// where all items of the group come by.
class LaneExchange {
 public:
  // `item`: this one's number in the group.
  LaneExchange(Emission& e, ir::Expr item, int64_t group);

  // `value` of the work-item whose number is this one's xor `distance`, a power of two below the sub-groups' size.
  // Named.
  ir::Expr Across(const ir::Expr& value, int64_t distance);
  Value Across(const Value& value, int64_t distance);

 private:
  ir::Expr AcrossByFunction(const ir::Expr& value, int64_t distance);
  ir::Expr AcrossByMemory(const ir::Expr& value, int64_t distance);

  Emission& e_;
  ir::Expr item_;
  int64_t group_;
  std::vector<std::pair<hlo::ElementType, ir::BufferRef>> arrays_;  // of AcrossByMemory
};

}  // namespace hlorun::opencl
