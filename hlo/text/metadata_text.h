// metadata={...} of an instruction, and the tables that its stack_frame_id points into.
#pragma once

#include <string>

#include "hlo/instruction.h"
#include "hlo/module.h"
#include "hlo/text/lexer.h"

namespace hlorun::hlo {

Metadata ReadMetadata(Lexer& lexer);
std::string PrintMetadata(const Metadata& metadata);  // with braces; "{}" when there is none

// FileNames, FunctionNames, FileLocations and StackFrames, each a heading and numbered lines. Reads nothing when the
// current token is no such heading.
void ReadStackFrames(Lexer& lexer, StackFrameTables& tables);
std::string PrintStackFrames(const StackFrameTables& tables);

}  // namespace hlorun::hlo
