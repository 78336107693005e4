// What a lowering rule sees of one instruction, and the steps that rules share: size arithmetic, masks, clones.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/dynamic/sized_value.h"

namespace hlorun::passes {

// The shape with every bound as a static size.
hlo::Shape StaticShape(const hlo::Shape& shape);

// Two sizes of one dimension that turn out to be different instructions; returns the one to use.
using SizeUnifier = std::function<hlo::Instruction*(hlo::Builder&, hlo::Instruction*, hlo::Instruction*)>;

class OpLowering {
 public:
  OpLowering(const hlo::Instruction& op, std::span<SizedValue* const> operands, hlo::Computation* into,
             const SizeUnifier& unify)
      : op(op), build(into, &op), operands_(operands), unify_(unify) {}

  const hlo::Instruction& op;
  hlo::Builder build;

  const SizedValue& operand(int64_t i) const { return *operands_[static_cast<size_t>(i)]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  const hlo::Shape& OperandShape(int64_t i) const { return op.operand(i)->shape(); }
  bool AnySized() const;
  bool AnySized(int64_t first, int64_t end) const;

  // The instruction itself, of static shape, over these operands (default: the operands' values).
  hlo::Instruction* Clone();
  hlo::Instruction* Clone(std::vector<hlo::Instruction*> operands);
  hlo::Instruction* Clone(const hlo::Shape& shape, std::vector<hlo::Instruction*> operands);
  std::vector<hlo::Instruction*> Values() const;
  // An array of the result's rank with no sizes yet.
  SizedValue Unsized(hlo::Instruction* value) const;
  // One array for each element of the result, or the result itself where it is one.
  SizedValue FromLeaves(hlo::Instruction* value, const std::vector<std::vector<hlo::Instruction*>>& sizes);

  // --- sizes: s32[] ---
  hlo::Instruction* Int(int64_t value) { return build.ScalarConstant(hlo::ElementType::kS32, value); }
  hlo::Instruction* Add(hlo::Instruction* x, hlo::Instruction* y) { return build.Binary(hlo::Opcode::kAdd, x, y); }
  hlo::Instruction* AddInt(hlo::Instruction* x, int64_t y) { return y == 0 ? x : Add(x, Int(y)); }
  hlo::Instruction* Subtract(hlo::Instruction* x, hlo::Instruction* y) {
    return build.Binary(hlo::Opcode::kSubtract, x, y);
  }
  hlo::Instruction* Multiply(hlo::Instruction* x, int64_t y) {
    return y == 1 ? x : build.Binary(hlo::Opcode::kMultiply, x, Int(y));
  }
  hlo::Instruction* Divide(hlo::Instruction* x, int64_t y) {
    return y == 1 ? x : build.Binary(hlo::Opcode::kDivide, x, Int(y));
  }
  hlo::Instruction* AtMost(hlo::Instruction* x, int64_t y) { return build.Binary(hlo::Opcode::kMinimum, x, Int(y)); }
  hlo::Instruction* AtLeast(hlo::Instruction* x, int64_t y) { return build.Binary(hlo::Opcode::kMaximum, x, Int(y)); }
  // The same instruction where it is the size of a parameter, whose bound is known to be no more than `high`.
  hlo::Instruction* Clamp(hlo::Instruction* x, int64_t low, int64_t high);
  hlo::Instruction* SizeOrBound(int64_t operand_number, int64_t d);
  // Either may be null.
  hlo::Instruction* Unify(hlo::Instruction* x, hlo::Instruction* y);
  // Outputs of a window over `size` elements.
  hlo::Instruction* Windowed(hlo::Instruction* size, const hlo::WindowDimension& window);

  // --- places ---
  // Of any integer type as s32: one that this does not hold stays outside of every array, on its side.
  hlo::Instruction* AsS32(hlo::Instruction* places);

  // --- masks ---
  // iota(d) < size, over `dimensions`.
  hlo::Instruction* Inside(const hlo::Dims& dimensions, int64_t d, hlo::Instruction* size);
  // x where dimension `d` is inside `size`, else `fill`.
  hlo::Instruction* MaskDimension(hlo::Instruction* x, int64_t d, hlo::Instruction* size, hlo::Instruction* fill);
  hlo::Instruction* Zero(hlo::ElementType type);

  [[noreturn]] void Refuse(const std::string& what) const;

 private:
  std::span<SizedValue* const> operands_;
  const SizeUnifier& unify_;
};

// The rule that lowers `opcode`; null where there is none for sized operands.
using LoweringRule = SizedValue (*)(OpLowering& at);
LoweringRule LoweringRuleOf(hlo::Opcode opcode);

// structure_rules.cc: dimensions stay what they are, or are reduced.
SizedValue LowerElementwise(OpLowering& at);
SizedValue LowerBitcastConvert(OpLowering& at);
SizedValue LowerBroadcast(OpLowering& at);
SizedValue LowerTranspose(OpLowering& at);
SizedValue LowerReduce(OpLowering& at);
SizedValue LowerDot(OpLowering& at);
SizedValue LowerSort(OpLowering& at);
SizedValue LowerGetDimensionSize(OpLowering& at);
SizedValue LowerSetDimensionSize(OpLowering& at);
SizedValue LowerCustomCall(OpLowering& at);
SizedValue LowerBatched(OpLowering& at);
// window_rules.cc
SizedValue LowerConvolution(OpLowering& at);
SizedValue LowerReduceWindow(OpLowering& at);
SizedValue LowerSelectAndScatter(OpLowering& at);
// movement_rules.cc
SizedValue LowerSlice(OpLowering& at);
SizedValue LowerPad(OpLowering& at);
SizedValue LowerReverse(OpLowering& at);
SizedValue LowerConcatenate(OpLowering& at);
SizedValue LowerDynamicSlice(OpLowering& at);
SizedValue LowerDynamicUpdateSlice(OpLowering& at);
// indexed_rules.cc
SizedValue LowerGather(OpLowering& at);
SizedValue LowerScatter(OpLowering& at);
// reshape_rule.cc
SizedValue LowerReshape(OpLowering& at);
SizedValue LowerDynamicReshape(OpLowering& at);

}  // namespace hlorun::passes
