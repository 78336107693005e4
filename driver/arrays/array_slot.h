// A parameter or result of a module, as messages and file names know it.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace hlorun
