#include "passes/fusion/updated_part.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "hlo/computation.h"
#include "hlo/elementwise.h"
#include "hlo/known_starts.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether `update` takes `operand` once, as its operand `number`.
bool TakesOnce(const Instruction& update, const Instruction* operand, int64_t number) {
  return std::count(update.operands().begin(), update.operands().end(), operand) == 1 &&
         update.operand(number) == operand;
}

}  // namespace

const Instruction* UpdateAtRoot(const Instruction& instruction) {
  const Instruction* root = instruction.Is(Opcode::kFusion) ? instruction.called()->root() : &instruction;
  return root->Is(Opcode::kDynamicUpdateSlice) ? root : nullptr;
}

const Instruction* UpdatedOperand(const Instruction& instruction) {
  const Instruction* update = UpdateAtRoot(instruction);
  if (update == nullptr) return nullptr;
  const Instruction* array = update->operand(0);
  if (update == &instruction) return array;
  return array->Is(Opcode::kParameter) ? instruction.operand(array->parameter_number()) : nullptr;
}

bool ReadsSamePlace(const Instruction& op, const Instruction& operand) {
  return hlo::IsElementwise(op) && operand.shape().SameDimensions(op.shape());
}

bool SlicesUpdatedPart(const Instruction& slice, const Instruction& update) {
  if (!slice.Is(Opcode::kDynamicSlice) && !slice.Is(Opcode::kSlice)) return false;
  if (slice.operand(0) != update.operand(0)) return false;
  if (!slice.shape().SameDimensions(update.operand(1)->shape())) return false;
  if (slice.Is(Opcode::kSlice)) {
    const auto& s = slice.As<hlo::attr::Slice>();
    return std::all_of(s.strides.begin(), s.strides.end(), [](int64_t stride) { return stride == 1; }) &&
           hlo::KnownStarts(update) == s.starts;
  }
  // Both clamp what they are given to the same places.
  return std::equal(slice.operands().begin() + 1, slice.operands().end(), update.operands().begin() + 2,
                    update.operands().end());
}

bool OnlyUpdatedPartIsRead(const Instruction& array, const Instruction& update) {
  if (array.IsRoot() || !TakesOnce(update, &array, 0)) return false;
  std::vector<const Instruction*> work;
  for (const Instruction* user : array.users()) {
    if (user == &update) continue;
    if (!SlicesUpdatedPart(*user, update)) return false;
    work.push_back(user);
  }
  std::unordered_set<const Instruction*> seen(work.begin(), work.end());
  while (!work.empty()) {
    const Instruction* from = work.back();
    work.pop_back();
    if (from->IsRoot()) return false;
    for (const Instruction* user : from->users()) {
      if (user == &update) {
        if (!TakesOnce(update, from, 1)) return false;
        continue;
      }
      if (!ReadsSamePlace(*user, *from)) return false;
      if (seen.insert(user).second) work.push_back(user);
    }
  }
  return true;
}

}  // namespace hlorun::passes
