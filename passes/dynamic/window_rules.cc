// Lowering of convolutions and windows: padding becomes what the window's own padding is.
#include "hlo/comparator.h"
#include "hlo/error.h"
#include "passes/dynamic/op_lowering.h"
#include "passes/expand/reducer_identity.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

SizedValue LowerConvolution(OpLowering& at) {
  const auto& conv = at.op.As<hlo::attr::Convolution>();
  const hlo::attr::ConvolutionDimensions& n = conv.dimensions;
  const SizedValue &input = at.operand(0), &kernel = at.operand(1);
  std::vector<Instruction*> operands = at.Values();
  const auto mask = [&](size_t operand, int64_t d, Instruction* size) {
    const hlo::ElementType type = at.OperandShape(static_cast<int64_t>(operand)).element_type();
    operands[operand] = at.MaskDimension(operands[operand], d, size, at.Zero(type));
  };
  std::vector<Instruction*> sizes(static_cast<size_t>(at.op.shape().rank()), nullptr);
  for (size_t i = 0; i < n.input_spatial.size(); ++i) {
    if (kernel.size(n.kernel_spatial[i]) != nullptr) at.Refuse("with a kernel of dynamic spatial size has no rule");
    Instruction* size = input.size(n.input_spatial[i]);
    if (size == nullptr) continue;
    mask(0, n.input_spatial[i], size);
    sizes[static_cast<size_t>(n.output_spatial[i])] = at.Windowed(size, conv.window[i]);
  }
  if (Instruction* features = at.Unify(input.size(n.input_feature), kernel.size(n.kernel_input_feature))) {
    if (conv.feature_group_count > 1) at.Refuse("in groups of a dynamic number of features has no rule");
    mask(0, n.input_feature, features);
    mask(1, n.kernel_input_feature, features);
  }
  if (Instruction* batch = input.size(n.input_batch)) {
    if (conv.batch_group_count > 1) at.Refuse("in groups of a dynamic batch has no rule");
    sizes[static_cast<size_t>(n.output_batch)] = batch;
  }
  if (Instruction* features = kernel.size(n.kernel_output_feature)) {
    if (conv.feature_group_count > 1 || conv.batch_group_count > 1)
      at.Refuse("in groups of a dynamic number of features has no rule");
    sizes[static_cast<size_t>(n.output_feature)] = features;
  }
  return {at.Clone(std::move(operands)), sizes, {}};
}

SizedValue LowerReduceWindow(OpLowering& at) {
  const hlo::Window& window = at.op.As<hlo::attr::Windowed>().window;
  const int64_t count = at.operand_count() / 2;
  std::vector<Instruction*> operands = at.Values();
  std::vector<Instruction*> sizes;
  for (size_t d = 0; d < window.size(); ++d) {
    Instruction* size = nullptr;
    for (int64_t i = 0; i < count; ++i) size = at.Unify(size, at.operand(i).sizes[d]);
    sizes.push_back(size == nullptr ? nullptr : at.Windowed(size, window[d]));
    // Windows that end within the array end within its size as well, and read nothing beyond it.
    if (size == nullptr || window[d] == hlo::WindowDimension{} || window[d].padding_high <= 0) continue;
    for (int64_t i = 0; i < count; ++i) {
      // A reducer of its own gets its initial value, as the window's padding does.
      const std::optional<hlo::Literal> identity = ReducerIdentity(*at.op.called(), at.OperandShape(i).element_type());
      Instruction* fill = identity ? at.build.Constant(*identity) : at.operand(count + i).value;
      operands[static_cast<size_t>(i)] =
          at.MaskDimension(operands[static_cast<size_t>(i)], static_cast<int64_t>(d), size, fill);
    }
  }
  return at.FromLeaves(at.Clone(std::move(operands)),
                       std::vector<std::vector<Instruction*>>(static_cast<size_t>(count), sizes));
}

SizedValue LowerSelectAndScatter(OpLowering& at) {
  const hlo::Window& window = at.op.As<hlo::attr::Windowed>().window;
  const std::optional<hlo::ComparisonDirection> direction = hlo::DirectionOf(*at.op.called(0));
  std::vector<Instruction*> operands = at.Values();
  // Windows without a source of their own add what changes nothing; of scatters that are no single op nothing better
  // than the initial value is known.
  const std::optional<hlo::Literal> identity = ReducerIdentity(*at.op.called(1), at.OperandShape(1).element_type());
  Instruction* nothing = identity ? at.build.Constant(*identity) : operands[2];
  std::vector<Instruction*> sizes(window.size(), nullptr);
  for (size_t d = 0; d < window.size(); ++d) {
    Instruction* size = at.operand(0).sizes[d];
    sizes[d] = size;
    if (size == nullptr && at.operand(1).sizes[d] == nullptr) continue;
    if (window[d] == hlo::WindowDimension{}) {
      sizes[d] = at.Unify(size, at.operand(1).sizes[d]);
      continue;
    }
    if (!direction) at.Refuse("with a selection that is no comparison has no rule for dynamic dimensions");
    const bool largest = *direction == hlo::ComparisonDirection::kGe || *direction == hlo::ComparisonDirection::kGt;
    const hlo::ElementType type = at.OperandShape(0).element_type();
    Instruction* least = at.build.Constant(ReducerIdentity(largest ? Opcode::kMaximum : Opcode::kMinimum, type));
    const auto along = static_cast<int64_t>(d);
    if (size != nullptr) operands[0] = at.MaskDimension(operands[0], along, size, least);
    Instruction* windows = at.operand(1).sizes[d] != nullptr ? at.operand(1).sizes[d] : at.Windowed(size, window[d]);
    operands[1] = at.MaskDimension(operands[1], along, windows, nothing);
  }
  return {at.Clone(std::move(operands)), sizes, {}};
}

}  // namespace hlorun::passes
