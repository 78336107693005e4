#include "driver/arrays/bounds.h"

#include <charconv>

#include "hlo/error.h"

namespace hlorun {
namespace {

int64_t Number(const std::string& flag, const std::string& text, std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) {
    Invalid("--{}={}: expected PARAM:DIM=N, such as 0:1=128", flag, text);
  }
  return value;
}

}  // namespace

bool FitsBounds(const hlo::Shape& actual, const hlo::Shape& declared) {
  if (actual.element_type() != declared.element_type() || actual.rank() != declared.rank()) return false;
  for (int64_t d = 0; d < actual.rank(); ++d) {
    const bool dynamic = declared.is_dynamic_dimension(d);
    if (dynamic ? actual.dimension(d) > declared.dimension(d) : actual.dimension(d) != declared.dimension(d))
      return false;
  }
  return true;
}

void CheckBounds(const hlo::Shape& actual, const hlo::Shape& declared, const std::string& what) {
  if (actual.rank() != declared.rank()) return;
  for (int64_t d = 0; d < actual.rank(); ++d) {
    if (!declared.is_dynamic_dimension(d) || actual.dimension(d) <= declared.dimension(d)) continue;
    Invalid("{}: dimension {} has size {}, its bound is {} ({}); use a smaller array, or a module with a larger bound",
            what, d, actual.dimension(d), declared.dimension(d), declared.ToString(false));
  }
}

DimensionSetting ParseDimensionSetting(const std::string& flag, const std::string& text) {
  const size_t equals = text.rfind('='), colon = text.rfind(':', equals);
  if (equals == std::string::npos || colon == std::string::npos || colon == 0) {
    Invalid("--{}={}: expected PARAM:DIM=N, such as 0:1=128", flag, text);
  }
  const std::string_view view = text;
  return {text.substr(0, colon), Number(flag, text, view.substr(colon + 1, equals - colon - 1)),
          Number(flag, text, view.substr(equals + 1))};
}

size_t SlotOf(const std::string& flag, const DimensionSetting& setting, const std::vector<ArraySlot>& slots) {
  std::string known;
  for (size_t i = 0; i < slots.size(); ++i) {
    const ArraySlot& slot = slots[i];
    if (setting.parameter == std::to_string(slot.index) || setting.parameter == slot.name ||
        setting.parameter == slot.op_name) {
      if (setting.dimension >= slot.shape.rank()) {
        Invalid("--{}: parameter {} has no dimension {}", flag, slot.Describe(), setting.dimension);
      }
      return i;
    }
    known += (known.empty() ? "" : "; ") + slot.Describe();
  }
  Invalid("--{}: there is no parameter \"{}\"; there are {}", flag, setting.parameter, known);
}

std::vector<hlo::Shape> ActualShapes(const std::vector<ArraySlot>& slots, const std::vector<std::string>& sizes) {
  std::vector<hlo::Shape> shapes;
  for (const ArraySlot& slot : slots) shapes.emplace_back(slot.shape.element_type(), slot.shape.dimensions());
  for (const std::string& text : sizes) {
    const DimensionSetting setting = ParseDimensionSetting("size", text);
    const size_t i = SlotOf("size", setting, slots);
    if (!slots[i].shape.is_dynamic_dimension(setting.dimension)) {
      Invalid("--size={}: dimension {} of {} is not dynamic", text, setting.dimension, slots[i].Describe());
    }
    shapes[i].mutable_dimensions()[static_cast<size_t>(setting.dimension)] = setting.value;
    CheckBounds(shapes[i], slots[i].shape, "--size=" + text);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int64_t d = 0; d < shapes[i].rank(); ++d) {
      if (!slots[i].shape.is_dynamic_dimension(d) || shapes[i].dimension(d) != kNoBound) continue;
      Invalid("dimension {} of {} has no bound: say the size of made-up inputs by --size={}:{}=N", d,
              slots[i].Describe(), slots[i].index, d);
    }
  }
  return shapes;
}

}  // namespace hlorun
