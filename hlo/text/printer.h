// Module -> HLO text, in XLA's own format. Print, parse, print is the identity.
#pragma once

#include <string>

#include "hlo/module.h"

namespace hlorun::hlo {

struct PrintOptions {
  // Constants of more elements print as "{...}"; negative: never elided.
  int64_t elide_constants_above = -1;
  bool metadata = true;
  bool backend_config = true;
  bool operand_shapes = false;
  // Names replaced by position and everything without meaning left out: equal text means equal programs.
  bool canonical = false;
};

std::string PrintModule(const Module& module, const PrintOptions& options = {});
std::string PrintComputation(const Computation& computation, const PrintOptions& options = {});
std::string PrintInstruction(const Instruction& instruction, const PrintOptions& options = {});
// The constant's value as text prints it: "{ {1, 2}, {3, 4} }", with round-trip digits.
std::string PrintLiteral(const Literal& literal);

}  // namespace hlorun::hlo
