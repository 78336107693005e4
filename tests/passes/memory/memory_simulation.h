// Runs a scheduled, assigned module as the device would: each instruction reads its operands' slices and writes its
// results' slices, in host memory, with the evaluator as the only kernel.
#pragma once

#include <span>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::passes {

// Result leaves. Memory starts as garbage; scratch is overwritten with garbage while its instruction runs.
std::vector<hlo::Literal> Simulate(const hlo::Module& module, const BufferAssignment& buffers,
                                   std::span<const hlo::Literal> arguments);

}  // namespace hlorun::passes
