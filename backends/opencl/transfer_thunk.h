// infeed, outfeed, send and recv-done as thunks.
#pragma once

#include <optional>

#include "backends/opencl/plan.h"
#include "hlo/instruction.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::opencl {

// Nothing for recv and send-done, whose work the other half of the pair does. A send's value leaves at the send, so
// that no order of sends and receives blocks.
std::optional<TransferThunk> MakeTransferThunk(const hlo::Instruction& transfer,
                                               const passes::BufferAssignment& buffers);

}  // namespace hlorun::opencl
