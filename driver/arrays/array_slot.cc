#include "driver/arrays/array_slot.h"

#include <fmt/format.h>

namespace hlorun {

std::string ArraySlot::Describe() const {
  std::string names;
  if (!name.empty()) names = "%" + name;
  if (!op_name.empty()) names += (names.empty() ? "" : ", ") + op_name;
  return fmt::format("{}{} {}", index, names.empty() ? "" : " (" + names + ")", shape.ToString(false));
}

std::vector<ArraySlot> SlotsOf(const std::vector<hlo::Shape>& shapes) {
  std::vector<ArraySlot> slots;
  for (const hlo::Shape& shape : shapes) slots.push_back({static_cast<int64_t>(slots.size()), "", "", shape});
  return slots;
}

std::vector<ArraySlot> ParameterSlots(const hlo::Module& module) {
  std::vector<ArraySlot> slots;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    for (const hlo::Shape& leaf : hlo::FlattenShape(parameter->shape())) {
      slots.push_back({static_cast<int64_t>(slots.size()), parameter->name(), parameter->metadata.op_name, leaf});
    }
  }
  return slots;
}

}  // namespace hlorun
