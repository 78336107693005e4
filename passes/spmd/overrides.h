// Shardings that the user gives beside the module: --mesh, --in_shardings, --out_shardings.
//
//   mesh          data:2,model:2              axes, major to minor
//   in_shardings  [data,None];[None,(data,model)];{devices=[4,1]<=[4]};
//                 one entry a parameter array, flattened: the axes that cut each dimension, HloSharding text, or
//                 nothing for what the module says. Fewer entries leave the rest as it is.
//   out_shardings the same for the results
#pragma once

#include <string>

#include "hlo/module.h"

namespace hlorun::passes::spmd {

struct ShardingOverrides {
  std::string mesh, in_shardings, out_shardings;
  bool empty() const { return mesh.empty() && in_shardings.empty() && out_shardings.empty(); }
};

// Writes them over the module's own annotations. Axes are those of `mesh`, else of the module's only mesh
// (xla.sdy.meshes). A mesh replaces the module's own: annotations by axis names then mean its axes. Throws Error naming
// the flag and what is wrong in it.
void OverrideShardings(hlo::Module& module, const ShardingOverrides& overrides);

// How many devices `mesh` has; 0 where none is given.
int64_t DevicesOfMesh(const std::string& mesh);

}  // namespace hlorun::passes::spmd
