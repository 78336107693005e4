// HLO text -> Module.
//
// Accepts what XLA prints (before and after its optimisation, scheduled, with fusions) and the short forms that XLA's
// own tests use: no entry_computation_layout, no shapes on operands, no '%', a bare instruction list as the entry.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"

namespace hlorun::hlo {

struct ModuleSource;

struct ParseOptions {
  std::string file_name = "<text>";  // for messages
  // Fill "{...}" constants as XLA does, with one running 32-bit pattern 0, 1, 2 ... across the constants of the module;
  // otherwise such a constant is an error that names the exporter's flag that keeps large constants.
  bool fill_elided = false;
  ModuleSource* source = nullptr;  // filled when set: the line of each instruction
};

// Throws Error with file, line, column, the line and a caret, and what was expected.
std::unique_ptr<Module> ParseModule(std::string_view text, const ParseOptions& options = {});

// All modules in the text, one after another ("HloModule" starts each).
std::vector<std::unique_ptr<Module>> ParseModules(std::string_view text, const ParseOptions& options = {});

// "f32[2,3]{1,0}", "(s32[], pred[4])".
Shape ParseShape(std::string_view text);
// "{devices=[2,1]<=[2]}"
Sharding ParseSharding(std::string_view text);
// "{{0,1},{2,3}}" or "[2,4]<=[8]"
ReplicaGroups ParseReplicaGroups(std::string_view text);

}  // namespace hlorun::hlo
