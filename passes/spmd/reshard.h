// From one sharding of an array to another: which collectives, in which order, and what they cost.
#pragma once

#include <vector>

#include "passes/spmd/local_builder.h"

namespace hlorun::passes::spmd {

struct ReshardStep {
  enum class Kind : uint8_t { kSlice, kAllReduce, kReduceScatter, kAllGather, kAllToAll, kPermute };
  Kind kind = Kind::kSlice;
  int64_t dimension = 0;  // cut, gathered, or (all-to-all) newly cut
  int64_t joined = 0;     // all-to-all: the dimension that becomes longer
  AxisList axes;          // along which devices exchange
  MeshSharding before, after;
  double bytes = 0;  // that each device sends, by the ring algorithm
};

const char* StepName(ReshardStep::Kind kind);

// `manual` of both must be equal. Empty when nothing is to be done.
std::vector<ReshardStep> PlanReshard(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& from,
                                     const MeshSharding& to);
// Bytes that each device sends.
double ReshardBytes(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& from, const MeshSharding& to);

// Emits the steps. `reducer` combines partial values.
hlo::Instruction* EmitReshard(LocalBuilder& build, const hlo::Shape& global, hlo::Instruction* local,
                              const std::vector<ReshardStep>& steps, hlo::Opcode reducer);

}  // namespace hlorun::passes::spmd
