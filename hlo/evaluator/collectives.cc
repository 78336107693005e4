// Collectives: each device brings its operands to the meeting of its group and computes its own result from everyone's.
#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/reducer.h"
#include "hlo/evaluator/spmd.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun::hlo {
namespace {

using Group = std::vector<int64_t>;

// Ids of a group mean replicas, partitions, or devices (replica * partitions + partition).
enum class GroupMode { kReplicas, kPartitions, kReplicasOfAllPartitions, kDevices };

int64_t PartitionCount(const OpCall& call) {
  return call.evaluation.spmd() != nullptr ? call.evaluation.spmd()->partition_count() : 1;
}
int64_t ReplicaCount(const OpCall& call) {
  return call.evaluation.spmd() != nullptr ? call.evaluation.spmd()->replica_count() : 1;
}

// Reducing and gathering ops take channel ids as "all partitions of these replicas"; the moving ones as "these
// partitions".
GroupMode ModeOf(const attr::Collective& collective, bool moves) {
  if (collective.use_global_device_ids) return GroupMode::kDevices;
  if (!collective.channel_id.has_value()) return GroupMode::kReplicas;
  return moves ? GroupMode::kPartitions : GroupMode::kReplicasOfAllPartitions;
}

// The devices that a group of ids means for `device`.
Group DevicesOf(const Group& ids, GroupMode mode, int64_t device, int64_t partitions) {
  Group devices;
  const int64_t replica = device / partitions;
  const int64_t partition = device % partitions;
  for (const int64_t id : ids) {
    switch (mode) {
      case GroupMode::kReplicas: devices.push_back(id * partitions + partition); break;
      case GroupMode::kPartitions: devices.push_back(replica * partitions + id); break;
      case GroupMode::kReplicasOfAllPartitions:
        for (int64_t p = 0; p < partitions; ++p) devices.push_back(id * partitions + p);
        break;
      case GroupMode::kDevices: devices.push_back(id); break;
    }
  }
  return devices;
}

Group AllIds(GroupMode mode, int64_t replicas, int64_t partitions) {
  const int64_t count = mode == GroupMode::kPartitions ? partitions
                        : mode == GroupMode::kDevices  ? replicas * partitions
                                                       : replicas;
  Group ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

struct Gathered {
  std::shared_ptr<const SpmdRun::Contributions> contributions;
  size_t position = 0;  // of this device
  size_t size() const { return contributions->size(); }
  const Literal& Of(size_t member, size_t operand) const { return (*contributions)[member][operand]; }
};

Gathered Meet(OpCall& call, const Group& group) {
  Gathered gathered;
  std::vector<Literal> mine(call.operands.begin(), call.operands.end());
  const int64_t device = call.evaluation.device();
  gathered.position = static_cast<size_t>(std::find(group.begin(), group.end(), device) - group.begin());
  if (group.size() == 1) {
    gathered.contributions = std::make_shared<const SpmdRun::Contributions>(SpmdRun::Contributions{std::move(mine)});
  } else if (call.evaluation.spmd() == nullptr) {
    Invalid("{}: {} among {} devices cannot be evaluated on one", call.instruction.name(),
            OpcodeName(call.instruction.opcode()), group.size());
  } else {
    const int64_t devices = call.evaluation.spmd()->device_count();
    for (const int64_t member : group) {
      if (member < 0 || member >= devices) {
        Invalid("{}: group member {} is not one of {} devices", call.instruction.name(), member, devices);
      }
    }
    gathered.contributions = call.evaluation.spmd()->Meet(call.instruction, device, group, std::move(mine));
  }
  return gathered;
}

// The devices of the group that this device is in, if any.
std::optional<Group> OwnGroup(OpCall& call, bool moves) {
  const auto& collective = call.As<attr::Collective>();
  const GroupMode mode = ModeOf(collective, moves);
  const int64_t partitions = PartitionCount(call);
  std::vector<Group> groups = collective.replica_groups.Expanded();
  if (groups.empty() || (groups.size() == 1 && groups[0].empty())) {
    groups = {AllIds(mode, ReplicaCount(call), partitions)};
  }
  for (const Group& ids : groups) {
    const Group devices = DevicesOf(ids, mode, call.evaluation.device(), partitions);
    if (std::find(devices.begin(), devices.end(), call.evaluation.device()) != devices.end()) return devices;
  }
  return std::nullopt;
}

Gathered MeetGroup(OpCall& call, bool moves) {
  if (const std::optional<Group> group = OwnGroup(call, moves)) return Meet(call, *group);
  Invalid("{}: device {} is in none of the replica groups", call.instruction.name(), call.evaluation.device());
}

Literal Reduced(OpCall& call, const Gathered& gathered, size_t operand) {
  Reducer reducer(call.evaluation, *call.instruction.called());
  const ElementType type = gathered.Of(0, operand).element_type();
  const ElementType computed = reducer.accumulator_type(0);
  // Operands of other types than the reducer's are reduced in their own, as XLA does for variadic mixes.
  Literal sum = ConvertedTo(gathered.Of(0, operand), computed);
  for (size_t member = 1; member < gathered.size(); ++member) {
    const Literal value = ConvertedTo(gathered.Of(member, operand), computed);
    void* accumulator = sum.mutable_data();
    const void* source = value.data();
    reducer.Run({&accumulator, 1}, {&source, 1}, value.ElementCount());
  }
  return ConvertedTo(sum, type);
}

// Piece `index` of `count` equal ones along a dimension.
Literal PieceOf(const Literal& whole, int64_t dimension, size_t index, size_t count) {
  Dims dimensions = whole.shape().dimensions();
  const auto d = static_cast<size_t>(dimension);
  dimensions[d] /= static_cast<int64_t>(count);
  Literal piece(Shape(whole.element_type(), dimensions));
  const Dims strides = whole.shape().Strides();
  CopyStrided(whole.data(), {static_cast<int64_t>(index) * dimensions[d] * strides[d], strides}, piece.mutable_data(),
              {0, piece.shape().Strides()}, dimensions, BytesOf(whole.element_type()));
  return piece;
}

Literal Joined(const std::vector<Literal>& pieces, int64_t dimension) {
  const auto d = static_cast<size_t>(dimension);
  Dims dimensions = pieces[0].shape().dimensions();
  dimensions[d] = 0;
  for (const Literal& piece : pieces) dimensions[d] += piece.shape().dimensions()[d];
  Literal whole(Shape(pieces[0].element_type(), dimensions));
  const Dims strides = whole.shape().Strides();
  int64_t offset = 0;
  for (const Literal& piece : pieces) {
    CopyStrided(piece.data(), {0, piece.shape().Strides()}, whole.mutable_data(), {offset, strides},
                piece.shape().dimensions(), BytesOf(piece.element_type()));
    offset += piece.shape().dimensions()[d] * strides[d];
  }
  return whole;
}

Literal OneOrTuple(std::vector<Literal> results) {
  return results.size() == 1 ? std::move(results[0]) : Literal::Tuple(std::move(results));
}

}  // namespace

Literal EvaluateAllReduce(OpCall& call) {
  const Gathered gathered = MeetGroup(call, false);
  std::vector<Literal> results;
  for (size_t i = 0; i < call.operands.size(); ++i) results.push_back(Reduced(call, gathered, i));
  return OneOrTuple(std::move(results));
}

Literal EvaluateReduceScatter(OpCall& call) {
  const Gathered gathered = MeetGroup(call, false);
  const int64_t dimension = call.As<attr::Collective>().dimension.value_or(0);
  std::vector<Literal> results;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    results.push_back(PieceOf(Reduced(call, gathered, i), dimension, gathered.position, gathered.size()));
  }
  return OneOrTuple(std::move(results));
}

