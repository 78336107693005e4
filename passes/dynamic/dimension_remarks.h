// What --explain says of dimensions whose size varies: which kernels end at the size, which work up to the bound, and
// why.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "passes/dynamic/signature.h"
#include "passes/remark.h"

namespace hlorun::passes {

// Of executed instructions, for each leaf and dimension: why all of it is needed; empty where it is not.
using WholeDimensions = std::unordered_map<const hlo::Instruction*, std::vector<std::vector<std::string>>>;

// One remark for each varying dimension of a parameter, one for each dimension of a kernel's result that stays padded.
// Expects extents to be attached (extents.h).
void ExplainDimensions(const hlo::Module& module, const SizeSignature& signature, const WholeDimensions& whole,
                       std::vector<Remark>& remarks);

}  // namespace hlorun::passes
