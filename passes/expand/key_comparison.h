// Comparisons of one key: in a sort's comparator, of the same function of one operand's element on both sides.
#pragma once

#include <optional>

#include "hlo/instruction.h"

namespace hlorun::passes {

// Whether two expressions are the same function of whatever parameters they have.
bool SameFunction(const hlo::Instruction& a, const hlo::Instruction& b);

struct KeyComparison {
  const hlo::Instruction* parameter;  // of the comparator: the element on the left side
  const hlo::Instruction* key;        // the left side, computed of it
  bool begins_with_first;             // the left side is of the element that the sort hands over first

  // The operand of the sort that the key is computed of.
  int64_t operand() const;
  // nullopt where `compare` is no comparison of real numbers, whatever its direction, or none of this form.
  static std::optional<KeyComparison> Of(const hlo::Instruction& compare);
};

// Whether `compare` orders floats partially: NaN is then neither before nor behind anything.
bool IsPartialOrder(const hlo::Instruction& compare);

}  // namespace hlorun::passes
