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

// Writes DIR/module_0000.NAME.FILE; makes the folder. Characters that file names cannot hold become '_'. Does nothing
// when options.dump_to is empty. Throws Error when the file cannot be written.
void DumpText(const CompileOptions& options, std::string_view module_name, int64_t module_number, std::string_view file,
              std::string_view text);

// The module as DIR/module_0000.NAME.STAGE.txt.
void DumpModule(const CompileOptions& options, const hlo::Module& module, int64_t module_number,
                std::string_view stage);

// Dumps after each pass that changed the module and whose name matches options.dump_pass_re; empty when there is none.
// Throws Error when the expression is malformed.
Pipeline::Observer DumpingObserver(const CompileOptions& options, int64_t module_number);

}  // namespace hlorun::passes
