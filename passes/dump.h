// Writes a module's text before and after a pipeline, and after each pass that the options ask for.
//
// File names are XLA's: DIR/module_0000.NAME.before_optimizations.txt, .after_optimizations.txt; after pass number 12
// module_0000.NAME.0012.PASS.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hlo/module.h"
#include "passes/options.h"
#include "passes/pipeline.h"

namespace hlorun::passes {

// The path of a dump; makes the folder. Characters that file names cannot hold become '_'.
std::string DumpPath(const CompileOptions& options, const hlo::Module& module, int64_t module_number,
                     std::string_view stage);

// Does nothing when options.dump_to is empty. Throws Error when the file cannot be written.
void DumpModule(const CompileOptions& options, const hlo::Module& module, int64_t module_number,
                std::string_view stage);

// Dumps after each pass that changed the module and whose name matches options.dump_pass_re; empty when there is none.
// Throws Error when the expression is malformed.
Pipeline::Observer DumpingObserver(const CompileOptions& options, int64_t module_number);

}  // namespace hlorun::passes
