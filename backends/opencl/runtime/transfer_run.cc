#include "backends/opencl/runtime/transfer_run.h"

#include <algorithm>

#include "backends/collectives/await.h"
#include "backends/opencl/runtime/thunk_runner.h"
#include "hlo/transfer.h"

namespace hlorun::opencl {
namespace {

std::vector<hlo::Literal> ReadAll(const TransferThunk& transfer, ThunkRunner& runner) {
  std::vector<hlo::Literal> leaves;
  for (size_t i = 0; i < transfer.arrays.size(); ++i) {
    hlo::Literal& leaf = leaves.emplace_back(transfer.shapes[i]);
    if (leaf.ByteSize() > 0) runner.Read(runner.At(transfer.arrays[i]), leaf.mutable_data(), leaf.ByteSize());
  }
  return leaves;
}

std::string ShapesText(const std::vector<hlo::Shape>& shapes) {
  std::vector<std::string> texts;
  for (const hlo::Shape& shape : shapes) texts.push_back(shape.ToString(false));
  return fmt::format("({})", fmt::join(texts, ", "));
}

void WriteAll(const TransferThunk& transfer, ThunkRunner& runner, const std::vector<hlo::Literal>& leaves) {
  const bool fits =
      std::equal(leaves.begin(), leaves.end(), transfer.shapes.begin(), transfer.shapes.end(),
                 [](const hlo::Literal& leaf, const hlo::Shape& shape) { return leaf.shape().SameAs(shape); });
  if (!fits) {
    std::vector<hlo::Shape> came;
    for (const hlo::Literal& leaf : leaves) came.push_back(leaf.shape());
    Invalid("arrays {} came instead of {}", ShapesText(came), ShapesText(transfer.shapes));
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].ByteSize() > 0) runner.Write(leaves[i].data(), runner.At(transfer.arrays[i]), leaves[i].ByteSize());
  }
}

void WithHost(const TransferThunk& transfer, ThunkRunner& runner, int64_t device) {
  hlo::HostChannels* channels = runner.options().channels.get();
  if (channels == nullptr) {
    Fail(ErrorCode::kUnimplemented,
         "it exchanges data with a host that is not there; run it from the C++ API with "
         "RunFlags::channels");
  }
  if (transfer.to_program) return WriteAll(transfer, runner, channels->Take(device, transfer.channel));
  channels->Give(device, transfer.channel, ReadAll(transfer, runner));
}

// Tags of transfers are negative, apart from those of collectives.
int64_t TagOf(const TransferThunk& transfer) { return -1 - transfer.channel; }

void BetweenDevices(const TransferThunk& transfer, ThunkRunner& runner, int64_t device) {
  const int64_t other =
      transfer.to_program ? hlo::SourceOf(transfer.pairs, device) : hlo::TargetOf(transfer.pairs, device);
  std::vector<hlo::Literal> leaves;
  for (const hlo::Shape& shape : transfer.shapes) leaves.emplace_back(shape);
  if (other < 0) return transfer.to_program ? WriteAll(transfer, runner, leaves) : void();
  if (other == device) {
    auto& waiting = runner.own_transfers()[transfer.channel];
    if (!transfer.to_program) return waiting.push_back(ReadAll(transfer, runner));
    if (waiting.empty()) Invalid("it receives on channel {} what has not been sent", transfer.channel);
    WriteAll(transfer, runner, waiting.front());
    waiting.pop_front();
    return;
  }
  collectives::Transport& transport = runner.options().communicator->transport();
  if (!transfer.to_program) leaves = ReadAll(transfer, runner);
  for (hlo::Literal& leaf : leaves) {
    if (!transfer.to_program) {
      runner.SendLater(std::move(leaf), static_cast<int>(other), TagOf(transfer));
      continue;
    }
    const std::span<std::byte> bytes(leaf.mutable_data(), static_cast<size_t>(leaf.ByteSize()));
    const auto request = transport.Receive(bytes, static_cast<int>(other), TagOf(transfer));
    Await(transport, request);
  }
  if (transfer.to_program) WriteAll(transfer, runner, leaves);
}

}  // namespace

void RunTransfer(const TransferThunk& transfer, ThunkRunner& runner) {
  const int64_t device = runner.options().replica * runner.plan().num_partitions + runner.options().partition;
  if (transfer.pairs.empty()) return WithHost(transfer, runner, device);
  BetweenDevices(transfer, runner, device);
}

}  // namespace hlorun::opencl
