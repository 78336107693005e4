#include "passes/simplify/inline.h"

#include <unordered_map>

#include "hlo/error.h"
#include "passes/simplify/rewrite_each.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Gives the control instructions among `instructions` copies of the computations that they execute.
void UnshareCallees(const std::vector<Instruction*>& instructions) {
  for (Instruction* instruction : instructions) {
    if (!instruction->Has(hlo::kControl)) continue;
    for (size_t i = 0; i < instruction->called_computations().size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      instruction->set_called(number, CloneControlComputation(*instruction->called(number)));
    }
  }
}

// Calls of calls can name one computation exponentially often; a module of this size takes seconds and gigabytes.
constexpr int64_t kMostInstructions = 2'000'000;

// Before anything is copied.
void CheckInlinedSize(const hlo::Module& module, Opcode opcode) {
  std::unordered_map<const Computation*, int64_t> sizes;
  int64_t total = 0;
  for (const Computation* computation : module.PostOrder()) {
    int64_t& size = sizes[computation];
    size = computation->instruction_count();
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->Is(opcode)) continue;
      size += sizes.at(instruction->called());
      total += sizes.at(instruction->called());
      if (total <= kMostInstructions) continue;
      Fail(ErrorCode::kResourceExhausted, "inlining computation {} makes the module larger than {} instructions",
           instruction->called()->name(), kMostInstructions);
    }
  }
}

bool InlineAll(hlo::Module& module, Opcode opcode) {
  CheckInlinedSize(module, opcode);
  // Callees first: what is copied into a caller has nothing left to inline.
  return RewriteEach(module, [opcode](Instruction* instruction) {
    if (!instruction->Is(opcode)) return false;
    InlineInstruction(instruction, instruction->called(), instruction->operands());
    return true;
  });
}

}  // namespace

Computation* CloneControlComputation(const Computation& original) {
  Computation* copy = original.module()->AddComputation(original.name());
  hlo::InstructionMap map;
  copy->set_root(original.CloneInto(copy, map));
  copy->execution_thread = original.execution_thread;
  std::vector<Instruction*> copied;
  for (const auto& instruction : copy->instructions()) copied.push_back(instruction.get());
  UnshareCallees(copied);
  return copy;
}

Instruction* InlineInstruction(Instruction* caller, Computation* callee, const std::vector<Instruction*>& arguments) {
  Computation* into = caller->parent();
  hlo::InstructionMap map;
  for (int64_t i = 0; i < callee->parameter_count(); ++i) {
    map[callee->parameter(i)] = arguments[static_cast<size_t>(i)];
  }
  Instruction* root = callee->CloneInto(into, map);
  std::vector<Instruction*> copied;
  for (const auto& original : callee->instructions()) {
    if (!original->Is(Opcode::kParameter)) copied.push_back(map.at(original.get()));
  }
  UnshareCallees(copied);
  into->Replace(caller, root);
  return root;
}

bool InlineCalls::Run(hlo::Module& module, PassContext&) { return InlineAll(module, Opcode::kCall); }

bool InlineFusions::Run(hlo::Module& module, PassContext&) { return InlineAll(module, Opcode::kFusion); }

}  // namespace hlorun::passes
