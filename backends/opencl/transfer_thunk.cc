#include "backends/opencl/transfer_thunk.h"

#include "hlo/host_channels.h"
#include "hlo/transfer.h"

namespace hlorun::opencl {

using hlo::Instruction;
using hlo::Opcode;

std::optional<TransferThunk> MakeTransferThunk(const Instruction& transfer, const passes::BufferAssignment& buffers) {
  if (transfer.Is(Opcode::kRecv) || transfer.Is(Opcode::kSendDone)) return std::nullopt;
  TransferThunk thunk;
  thunk.to_program = transfer.Is(Opcode::kInfeed) || transfer.Is(Opcode::kRecvDone);
  thunk.channel = hlo::HostChannels::kFeed;
  if (transfer.Is(Opcode::kSend) || transfer.Is(Opcode::kRecvDone)) {
    thunk.channel = hlo::ChannelOf(transfer);
    thunk.pairs = hlo::TransferPairs(transfer);
  }
  // What comes is a result's first element, what goes is operand 0.
  const Instruction& holder = thunk.to_program ? transfer : *transfer.operand(0);
  int64_t leaf = 0;
  hlo::ForEachLeaf(holder.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    const int64_t number = leaf++;
    if (!shape.IsArray()) return;
    thunk.arrays.push_back(buffers.SliceOf(&holder, number));
    thunk.shapes.push_back(shape.WithoutLayout());
  });
  return thunk;
}

}  // namespace hlorun::opencl