Literal EvaluateAllGather(OpCall& call) {
  const Gathered gathered = MeetGroup(call, false);
  const int64_t dimension = call.As<attr::Collective>().dimension.value_or(0);
  std::vector<Literal> results;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    std::vector<Literal> pieces;
    for (size_t member = 0; member < gathered.size(); ++member) pieces.push_back(gathered.Of(member, i));
    results.push_back(Joined(pieces, dimension));
  }
  return OneOrTuple(std::move(results));
}

// (operands, results)
Literal EvaluateAllGatherStart(OpCall& call) {
  Literal operands = OneOrTuple({call.operands.begin(), call.operands.end()});
  return Literal::Tuple({std::move(operands), EvaluateAllGather(call)});
}

// With a dimension: pieces of it are exchanged and joined along it. Without: operand j goes to member j.
Literal EvaluateAllToAll(OpCall& call) {
  const Gathered gathered = MeetGroup(call, true);
  const std::optional<int64_t> dimension = call.As<attr::Collective>().dimension;
  std::vector<Literal> received;
  for (size_t member = 0; member < gathered.size(); ++member) {
    received.push_back(dimension.has_value()
                           ? PieceOf(gathered.Of(member, 0), *dimension, gathered.position, gathered.size())
                           : gathered.Of(member, gathered.position));
  }
  return dimension.has_value() ? Joined(received, *dimension) : Literal::Tuple(std::move(received));
}

