#include "driver/arrays/array_slot.h"

#include <fmt/format.h>

namespace hlorun {

std::string ArraySlot::Describe() const {
  std::string names;
  if (!name.empty()) names = "%" + name;
  if (!op_name.empty()) names += (names.empty() ? "" : ", ") + op_name;
  return fmt::format("{}{} {}", index, names.empty() ? "" : " (" + names + ")", shape.ToString(false));
}

}  // namespace hlorun
