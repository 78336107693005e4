#include "backends/opencl/collective_thunk.h"

#include <algorithm>
#include <array>

#include "hlo/builder.h"
#include "hlo/device_groups.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Entry {
  Opcode opcode;
  CollectiveKind kind;
};
constexpr std::array kCollectives = {
    Entry{Opcode::kAllReduce, CollectiveKind::kAllReduce},
    Entry{Opcode::kAllGather, CollectiveKind::kAllGather},
    Entry{Opcode::kReduceScatter, CollectiveKind::kReduceScatter},
    Entry{Opcode::kAllToAll, CollectiveKind::kAllToAll},
    Entry{Opcode::kCollectivePermute, CollectiveKind::kCollectivePermute},
    Entry{Opcode::kCollectiveBroadcast, CollectiveKind::kCollectiveBroadcast},
    Entry{Opcode::kRaggedAllToAll, CollectiveKind::kRaggedAllToAll},
};

}  // namespace

CollectiveThunk MakeCollectiveThunk(const Instruction& instruction) {
  const auto entry = std::find_if(kCollectives.begin(), kCollectives.end(),
                                  [&](const Entry& e) { return e.opcode == instruction.opcode(); });
  if (entry == kCollectives.end()) {
    Fail(ErrorCode::kUnimplemented, "%{}: {} does not run on devices", instruction.name(),
         hlo::OpcodeName(instruction.opcode()));
  }
  CollectiveThunk thunk;
  thunk.kind = entry->kind;
  if (instruction.Is(Opcode::kCollectivePermute)) {
    thunk.pairs = hlo::DevicePairs(instruction);
  } else {
    thunk.groups = hlo::DeviceGroups(instruction);
    thunk.dimension = instruction.As<hlo::attr::Collective>().dimension.value_or(-1);
  }
  if (!instruction.called_computations().empty()) {
    // A reducer that is no single opcode gets a kernel from the plan builder.
    thunk.reduction = hlo::ReducerOpcode(*instruction.called()).value_or(Opcode::kMap);
  }
  for (const Instruction* operand : instruction.operands()) thunk.operand_shapes.push_back(operand->shape());
  thunk.result_shapes = hlo::FlattenShape(instruction.shape());
  return thunk;
}

}  // namespace hlorun::opencl
