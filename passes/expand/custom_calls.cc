#include "passes/expand/custom_calls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "hlo/builder.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

struct Named {
  std::string_view target;
  Opcode opcode;
};
constexpr Named kNamed[] = {
    {"mhlo.acos", Opcode::kAcos},   {"mhlo.acosh", Opcode::kAcosh}, {"mhlo.asin", Opcode::kAsin},
    {"mhlo.asinh", Opcode::kAsinh}, {"mhlo.atanh", Opcode::kAtanh}, {"mhlo.cosh", Opcode::kCosh},
    {"mhlo.erf", Opcode::kErf},     {"mhlo.sinh", Opcode::kSinh},   {"mhlo.tan", Opcode::kTan},
};

}  // namespace

bool ExpandCustomCalls::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kCustomCall) || instruction->operand_count() != 1) continue;
      const std::string& target = instruction->As<hlo::attr::CustomCall>().target;
      const auto named = std::find_if(std::begin(kNamed), std::end(kNamed),
                                      [&](const Named& entry) { return entry.target == target; });
      if (named == std::end(kNamed) || !instruction->shape().SameAs(instruction->operand(0)->shape())) continue;
      hlo::Builder build(computation, instruction);
      build.before = instruction;
      computation->Replace(instruction, build.Unary(named->opcode, instruction->operand(0)));
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
