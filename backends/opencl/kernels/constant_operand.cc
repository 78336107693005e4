#include "backends/opencl/kernels/constant_operand.h"

#include <algorithm>
#include <span>

#include "hlo/module.h"

namespace hlorun::opencl {
namespace {

// Weights are a few steps away from what they are made of: transposed, scaled, converted.
constexpr int kMostSteps = 8;

// The first leaf of a parameter of the entry; an element of a tuple counts from there.
int64_t FirstLeaf(const hlo::Instruction& parameter) {
  int64_t leaf = 0;
  for (const hlo::Instruction* before : parameter.parent()->parameters()) {
    if (before->parameter_number() < parameter.parameter_number()) leaf += hlo::LeafCount(before->shape());
  }
  return leaf;
}

bool IsSame(const hlo::Instruction& value, const CompileOptions& options, int steps) {
  if (value.IsConstant()) return true;
  const auto is_constant_leaf = [&](int64_t leaf) {
    return std::find(options.constant_parameters.begin(), options.constant_parameters.end(), leaf) !=
           options.constant_parameters.end();
  };
  if (value.Is(hlo::Opcode::kParameter)) return value.shape().IsArray() && is_constant_leaf(FirstLeaf(value));
  if (value.Is(hlo::Opcode::kGetTupleElement)) {
    const hlo::Instruction& tuple = *value.operand(0);
    if (!tuple.Is(hlo::Opcode::kParameter)) return false;
    const int64_t element = value.tuple_index();
    return value.shape().IsArray() &&
           is_constant_leaf(FirstLeaf(tuple) + hlo::LeafNumber(tuple.shape(), std::span(&element, 1)));
  }
  const bool is_computed = value.Is(hlo::Opcode::kFusion) || value.Is(hlo::Opcode::kBitcast) ||
                           value.Is(hlo::Opcode::kTranspose) || value.Is(hlo::Opcode::kConvert) ||
                           value.Is(hlo::Opcode::kReshape);
  return is_computed && steps > 0 && value.operand_count() > 0 &&
         std::all_of(value.operands().begin(), value.operands().end(),
                     [&](const hlo::Instruction* operand) { return IsSame(*operand, options, steps - 1); });
}

}  // namespace

bool IsSameInEveryRun(const hlo::Instruction& value, const CompileOptions& options) {
  const hlo::Module* module = value.module();
  return module != nullptr && value.parent() == module->entry() && IsSame(value, options, kMostSteps);
}

}  // namespace hlorun::opencl