// (input, output, input_offsets, send_sizes, output_offsets, receive_sizes): rows of the input go to rows of the
// members' outputs; several pieces may go to one member.
Literal EvaluateRaggedAllToAll(OpCall& call) {
  const Gathered gathered = MeetGroup(call, true);
  Literal result = call.operands[1];
  const int64_t row_bytes = result.shape().dimension(0) == 0 ? 0 : result.ByteSize() / result.shape().dimension(0);
  for (size_t member = 0; member < gathered.size(); ++member) {
    const Literal& input = gathered.Of(member, 0);
    const int64_t pieces = gathered.Of(member, 2).ElementCount() / static_cast<int64_t>(gathered.size());
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t slot = static_cast<int64_t>(gathered.position) * pieces + piece;
      const int64_t from = gathered.Of(member, 2).GetInt(slot);
      const int64_t rows = gathered.Of(member, 3).GetInt(slot);
      const int64_t to = gathered.Of(member, 4).GetInt(slot);
      if (rows <= 0) continue;
      if (from < 0 || rows > input.shape().dimension(0) - from || to < 0 || rows > result.shape().dimension(0) - to) {
        Invalid("{}: {} rows from row {} of {} to row {} of {} do not fit", call.instruction.name(), rows, from,
                input.shape().ToString(false), to, result.shape().ToString(false));
      }
      std::memcpy(result.mutable_data() + to * row_bytes, input.data() + from * row_bytes,
                  static_cast<size_t>(rows * row_bytes));
    }
  }
  return result;
}

// From the first of the group; a device that is in none gets zeros.
Literal EvaluateCollectiveBroadcast(OpCall& call) {
  const std::optional<Group> group = OwnGroup(call, true);
  std::vector<Literal> results;
  if (!group) {
    for (const Literal& operand : call.operands) results.emplace_back(operand.shape());
    return OneOrTuple(std::move(results));
  }
  const Gathered gathered = Meet(call, *group);
  for (size_t i = 0; i < call.operands.size(); ++i) results.push_back(gathered.Of(0, i));
  return OneOrTuple(std::move(results));
}

// A device that is nobody's target gets zeros.
Literal EvaluateCollectivePermute(OpCall& call) {
  const auto& permute = call.As<attr::CollectivePermute>();
  const GroupMode mode = permute.channel_id.has_value() ? GroupMode::kPartitions : GroupMode::kReplicas;
  Group ids;
  for (const auto& [source, target] : permute.source_target_pairs) {
    ids.push_back(source);
    ids.push_back(target);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const int64_t partitions = PartitionCount(call);
  const int64_t device = call.evaluation.device();
  const Group group = DevicesOf(ids, mode, device, partitions);
  const auto self = std::find(group.begin(), group.end(), device);
  std::vector<Literal> results;
  for (const Literal& operand : call.operands) results.emplace_back(operand.shape());
  if (self == group.end()) return OneOrTuple(std::move(results));
  const Gathered gathered = Meet(call, group);
  const int64_t my_id = ids[static_cast<size_t>(self - group.begin())];
  for (const auto& [source, target] : permute.source_target_pairs) {
    if (target != my_id) continue;
    const auto member = static_cast<size_t>(std::find(ids.begin(), ids.end(), source) - ids.begin());
    for (size_t i = 0; i < results.size(); ++i) results[i] = gathered.Of(member, i);
  }
  return OneOrTuple(std::move(results));
}

// (operand, result, context...)
Literal EvaluateCollectivePermuteStart(OpCall& call) {
  const Literal operand = OneOrTuple({call.operands.begin(), call.operands.end()});
  std::vector<Literal> elements{operand, EvaluateCollectivePermute(call)};
  for (size_t i = 2; i < call.instruction.shape().tuple_shapes().size(); ++i) {
    elements.emplace_back(call.instruction.shape().tuple_shapes()[i]);
  }
  return Literal::Tuple(std::move(elements));
}

Literal EvaluatePartitionId(OpCall& call) {
  return Literal::Scalar(ElementType::kU32, call.evaluation.device() % PartitionCount(call));
}

Literal EvaluateReplicaId(OpCall& call) {
  return Literal::Scalar(ElementType::kU32, call.evaluation.device() / PartitionCount(call));
}

}  // namespace hlorun::hlo
