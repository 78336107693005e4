// Which devices a collective's groups may name: part of the verifier.
#pragma once

#include "hlo/module.h"

namespace hlorun::hlo {

// Throws Error when the groups or pairs of a collective instruction do not fit the module's replicas and partitions.
// Other instructions pass.
void CheckCollective(const Instruction& instruction, const Module& module);

}  // namespace hlorun::hlo
