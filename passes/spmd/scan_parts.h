// What a scan is made of, as sharding sees it.
#pragma once

#include "hlo/instruction.h"

namespace hlorun::passes::spmd {

// A scan has `inputs` operands of which each step takes a slice along `dimension`, then its carries. Its leaves are
// `outputs` stacked arrays, then the leaves of the carries; its step takes and returns them in the same order.
struct ScanParts {
  explicit ScanParts(const hlo::Instruction& scan)
      : dimension(scan.As<hlo::attr::Scan>().scan_dimension),
        inputs(scan.operand_count() - scan.As<hlo::attr::Scan>().num_carries),
        outputs(static_cast<int64_t>(scan.shape().tuple_shapes().size()) - scan.As<hlo::attr::Scan>().num_carries),
        steps(scan.operand(0)->shape().dimension(dimension)) {}

  int64_t dimension, inputs, outputs, steps;
};

}  // namespace hlorun::passes::spmd
