// From a module and a sharding of every value to one device's module.
#pragma once

#include "passes/pass.h"
#include "passes/spmd/propagation.h"

namespace hlorun::passes::spmd {

// Replaces the entry and all it executes by the per-device program: parameters and results have their parts' shapes,
// and their shardings as attributes; num_partitions is the mesh's. Appends a remark for each collective that it had to
// add (what, why, bytes) and for each op that it could not cut. The module must be inlined and each control computation
// have one caller.
void PartitionComputations(hlo::Module& module, const Mesh& mesh, const ModuleAnnotations& annotations,
                           const PropagationResult& shardings, PassContext& context);

}  // namespace hlorun::passes::spmd
