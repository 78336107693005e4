// StableHLO to HLO text, by jaxlib in a python3 of its own process.
#pragma once

#include <string>

namespace hlorun::hlo {

// `bytes` is StableHLO text or bytecode, `converter` the script's path or empty (see ReadOptions). Throws Error with
// the command that would do the conversion by hand when there is no script, no python3 or no jaxlib.
std::string ConvertStableHlo(const std::string& bytes, const std::string& file_name, const std::string& converter);

}  // namespace hlorun::hlo
