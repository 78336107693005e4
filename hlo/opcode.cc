#include "hlo/opcode.h"

#include <array>
#include <string>
#include <unordered_map>

namespace hlorun::hlo {
namespace {

constexpr OpcodeInfo kInfos[] = {
#define HLO_OPCODE_INFO(enumerator, name, arity, traits, payload) \
  OpcodeInfo{Opcode::enumerator, name, arity, traits, #payload},
    HLO_OPCODES(HLO_OPCODE_INFO)
#undef HLO_OPCODE_INFO
};

}  // namespace

std::span<const OpcodeInfo> AllOpcodes() { return kInfos; }

const OpcodeInfo& InfoOf(Opcode opcode) { return kInfos[static_cast<size_t>(opcode)]; }

std::optional<Opcode> OpcodeFromName(std::string_view name) {
  static const auto* const kByName = [] {
    auto* map = new std::unordered_map<std::string_view, Opcode>();
    for (const OpcodeInfo& info : kInfos) map->emplace(info.name, info.opcode);
    return map;
  }();
  const auto it = kByName->find(name);
  if (it == kByName->end()) return std::nullopt;
  return it->second;
}

}  // namespace hlorun::hlo
