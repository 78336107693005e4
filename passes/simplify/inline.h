// Inlining: a call or fusion becomes the instructions of the computation it calls.
#pragma once

#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::passes {

// Replaces `caller` (an instruction with one called computation whose parameters are the caller's operands) by a copy
// of that computation's instructions, and removes it. Bodies, conditions and branches that the copy calls are copied
// too, so that each keeps one caller. The callee stays; dead code elimination removes it. Returns the new value.
hlo::Instruction* InlineInstruction(hlo::Instruction* caller, hlo::Computation* callee,
                                    const std::vector<hlo::Instruction*>& arguments);

// A copy of `original` in the same module, with copies of the computations that its control instructions execute.
hlo::Computation* CloneControlComputation(const hlo::Computation& original);

// Calls, innermost first. After it no executed computation holds a call.
class InlineCalls : public Pass {
 public:
  std::string_view name() const override { return "inline-calls"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// Fusions of a module that XLA has optimised already; hlorun makes its own.
class InlineFusions : public Pass {
 public:
  std::string_view name() const override { return "inline-fusions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
