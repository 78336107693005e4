// Custom-calls that only name an elementwise function: what jaxlib leaves of mhlo and chlo ops that had no opcode.
#pragma once

#include <optional>
#include <string_view>

#include "hlo/opcode.h"

namespace hlorun::hlo {

// The opcode that "mhlo.erf" or "chlo.erf" is; nothing for other targets.
std::optional<Opcode> OpcodeNamedBy(std::string_view target);

}  // namespace hlorun::hlo
