// Binary HloModuleProto, HloProto and HloSnapshot <-> Module. Field numbers are XLA's (hlo.proto, xla_data.proto).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"

namespace hlorun::hlo {

// True when the bytes look like one of the three messages. Cheap; never throws.
bool LooksLikeHloProto(std::string_view bytes);

// Which of the three it is is found by content. `file_name` is for messages. Throws Error on garbage.
std::unique_ptr<Module> ModuleFromProto(std::string_view bytes, const std::string& file_name);
// Arguments stored in an HloSnapshot; empty for the other messages.
std::vector<Literal> ArgumentsFromSnapshot(std::string_view bytes);

std::string ModuleToProto(const Module& module);  // a serialised HloModuleProto

}  // namespace hlorun::hlo
