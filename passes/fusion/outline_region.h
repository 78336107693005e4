// Kernels, loops and branches of a computation become one instruction that runs them.
#pragma once

#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

// Replaces `members` (operands before users; nothing that depends on one of them and is not among them may be needed by
// another) by a fusion of kind kCustom whose computation they are, with `config` (hero.h) as its backend_config, and
// called `name`.
// Tuples that members make leave as their leaves. Its metadata are those of the first loop or branch among them, else
// of the last member. Returns the fusion, which stands last.
hlo::Instruction* OutlineRegion(hlo::Computation& computation, const std::vector<hlo::Instruction*>& members,
                                const char* config, const char* name = "region");

}  // namespace hlorun::passes
