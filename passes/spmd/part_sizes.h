// Results of bounded dimensions that are cut: each device tells how many elements its part has, and how many the whole.
#pragma once

#include "hlo/module.h"
#include "passes/spmd/mesh_sharding.h"

namespace hlorun::passes::spmd {

// In the entry of a partitioned module whose sizes were lowered before (dynamic/signature.h). `outputs` says how the
// results' leaves lie. Returns how many leaves the root got more.
//   before: ROOT r = (f32[4], s32[]) tuple(x, n)                      hlorun.size_results="0:0"
//   after:  m = s32[] maximum(minimum(n - partition * 4, 4), 0)
//           ROOT r = (f32[4], s32[], s32[]) tuple(x, m, n)            hlorun.whole_size_results="0:0"
int64_t AddPartSizes(hlo::Module& module, hlo::Computation* entry, const Mesh& mesh,
                     const std::vector<MeshSharding>& outputs);

}  // namespace hlorun::passes::spmd
