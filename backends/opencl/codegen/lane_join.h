// What several work-items of a group hold becomes one value, through local memory and, where the device has them and
// neighbours are lanes of one team, by exchanges within sub-groups. Both join the same values in the same order.
#pragma once

#include <vector>

#include "backends/opencl/codegen/emission.h"

namespace hlorun::opencl {

// The work-items of a group that join theirs. Item first + lane * stride of the group has the lane, and that place in
// an array of the group.
struct LaneTeam {
  Index lane;         // of this item: 0 .. items
  int64_t items = 1;  // a power of two
  Index first;        // the item that is lane 0; with stride 1, a multiple of `items`
  int64_t stride = 1;
  int64_t group = 1;  // items of the group
};

// One value of an item, to be combined with the other items' by `opcode`.
struct LaneValue {
  hlo::Opcode opcode;
  hlo::ElementType type;
  Value value;
};

// a op b, halving: value i and value i + half, until one is left.
Value JoinHalving(hlo::Opcode opcode, hlo::ElementType type, std::vector<Value> values, Body& body);

// Every item gets the total of its team, lanes halving (JoinHalving of all of them). Stands where all items of the
// group come by: in it are barriers. The local arrays that it needs are this call's alone.
std::vector<Value> JoinLanes(Emission& e, const LaneTeam& team, std::vector<LaneValue> lanes);

}  // namespace hlorun::opencl
