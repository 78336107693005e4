// Tells the binary forms of HLO apart without parsing them.
#pragma once

#include <string_view>

namespace hlorun::hlo {

enum class WireKind { kUnknown, kModule, kHlo, kSnapshot };

// By content: a module has a computation whose first instruction has an opcode that HLO has; the other two wrap it.
// The bytes may be cut off behind that instruction. Never throws.
WireKind SniffWire(std::string_view bytes);

}  // namespace hlorun::hlo
