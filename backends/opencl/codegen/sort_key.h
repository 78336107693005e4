// Comparisons that order a sort's elements by a key: which operand, what is computed of it, which way.
//
// JAX's comparators map NaN and zeros to one representative each and compare in total order; then the key is a function
// of one operand's element, and equal keys mean equal elements to the comparison. Others (partial orders of floats) are
// not of this form.
#pragma once

#include <optional>

#include "backends/opencl/codegen/fused_values.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

class SortKey {
 public:
  // What a partial order of floats is taken for. In it NaN equals everything: no key says that, and where there are
  // NaNs it orders nothing. With kAnyPlace it is a key whose zeros are equal and whose NaNs are equal and the greatest.
  enum class Nan : uint8_t { kNoKey, kAnyPlace };
  static std::optional<SortKey> Of(const hlo::Instruction& comparison, Nan nan = Nan::kNoKey);

  // The operand of the sort that the key is computed of.
  int64_t operand() const { return operand_; }
  // 8, 16, 32 or 64.
  int bits() const { return bits_; }
  // The key of an element, as an unsigned number of max(bits(), 32) bits: what sorts first is least.
  ir::Expr Bits(FusedValues& values, const Value& element) const;

 private:
  SortKey(const hlo::Instruction* parameter, const hlo::Instruction* key, bool descending, bool is_partial);

  const hlo::Instruction* parameter_;  // of the comparator: the element
  const hlo::Instruction* key_;        // what is computed of it
  int64_t operand_;
  int bits_;
  bool descending_;
  bool is_partial_;
};

// The bits of `value`, of real type `type`, as an unsigned number of at least 32 bits whose order is the type's
// (floats: total order). Such numbers need OrderedBits(type) bits.
ir::Expr ToOrderedBits(const ir::Expr& value, hlo::ElementType type, Body& body);
int OrderedBits(hlo::ElementType type);

// Elements of at most 32 bits as a u32, and back.
bool FitsPayload(hlo::ElementType type);
int PayloadBits(hlo::ElementType type);
ir::Expr ToPayload(const ir::Expr& value, hlo::ElementType type);
ir::Expr FromPayload(const ir::Expr& payload, hlo::ElementType type);

}  // namespace hlorun::opencl
