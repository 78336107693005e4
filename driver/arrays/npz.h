// NumPy's .npz: a zip of .npy files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "driver/arrays/npy.h"

namespace hlorun {

// Entries in file order, names without ".npy". Throws Error naming the path.
std::vector<std::pair<std::string, NpyArray>> ReadNpz(const std::string& path);

// Writes literals under their names to `path` itself (the caller gives a temporary name). Throws Error.
void WriteNpz(const std::string& path, const std::vector<std::pair<std::string, hlo::Literal>>& arrays);

}  // namespace hlorun
