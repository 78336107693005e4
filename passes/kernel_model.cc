#include "passes/kernel_model.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/computation.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/side_by_side.h"
#include "passes/fusion/updated_part.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether every way from `parameter` leads to `root` and keeps places. No other result of the fusion may read it: one
// might be stored before the other has read.
bool OnlyReadInPlace(const Instruction* parameter, const Instruction* root) {
  std::vector<const Instruction*> work = {parameter};
  std::unordered_set<const Instruction*> seen = {parameter};
  while (!work.empty()) {
    const Instruction* from = work.back();
    work.pop_back();
    for (const Instruction* user : from->users()) {
      if (from == root) {
        if (!user->Is(Opcode::kTuple)) return false;
        continue;
      }
      if (!ReadsSamePlace(*user, *from)) return false;
      if (seen.insert(user).second) work.push_back(user);
    }
    if (from != root && (from->users().empty() || from->IsRoot())) return false;
  }
  return true;
}

bool FusionMayShare(const Instruction& fusion, int64_t operand, int64_t result_leaf) {
  const Instruction* root = fusion.called()->root();
  if (root->Is(Opcode::kTuple)) root = root->operand(result_leaf);
  const Instruction* parameter = fusion.called()->parameter(operand);
  return root->Is(Opcode::kDynamicUpdateSlice) ? OnlyUpdatedPartIsRead(*parameter, *root)
                                               : OnlyReadInPlace(parameter, root);
}

}  // namespace

bool AliasesOperand(const Instruction& instruction, int64_t operand, int64_t result_leaf) {
  if (!instruction.Is(Opcode::kCustomCall) || !instruction.operand(operand)->shape().IsArray()) return false;
  const auto& operands = instruction.operands();
  if (std::count(operands.begin(), operands.end(), instruction.operand(operand)) > 1) return false;
  const auto& aliases = instruction.As<hlo::attr::CustomCall>().output_operand_aliasing;
  return std::any_of(aliases.begin(), aliases.end(), [&](const auto& alias) {
    return alias.second.first == operand && hlo::LeafNumber(instruction.shape(), alias.first) == result_leaf;
  });
}

bool GenericKernelModel::MayShareBuffer(const Instruction& instruction, int64_t operand, int64_t result_leaf) const {
  if (HeroOf(instruction).kind == KernelKind::kSideBySide)
    return MayShareBesideOthers(instruction, operand, result_leaf, *this);
  const auto leaves = hlo::FlattenShape(instruction.shape());
  const hlo::Shape& result = leaves[static_cast<size_t>(result_leaf)];
  if (instruction.operand(operand)->shape().ByteSize() != result.ByteSize()) return false;
  switch (instruction.opcode()) {
    case Opcode::kFusion: return FusionMayShare(instruction, operand, result_leaf);
    case Opcode::kCustomCall: return AliasesOperand(instruction, operand, result_leaf);
    case Opcode::kDynamicUpdateSlice: return operand == 0;
    case Opcode::kScatter: return operand == result_leaf;  // operands come first, one for each result
    case Opcode::kAllReduce: return operand == result_leaf;
    default: return ReadsSamePlace(instruction, *instruction.operand(operand));
  }
}

}  // namespace hlorun::passes
