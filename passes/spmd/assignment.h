// Which axes cut which factor of an op: chosen once for each instruction, by cost.
#pragma once

#include "passes/spmd/factor_rule.h"
#include "passes/spmd/mesh_sharding.h"

namespace hlorun::passes::spmd {

// One entry a factor. An axis cuts at most one factor of an op.
using FactorAxes = std::vector<AxisList>;

// What cutting the dimension `dimension` of a tensor by `axes` means for the factors that it is made of: appended to
// `into`, as far as they divide and are not taken by another factor.
void AbsorbDimension(const Mesh& mesh, const FactorRule& rule, const FactorRule::Dimension& dimension,
                     const AxisList& axes, FactorAxes& into);
void AbsorbTensor(const Mesh& mesh, const FactorRule& rule, const FactorRule::Tensor& tensor,
                  const MeshSharding& sharding, FactorAxes& into);

// Drops what cannot be: blocked factors, a minor factor of a dimension whose major one is not cut through, uneven cuts
// of dimensions of several factors.
void Legalize(const Mesh& mesh, const FactorRule& rule, FactorAxes& axes);

MeshSharding ShardingOf(const FactorRule::Tensor& tensor, const FactorAxes& axes, const AxisList& manual);

// The axes along which the op's results are partial.
AxisList PartialAxes(const FactorRule& rule, const FactorAxes& axes);

// The cheapest cut for operands that lie as `operands` and results wanted as `results`.
FactorAxes ChooseAxes(const Mesh& mesh, const hlo::Instruction& op, const FactorRule& rule,
                      const std::vector<MeshSharding>& operands, const std::vector<MeshSharding>& results);

}  // namespace hlorun::passes::spmd
