#include "hlo/transfer.h"

#include <charconv>
#include <string_view>

#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::hlo {
namespace {

// The numbers in "{{0,1},{1,2}}"; throws for any other character.
std::vector<int64_t> NumbersIn(const Instruction& transfer, std::string_view text) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < text.size();) {
    if (std::string_view("{}, ").find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), numbers.emplace_back());
    if (error != std::errc()) Invalid("{}: \"{}\" is no list of source-target pairs", transfer.name(), text);
    at = static_cast<size_t>(end - text.data());
  }
  return numbers;
}

// A done says what its start says.
const Instruction& StartOf(const Instruction& transfer) {
  const bool is_done = transfer.Is(Opcode::kSendDone) || transfer.Is(Opcode::kRecvDone);
  return is_done && transfer.operand(0)->attributes().index() == transfer.attributes().index() ? *transfer.operand(0)
                                                                                               : transfer;
}

}  // namespace

DevicePairs TransferPairs(const Instruction& transfer) {
  const Instruction& start = StartOf(transfer);
  if (start.As<attr::Transfer>().is_host_transfer) return {};
  const int64_t replicas = transfer.module()->replica_count, partitions = transfer.module()->num_partitions;
  const auto attribute = start.frontend_attributes.find("_xla_send_recv_source_target_pairs");
  DevicePairs pairs;
  if (attribute == start.frontend_attributes.end()) {
    for (int64_t device = 0; device < replicas * partitions; ++device) pairs.emplace_back(device, device);
    return pairs;
  }
  if (replicas > 1 && partitions > 1) {
    Fail(ErrorCode::kUnimplemented, "{}: transfers between devices of a module with replicas and partitions",
         start.name());
  }
  const std::vector<int64_t> numbers = NumbersIn(start, attribute->second);
  if (numbers.size() % 2 != 0) Invalid("{}: \"{}\" is no list of source-target pairs", start.name(), attribute->second);
  for (size_t i = 0; i < numbers.size(); i += 2) {
    for (const int64_t device : {numbers[i], numbers[i + 1]}) {
      if (device < 0 || device >= replicas * partitions) {
        Invalid("{}: it names device {} of {}", start.name(), device, replicas * partitions);
      }
    }
    if (TargetOf(pairs, numbers[i]) >= 0 || SourceOf(pairs, numbers[i + 1]) >= 0) {
      Invalid("{}: {} -> {} is not its device's only transfer", start.name(), numbers[i], numbers[i + 1]);
    }
    pairs.emplace_back(numbers[i], numbers[i + 1]);
  }
  return pairs;
}

int64_t TargetOf(const DevicePairs& pairs, int64_t device) {
  for (const auto& [source, target] : pairs) {
    if (source == device) return target;
  }
  return -1;
}

int64_t SourceOf(const DevicePairs& pairs, int64_t device) {
  for (const auto& [source, target] : pairs) {
    if (target == device) return source;
  }
  return -1;
}

int64_t ChannelOf(const Instruction& transfer) { return StartOf(transfer).As<attr::Transfer>().channel_id.value_or(0); }

}  // namespace hlorun::hlo
