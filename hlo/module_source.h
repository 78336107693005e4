// Where a module's parts stand in the file that it was read from. Valid while the module is as it was read.
#pragma once

#include <string>
#include <unordered_map>

#include "hlo/error.h"

namespace hlorun::hlo {

class Instruction;

struct ModuleSource {
  std::string file;
  std::unordered_map<const Instruction*, int> lines;  // from 1; of those that the reader knows

  SourceLocation PlaceOf(const Instruction* instruction) const {
    const auto line = lines.find(instruction);
    return {file, line != lines.end() ? line->second : 0, 0, ""};
  }
};

}  // namespace hlorun::hlo
