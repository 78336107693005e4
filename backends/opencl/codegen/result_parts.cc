#include "backends/opencl/codegen/result_parts.h"

#include "hlo/computation.h"
#include "hlo/known_starts.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using passes::KernelKind;

std::vector<ResultPart> PartsOfConcatenate(const Instruction& concatenate) {
  std::vector<ResultPart> parts;
  const std::vector<hlo::Dims> starts = hlo::OperandStarts(concatenate);
  for (int64_t i = 0; i < concatenate.operand_count(); ++i) {
    const Instruction* operand = concatenate.operand(i);
    parts.push_back({.root = operand, .shape = operand->shape(), .starts = starts[static_cast<size_t>(i)]});
  }
  return parts;
}

}  // namespace

std::vector<ResultPart> ResultPartsOf(const Instruction& instruction) {
  const Instruction* root = instruction.Is(Opcode::kFusion) ? instruction.called()->root() : &instruction;
  if (root != &instruction && root->Is(Opcode::kConcatenate)) {
    const KernelKind kind = passes::HeroOf(instruction).kind;
    if (kind == KernelKind::kReduction || kind == KernelKind::kRow) return PartsOfConcatenate(*root);
  }
  std::vector<ResultPart> parts;
  const bool is_tuple = root->Is(Opcode::kTuple);
  hlo::ForEachLeaf(instruction.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    const auto leaf = static_cast<int64_t>(parts.size());
    parts.push_back({.root = is_tuple ? root->operand(leaf) : root,
                     .element = is_tuple ? 0 : static_cast<size_t>(leaf),
                     .shape = shape,
                     .leaf = leaf,
                     .starts = {}});
  });
  return parts;
}

std::vector<hlo::Shape> PartShapesOf(const Instruction& instruction) {
  std::vector<hlo::Shape> shapes;
  for (const ResultPart& part : ResultPartsOf(instruction)) shapes.push_back(part.shape);
  return shapes;
}

}  // namespace hlorun::opencl
