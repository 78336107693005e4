// Values that leave or enter the program while it runs: infeed, outfeed, send and recv.
#include "hlo/error.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/host_channels.h"
#include "hlo/transfer.h"

namespace hlorun::hlo {
namespace {

HostChannels& Channels(const OpCall& call) {
  HostChannels* channels = call.evaluation.options().channels;
  if (channels == nullptr) {
    Fail(ErrorCode::kUnimplemented,
         "{}: {} exchanges data with a host that is not there; pass values as parameters, or "
         "give the run HostChannels",
         call.instruction.name(), OpcodeName(call.instruction.opcode()));
  }
  return *channels;
}

// The leaves that the host gave, as a value of `shape`.
Literal Received(const OpCall& call, const Shape& shape, std::vector<Literal> leaves) {
  const std::vector<Shape> expected = ArrayLeaves(shape);
  bool fits = leaves.size() == expected.size();
  for (size_t i = 0; fits && i < leaves.size(); ++i) fits = leaves[i].shape().SameAs(expected[i]);
  if (!fits)
    Invalid("{}: the value that came is not the {} that it wants", call.instruction.name(), shape.ToString(false));
  return AssembleLeaves(shape, leaves);
}

}  // namespace

Literal EvaluateInfeed(OpCall& call) {
  const Shape& data = call.instruction.shape().tuple_shape(0);
  Literal value = Received(call, data, Channels(call).Take(call.evaluation.device(), HostChannels::kFeed));
  return Literal::Tuple({std::move(value), Literal(Shape::Token())});
}

Literal EvaluateOutfeed(OpCall& call) {
  Channels(call).Give(call.evaluation.device(), HostChannels::kFeed, ArrayLeaves(call.operand(0)));
  return Literal(Shape::Token());
}

// Sends at once, so that no order of sends and receives blocks.
Literal EvaluateSend(OpCall& call) {
  const int64_t channel = ChannelOf(call.instruction), device = call.evaluation.device();
  if (call.As<attr::Transfer>().is_host_transfer) {
    Channels(call).Give(device, channel, ArrayLeaves(call.operand(0)));
  } else if (const int64_t target = TargetOf(TransferPairs(call.instruction), device); target >= 0) {
    call.evaluation.Post({channel, device, target}, call.operand(0));
  }
  return Literal::Tuple({call.operand(0), Literal(Shape::Scalar(ElementType::kU32)), Literal(Shape::Token())});
}

Literal EvaluateSendDone(OpCall&) { return Literal(Shape::Token()); }

// The start of a receive does nothing: the done takes the value.
Literal EvaluateRecv(OpCall& call) { return Literal(call.instruction.shape()); }

// A device that nothing is sent to receives zeros.
Literal EvaluateRecvDone(OpCall& call) {
  const int64_t channel = ChannelOf(call.instruction), device = call.evaluation.device();
  const Shape& data = call.instruction.shape().tuple_shape(0);
  Literal value(data.WithoutLayout());
  if (call.As<attr::Transfer>().is_host_transfer) {
    value = Received(call, data, Channels(call).Take(device, channel));
  } else if (const int64_t source = SourceOf(TransferPairs(call.instruction), device); source >= 0) {
    value = call.evaluation.Receive({channel, source, device}, call.instruction);
    if (!value.shape().SameAs(data)) {
      Invalid("{}: it wants {}, what was sent is {}", call.instruction.name(), data.ToString(false),
              value.shape().ToString(false));
    }
  }
  return Literal::Tuple({std::move(value), Literal(Shape::Token())});
}

}  // namespace hlorun::hlo
