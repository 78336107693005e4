// A parameter or result of a module, as messages and file names know it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "hlo/shape.h"

namespace hlorun {

// One array that a module wants or makes.
struct ArraySlot {
  int64_t index = 0;    // in flattened order
  std::string name;     // HLO name
  std::string op_name;  // metadata, may be empty: "params['dense']['kernel']"
  hlo::Shape shape;
  std::string Describe() const;  // "parameter 3 (%Arg_3.1, params['w']) f32[4,5]"
};

// Of arrays without names.
std::vector<ArraySlot> SlotsOf(const std::vector<hlo::Shape>& shapes);
// Of a module's flattened parameters.
std::vector<ArraySlot> ParameterSlots(const hlo::Module& module);

}  // namespace hlorun
