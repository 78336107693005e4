#include "passes/control/conditional_to_select.h"

#include <fmt/format.h>

#include "hlo/builder.h"
#include "hlo/cost_analysis.h"
#include "passes/control/time_model.h"
#include "passes/control/trip_count.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Computing all branches may cost as much as launching this many kernels that return at once.
constexpr double kLaunchesWorth = 2;

std::string WhyNotAlways(const Computation& branch) {
  for (const auto& instruction : branch.instructions()) {
    if (instruction->Is(Opcode::kCustomCall)) {
      return fmt::format("%{} calls \"{}\", which may write anywhere", instruction->name(),
                         instruction->As<hlo::attr::CustomCall>().target);
    }
    if (instruction->HasSideEffect()) {
      return fmt::format("%{} ({}) has an effect", instruction->name(), hlo::OpcodeName(instruction->opcode()));
    }
    if (instruction->shape().IsToken()) return fmt::format("%{} orders effects by a token", instruction->name());
    if (instruction->Is(Opcode::kWhile) && !TripCountOf(*instruction).has_value() &&
        !hlo::KnownTripCount(*instruction).has_value()) {
      return fmt::format("the loop %{} may not end where its branch is not taken", instruction->name());
    }
    for (const Computation* called : instruction->called_computations()) {
      if (std::string why = WhyNotAlways(*called); !why.empty()) return why;
    }
  }
  return "";
}

// select(p, x, y) leaf by leaf.
Instruction* SelectTree(hlo::Builder& build, Instruction* predicate, Instruction* x, Instruction* y) {
  if (x == y) return x;
  if (!x->shape().IsTuple()) return build.Select(predicate, x, y);
  std::vector<Instruction*> elements;
  for (size_t i = 0; i < x->shape().tuple_shapes().size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    elements.push_back(SelectTree(build, predicate, build.GetTupleElement(x, index), build.GetTupleElement(y, index)));
  }
  return build.Tuple(elements);
}

void Replace(Instruction* conditional) {
  hlo::Builder build(conditional->parent(), conditional);
  build.before = conditional;
  std::vector<Instruction*> results;
  for (size_t b = 0; b < conditional->called_computations().size(); ++b) {
    const auto branch = static_cast<int64_t>(b);
    auto call = std::make_unique<Instruction>(
        Opcode::kCall, conditional->shape(), std::vector<Instruction*>{conditional->operand(branch + 1)},
        hlo::attr::Call{}, std::vector<Computation*>{conditional->called(branch)});
    results.push_back(conditional->parent()->Add(std::move(call), conditional));
  }
  Instruction* selector = conditional->operand(0);
  Instruction* result = results.back();  // an index out of range takes the last branch
  if (selector->shape().element_type() == hlo::ElementType::kPred) {
    result = SelectTree(build, selector, results[0], results[1]);
  } else {
    for (size_t b = results.size() - 1; b-- > 0;) {
      Instruction* number = build.ScalarConstant(selector->shape().element_type(), static_cast<int64_t>(b));
      Instruction* is_taken = build.Compare(selector, number, hlo::ComparisonDirection::kEq);
      result = SelectTree(build, is_taken, results[b], result);
    }
  }
  conditional->parent()->Replace(conditional, result);
}

}  // namespace

std::string WhyNotBothBranches(const Instruction& conditional) {
  for (const Computation* branch : conditional.called_computations()) {
    if (std::string why = WhyNotAlways(*branch); !why.empty()) return why;
  }
  return "";
}

bool ConditionalToSelect::Run(hlo::Module& module, PassContext& context) {
  const BranchStrategy strategy = context.options.branches;
  if (strategy == BranchStrategy::kPredicate || strategy == BranchStrategy::kHost) return false;
  const TimeModel time(context.device);
  bool changed = false;
  // Callees first: a conditional within a branch is selected before its branch is weighed.
  for (Computation* computation : module.ControlComputations()) {
    std::vector<Instruction*> conditionals = computation->PostOrder();
    std::erase_if(conditionals, [](const Instruction* i) { return !i->Is(Opcode::kConditional); });
    bool here = false;
    for (Instruction* conditional : conditionals) {
      if (!WhyNotBothBranches(*conditional).empty()) continue;
      double work = 0;
      for (const Computation* branch : conditional->called_computations()) work += time.Work(*branch);
      const bool cheap = work <= kLaunchesWorth * time.launch();
      if (!cheap && strategy != BranchStrategy::kSelect) continue;
      Remark& remark = context.remarks.emplace_back();
      remark.subject = Remark::Subject::kConditional;
      remark.instruction = conditional->name();
      remark.source = module.SourceOf(*conditional);
      remark.choice = "select";
      remark.reason = cheap ? "all branches are pure, and together cheaper than launching kernels for one of them"
                            : "--branches=select asks for it, and all branches are pure";
      remark.cost = fmt::format(
          "all {} branches are computed, about {:.3g} us; each result is a masked select, fused with "
          "its neighbours",
          conditional->called_computations().size(), work);
      if (!cheap) remark.advice = "--branches=auto computes the branch that is taken only";
      Replace(conditional);
      here = true;
    }
    if (here) computation->SetOrder(computation->PostOrder());
    changed |= here;
  }
  return changed;
}

}  // namespace hlorun::passes
