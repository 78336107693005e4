#include "driver/arrays/bound_module.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "driver/arrays/array_slot.h"
#include "driver/arrays/bounds.h"
#include "hlo/error.h"
#include "passes/dynamic/bound_parameters.h"

namespace hlorun {
namespace {

constexpr const char* kSymbols = "hlorun.symbols";

using Sizes = std::vector<passes::NewSize>;

// "NAME=N": all dimensions of that name; none where there is no such name.
Sizes ByName(const std::string& text, const std::vector<DimensionName>& names) {
  const size_t equals = std::min(text.find('='), text.size());
  Sizes sizes;
  for (const DimensionName& name : names) {
    if (text.compare(0, equals, name.name) == 0) sizes.push_back({{name.leaf, name.dimension}, 0});
  }
  if (sizes.empty()) return sizes;
  int64_t bound = 0;
  const char* end = text.data() + text.size();
  if (equals == text.size() || std::from_chars(text.data() + equals + 1, end, bound).ptr != end || bound < 1) {
    Invalid("--bound={}: expected a number above 0 after '='", text);
  }
  for (passes::NewSize& size : sizes) size.size = bound;
  return sizes;
}

passes::NewSize ByParameter(const std::string& text, const std::vector<ArraySlot>& slots,
                            const std::vector<DimensionName>& names) {
  if (text.find(':') == std::string::npos && !names.empty()) {
    std::string known;
    for (const DimensionName& name : names) known += (known.empty() ? "" : ", ") + name.name;
    Invalid("--bound={}: the module's dimensions are called {}", text, known);
  }
  const DimensionSetting setting = ParseDimensionSetting("bound", text);
  return {{static_cast<int64_t>(SlotOf("bound", setting, slots)), setting.dimension}, setting.value};
}

}  // namespace

std::vector<DimensionName> DimensionNames(const hlo::Module& module) {
  std::vector<DimensionName> names;
  const auto found = module.frontend_attributes.find(kSymbols);
  if (found == module.frontend_attributes.end()) return names;
  const std::vector<ArraySlot> slots = ParameterSlots(module);
  std::stringstream list(found->second);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t first = item.find(':');
    DimensionName name{item.substr(0, first), 0, 0};
    char between = 0;
    std::stringstream numbers(first == std::string::npos ? "" : item.substr(first + 1));
    const bool reads = (numbers >> name.leaf >> between >> name.dimension) && between == ':';
    const bool exists = reads && name.leaf >= 0 && name.leaf < static_cast<int64_t>(slots.size()) &&
                        name.dimension >= 0 && name.dimension < slots[static_cast<size_t>(name.leaf)].shape.rank();
    if (!exists) {
      Invalid("the module's attribute {} is \"{}\": \"{}\" names no dimension of its parameters (NAME:LEAF:DIMENSION)",
              kSymbols, found->second, item);
    }
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<passes::NewSize> BoundsOf(const hlo::Module& module, const std::vector<std::string>& settings) {
  const std::vector<ArraySlot> slots = ParameterSlots(module);
  const std::vector<DimensionName> names = DimensionNames(module);
  Sizes sizes;
  for (const std::string& text : settings) {
    const Sizes named = ByName(text, names);
    if (named.empty()) {
      sizes.push_back(ByParameter(text, slots, names));
    } else {
      sizes.insert(sizes.end(), named.begin(), named.end());
    }
  }
  return sizes;
}

void BoundModule(hlo::Module& module, const std::vector<std::string>& settings) {
  BoundDimensions(module, BoundsOf(module, settings));
}

void BoundDimensions(hlo::Module& module, const std::vector<passes::NewSize>& bounds) {
  if (bounds.empty()) return;
  passes::PrepareForSizes(module);
  passes::ResizeParameters(module, bounds);
  std::vector<passes::DimensionOfLeaf> dimensions;
  for (const passes::NewSize& bound : bounds) dimensions.push_back(bound.dimension);
  passes::CheckParametersMeet(module, dimensions);
  passes::BoundParameters(module, dimensions);
}

}  // namespace hlorun
