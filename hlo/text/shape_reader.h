// Shapes, shardings and device groups from text; their printers are members of the types, or in attribute_writer.cc.
#pragma once

#include "hlo/attributes.h"
#include "hlo/shape.h"
#include "hlo/sharding.h"
#include "hlo/text/lexer.h"

namespace hlorun::hlo {

// True when a shape starts at the current token ("f32[" or "(").
bool AtShape(const Lexer& lexer);
Shape ReadShape(Lexer& lexer);
// "(f32[2]{0}, s32[])->f32[2]{0}"
ProgramShape ReadProgramShape(Lexer& lexer);
Sharding ReadSharding(Lexer& lexer);
ReplicaGroups ReadReplicaGroups(Lexer& lexer);

// "{1,2,3}"; `open` and `close` may be other brackets.
std::vector<int64_t> ReadInts(Lexer& lexer, std::string_view what, char open = '{', char close = '}');

}  // namespace hlorun::hlo
