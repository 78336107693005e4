// One elementwise instruction made ready to run on lanes: the kernel, and the widening of narrow types around it.
#pragma once

#include <optional>
#include <span>

#include "hlo/evaluator/lanes/lane_kernels.h"

namespace hlorun::hlo {

class LaneOp {
 public:
  // nullopt when the instruction is not elementwise or has no meaning for its types. The instruction must outlive it.
  // With `widened`, operands and results of narrow floating types are held in f32 and not rounded.
  static std::optional<LaneOp> For(const Instruction& instruction, bool widened = false);
  static LaneOp Convert(ElementType from, ElementType to);

  // Operand i is count elements of the instruction's i-th operand's type, the result of its own type, as literals store
  // them. The result overlaps no operand, unless it starts where an operand of the same type does.
  void Run(std::span<const void* const> operands, void* result, int64_t count) const;

 private:
  LaneKernel kernel_ = nullptr;  // null: the result's bytes are the operand's
  LaneCall call_;
  int operand_count_ = 0;
  ElementType operand_types_[3] = {};
  ElementType result_type_ = ElementType::kInvalid;
  bool converts_ = false;   // some operand or the result is a narrow float, or the result a narrow integer
  bool saturates_ = false;  // to a narrow integer from a float
};

// The type in which XLA:CPU computes on `type`: f32 for narrower floats, 8 bits for narrower integers.
ElementType ComputingType(ElementType type);
inline bool IsNarrowFloat(ElementType type) { return IsFloating(type) && BitsOf(type) < 32; }

// Between a narrow floating type and f32.
void WidenToFloat(ElementType type, const void* from, float* to, int64_t count);
void NarrowFromFloat(ElementType type, const float* from, void* to, int64_t count);

// `count` elements as the convert op converts them.
void ConvertElements(ElementType from_type, const void* from, ElementType to_type, void* to, int64_t count);
// The literal with its elements converted; itself when it has the type already.
Literal ConvertedTo(const Literal& literal, ElementType type);

}  // namespace hlorun::hlo
