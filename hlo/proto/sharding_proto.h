// Shardings and device groups to and from their messages.
//
// Shardings over named meshes (v2) and replica groups as mesh axes have no structure in the IR: they are kept as the
// text that HLO prints, which is written and read here.
#pragma once

#include "hlo/attributes.h"
#include "hlo/proto/hlo.pb.h"
#include "hlo/sharding.h"

namespace hlorun::hlo {

Sharding ShardingFromProto(const proto::OpSharding& message);
void ShardingToProto(const Sharding& sharding, proto::OpSharding* message);

ReplicaGroups ReplicaGroupsFromProto(const proto::HloInstructionProto& message);
void ReplicaGroupsToProto(const ReplicaGroups& groups, proto::HloInstructionProto* message);

}  // namespace hlorun::hlo
