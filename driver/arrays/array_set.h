// Sets of arrays on disk: inputs, outputs and expected outputs of a module.
#pragma once

#include <string>
#include <vector>

#include "driver/arrays/array_slot.h"
#include "hlo/atomic_file.h"
#include "hlo/literal.h"

namespace hlorun {

// Reads an array for each slot from a directory of 0.npy, 1.npy ..., one .npy (a single slot), or an .npz by name (HLO
// name, op_name, or op_name as a dotted path: params.dense.kernel), else by position. `what` ("input", "expected
// output") is for messages. Throws Error naming the array and everything about it that does not fit.
std::vector<hlo::Literal> LoadArrays(const std::string& path, const std::vector<ArraySlot>& slots,
                                     const std::string& what);

// Writes DIR/0.npy ... or, when the path ends in .npz, one file with the same names; files.Commit() lets them appear.
void StageArrays(AtomicFiles& files, const std::string& path, const std::vector<hlo::Literal>& arrays);
void SaveArrays(const std::string& path, const std::vector<hlo::Literal>& arrays);

// "params['dense']['kernel'][0]" -> "params.dense.kernel.0"
std::string DottedPath(const std::string& op_name);

}  // namespace hlorun
