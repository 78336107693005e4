// --reference and --debug_nans: looking into a run, with the evaluator as oracle.
#pragma once

#include <string>
#include <vector>

#include "driver/arrays/compare.h"
#include "hlo/module.h"
#include "hlorun/hlorun.h"

namespace hlorun::cli {

// The evaluator's results, flattened.
std::vector<hlo::Literal> ReferenceResults(const hlo::Module& module, const std::vector<hlo::Literal>& leaves,
                                           const CompileOptions& options);

// Compiles the module once more with every array of the entry computation as a result, runs it and compares each with
// the evaluator, in execution order. Returns one line naming the first that diverges with its source, or "".
std::string FirstDivergence(const hlo::Module& module, const std::vector<hlo::Literal>& leaves, Client& client,
                            const CompileOptions& options, const Tolerance& tolerance);

// --debug_nans: the same run, looking for the first array that holds a NaN. Returns one line naming it, or "".
std::string FirstNan(const hlo::Module& module, const std::vector<hlo::Literal>& leaves, Client& client,
                     const CompileOptions& options);

}  // namespace hlorun::cli
