// How a lowered module takes and gives sizes: which parameters and results of its entry are sizes of which dimensions.
//
// Kept as attributes of the module, so that it prints, reads back and survives a clone:
//   hlorun.size_parameters="0:0,2:1"   the last two parameters are s32[] sizes of dimension 0 of parameter leaf 0 and
//   of
//                                      dimension 1 of leaf 2
//   hlorun.size_results="0:0"          the last leaf of the result is the size of dimension 0 of result leaf 0
//   hlorun.equal_sizes="0=1"           those two size parameters must be given the same value
//
// In one device's program (spmd/part_sizes.h) a size parameter is the whole array's, a size result that of the device's
// part;
//   hlorun.whole_size_results="0:0"    behind them, the size of dimension 0 of the whole result leaf 0, which is cut
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hlo/module.h"

namespace hlorun::passes {

struct DimensionOfLeaf {
  int64_t leaf = 0, dimension = 0;
  bool operator==(const DimensionOfLeaf&) const = default;
};

struct SizeSignature {
  std::vector<DimensionOfLeaf> parameters, results;
  std::vector<std::pair<int64_t, int64_t>> equal;  // indices into `parameters`
  std::vector<DimensionOfLeaf> whole_results;
  bool empty() const { return parameters.empty() && results.empty(); }
};

SizeSignature SignatureOf(const hlo::Module& module);
void SetSignature(hlo::Module& module, const SizeSignature& signature);

// Dynamic dimensions of the leaves of `shapes`, in flattened order.
std::vector<DimensionOfLeaf> DynamicDimensions(const std::vector<hlo::Shape>& shapes);

}  // namespace hlorun::passes
