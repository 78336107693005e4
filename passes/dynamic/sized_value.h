// A value of the lowered program: static arrays, and beside them the sizes that dimensions really have.
#pragma once

#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes {

// On a size that the caller gives, the bound of its dimension: it is no more, and not negative.
inline constexpr const char* kMostAttribute = "hlorun.most";

// Sizes are s32[] instructions of the same computation; null where a dimension is always as large as its bound.
struct SizedValue {
  hlo::Instruction* value = nullptr;     // of static shape; null for a tuple that nobody has needed as one yet
  std::vector<hlo::Instruction*> sizes;  // of an array, one a dimension
  std::vector<SizedValue> elements;      // of a tuple

  hlo::Instruction* size(int64_t d) const { return sizes[static_cast<size_t>(d)]; }
  // Whether any dimension of any leaf has a size of its own.
  bool IsSized() const {
    for (const hlo::Instruction* s : sizes) {
      if (s != nullptr) return true;
    }
    for (const SizedValue& e : elements) {
      if (e.IsSized()) return true;
    }
    return false;
  }
};

}  // namespace hlorun::passes
