// What a module says of its shardings, whatever the notation, on one mesh.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "passes/spmd/mesh_sharding.h"

namespace hlorun::passes::spmd {

// Of one array. A closed dimension stays as it is; propagation may add axes to an open one.
struct Annotation {
  MeshSharding sharding;
  std::vector<bool> open;
  int priority = 0;  // Shardy's: lower ones propagate first
};

// One entry a leaf of the instruction's shape; nullopt where nothing is said.
using LeafAnnotations = std::vector<std::optional<Annotation>>;

// A custom-call between a whole array and the parts that a manual computation (shard_map) sees. Works on each leaf.
struct ManualBoundary {
  bool enters = false;                  // whole -> parts
  std::vector<MeshSharding> shardings;  // of the whole arrays, one a leaf
  std::vector<std::vector<bool>> open;  // dimensions that may be cut further
  AxisList manual;                      // ascending
};

struct ModuleAnnotations {
  Mesh mesh;
  std::unordered_map<const hlo::Instruction*, LeafAnnotations> values;
  std::unordered_map<const hlo::Instruction*, ManualBoundary> boundaries;
  std::vector<std::string> warnings;  // shardings that do not fit the mesh and are ignored
};

// True when an instruction has a sharding, or a custom-call names one.
bool IsAnnotated(const hlo::Module& module);

// The devices that the module's annotations are for: its header, else the largest mesh, else the largest device list; 1
// when nothing is said.
int64_t PartitionCountOf(const hlo::Module& module);

// Throws Error when an annotation is malformed or does not fit its array, with the instruction's name.
ModuleAnnotations ReadAnnotations(const hlo::Module& module, int64_t partitions);

// True for the custom-calls whose value is their operand's and that only say where it lies (Sharding,
// xla.sdy.FuncResultSharding, xla.sdy.PropagationBarrier).
bool IsShardingConstraint(const hlo::Instruction& instruction);
bool IsPropagationBarrier(const hlo::Instruction& instruction);
bool IsManualBoundary(const hlo::Instruction& instruction);

}  // namespace hlorun::passes::spmd
