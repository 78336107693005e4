#include "passes/simplify/constant_folding.h"

#include <algorithm>
#include <optional>

#include "hlo/cost_analysis.h"
#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

namespace {

bool IsKnown(const Instruction* operand) { return operand->IsConstant() && !operand->As<hlo::attr::Constant>().elided; }

// One number in all places.
bool IsFilled(const Instruction* operand) {
  return operand->Is(Opcode::kBroadcast) && operand->operand(0)->shape().rank() == 0 && IsKnown(operand->operand(0));
}

// A few windows over one number, which padding alone makes different: how many elements each has, by which average
// pooling divides in every run.
bool CountsElements(const Instruction& instruction) {
  constexpr int64_t kFewResults = 1 << 16;
  constexpr double kFewSteps = 1 << 20;
  return instruction.Is(Opcode::kReduceWindow) && instruction.operand_count() == 2 &&
         IsFilled(instruction.operand(0)) && IsKnown(instruction.operand(1)) &&
         instruction.shape().ElementCount() <= kFewResults &&
         instruction.operand(0)->shape().ElementCount() <= static_cast<int64_t>(kFewSteps) &&
         hlo::ElementsInWindows(instruction) <= kFewSteps;
}

bool MayFold(const Instruction& instruction, const CompileOptions& options) {
  switch (instruction.opcode()) {
    case Opcode::kConstant:
    case Opcode::kParameter:
    case Opcode::kIota:
    case Opcode::kTuple:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kCustomCall:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kConditional:
    case Opcode::kWhile: return false;
    default: break;
  }
  if (instruction.operand_count() == 0 || !instruction.shape().IsArray() || !instruction.shape().IsStatic())
    return false;
  if (instruction.HasSideEffect() || !instruction.control_predecessors().empty()) return false;
  if (CountsElements(instruction)) return true;
  if (!std::all_of(instruction.operands().begin(), instruction.operands().end(), IsKnown)) return false;
  // A vector of a few elements is as good as its parts.
  constexpr int64_t kAlwaysSmall = 256;
  int64_t operand_bytes = kAlwaysSmall;
  for (const Instruction* operand : instruction.operands()) operand_bytes += operand->shape().ByteSize();
  const int64_t bytes = instruction.shape().ByteSize();
  if (instruction.Is(Opcode::kBroadcast)) return bytes <= instruction.operand(0)->shape().ByteSize();
  return bytes <= operand_bytes && bytes <= options.fold_byte_limit;
}

Literal LiteralOf(const Instruction& operand) {
  if (operand.IsConstant()) return operand.literal();
  return hlo::EvaluateInstruction(operand, std::vector<Literal>{operand.operand(0)->literal()}, {});
}

std::optional<Literal> ValueOf(const Instruction& instruction, const CompileOptions& options) {
  std::vector<Literal> operands;
  for (const Instruction* operand : instruction.operands()) operands.push_back(LiteralOf(*operand));
  hlo::EvaluatorOptions limits;
  limits.step_limit = options.fold_step_limit;
  try {
    return hlo::EvaluateInstruction(instruction, operands, limits);
  } catch (const Error& error) {
    // Too long, or nothing that the evaluator runs: the device will.
    const ErrorCode code = error.code();
    if (code != ErrorCode::kResourceExhausted && code != ErrorCode::kUnimplemented) throw;
    return std::nullopt;
  }
}

}  // namespace

bool ConstantFolding::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!MayFold(*instruction, context.options)) continue;
      std::optional<Literal> value = ValueOf(*instruction, context.options);
      if (!value) continue;
      value->set_shape(instruction->shape());
      auto constant =
          std::make_unique<Instruction>(Opcode::kConstant, instruction->shape(), std::vector<Instruction*>{},
                                        hlo::attr::Constant{std::move(*value), false});
      computation->ReplaceWithNew(instruction, std::move(constant));
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
