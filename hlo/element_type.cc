#include "hlo/element_type.h"

#include <array>

namespace hlorun::hlo {
namespace {

struct Row {
  std::string_view name = "invalid";
  int bits = 0;
  TypeClass cls = TypeClass::kNone;
};

constexpr std::array<Row, 40> MakeTable() {
  std::array<Row, 40> table{};
#define HLO_TYPE_ROW(enumerator, name, value, bits, cls) table[value] = Row{name, bits, TypeClass::cls};
  HLO_ELEMENT_TYPES(HLO_TYPE_ROW)
#undef HLO_TYPE_ROW
  return table;
}

constexpr std::array<Row, 40> kTable = MakeTable();

const Row& RowOf(ElementType type) { return kTable[static_cast<size_t>(type)]; }

}  // namespace

std::string_view ElementTypeName(ElementType type) { return RowOf(type).name; }

std::optional<ElementType> ElementTypeFromName(std::string_view name) {
  for (size_t i = 1; i < kTable.size(); ++i) {
    if (kTable[i].name == name && kTable[i].name != "invalid" && kTable[i].name != "tuple") {
      return static_cast<ElementType>(i);
    }
  }
  return std::nullopt;
}

TypeClass ClassOf(ElementType type) { return RowOf(type).cls; }
int BitsOf(ElementType type) { return RowOf(type).bits; }
int BytesOf(ElementType type) { return (RowOf(type).bits + 7) / 8; }

ElementType RealOf(ElementType type) {
  if (type == ElementType::kC64) return ElementType::kF32;
  if (type == ElementType::kC128) return ElementType::kF64;
  return type;
}

}  // namespace hlorun::hlo
