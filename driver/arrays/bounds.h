// Arrays of actual size against shapes with bounds.
#pragma once

#include <string>
#include <vector>

#include "driver/arrays/array_slot.h"
#include "hlo/shape.h"

namespace hlorun {

// The bound of a dimension that has none (buckets follow its size).
inline constexpr int64_t kNoBound = int64_t{1} << 30;

// Same type and rank; each dimension as declared, or at most its bound where it is dynamic.
bool FitsBounds(const hlo::Shape& actual, const hlo::Shape& declared);

// Throws Error when a dynamic dimension is larger than its bound: names `what`, the dimension, the bound and the size.
void CheckBounds(const hlo::Shape& actual, const hlo::Shape& declared, const std::string& what);

// A dimension of a parameter, as flags name it: "PARAM:DIM=N". PARAM is a number, an HLO name or an op_name.
struct DimensionSetting {
  std::string parameter;
  int64_t dimension = 0, value = 0;
};
// Throws Error naming `flag` and the text.
DimensionSetting ParseDimensionSetting(const std::string& flag, const std::string& text);
// The slot that a setting names; throws Error naming the flag and the parameters there are.
size_t SlotOf(const std::string& flag, const DimensionSetting& setting, const std::vector<ArraySlot>& slots);

// Static shapes of made-up inputs: bounds, but for what `sizes` (of --size) says. A size that must be equal to one that
// is given is not inferred: say both.
std::vector<hlo::Shape> ActualShapes(const std::vector<ArraySlot>& slots, const std::vector<std::string>& sizes);

}  // namespace hlorun
