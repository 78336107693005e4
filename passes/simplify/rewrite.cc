#include "passes/simplify/rewrite.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_set>

#include "hlo/error.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Rules by the opcode of their root; those of any opcode are in every list.
class RuleIndex {
 public:
  explicit RuleIndex(const std::vector<Rule>& rules) : by_opcode_(hlo::AllOpcodes().size()) {
    for (const Rule& rule : rules) {
      const std::optional<Opcode> opcode = rule.pattern.opcode();
      for (size_t i = 0; i < by_opcode_.size(); ++i) {
        if (!opcode || static_cast<size_t>(*opcode) == i) by_opcode_[i].push_back(&rule);
      }
    }
  }
  const std::vector<const Rule*>& For(Opcode opcode) const { return by_opcode_[static_cast<size_t>(opcode)]; }

 private:
  std::vector<std::vector<const Rule*>> by_opcode_;
};

using Firings = std::map<std::string_view, int64_t>;

class FiringLog {
 public:
  void Add(const Firings& firings) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, count] : firings) total_[name] += count;
  }
  Firings Read() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return total_;
  }

 private:
  std::mutex mutex_;
  Firings total_;
};

FiringLog& Log() {
  static FiringLog log;
  return log;
}

// One computation, to a fixpoint: what a rewrite makes, and what uses it, is looked at again.
class Rewriter {
 public:
  Rewriter(Computation* computation, const RuleIndex& rules, Firings* firings)
      : computation_(computation), rules_(rules), firings_(firings) {}

  bool Run() {
    for (Instruction* instruction : computation_->PostOrder()) Enqueue(instruction);
    // Rules shrink programs; one that does not, together with another, would loop. Far above any real count.
    int64_t budget = 1000 + 200 * computation_->instruction_count();
    while (!queue_.empty()) {
      Instruction* next = queue_.front();
      queue_.pop_front();
      if (!queued_.erase(next)) continue;
      while (next != nullptr && budget > 0) {
        next = Step(next);
        if (next == nullptr) break;
        changed_ = true;
        if (--budget == 0) Fail(ErrorCode::kInternal, "rewrite rules do not end at {}", next->ToString());
      }
    }
    return changed_;
  }

 private:
  // A new instruction brings its new operands along.
  void Enqueue(Instruction* instruction) {
    if (queued_.insert(instruction).second) queue_.push_back(instruction);
    if (!known_.insert(instruction).second) return;
    for (Instruction* operand : instruction->operands()) {
      if (!known_.contains(operand)) Enqueue(operand);
    }
  }

  // Applies one rule at `instruction`; the replacement, or null when none fits.
  Instruction* Step(Instruction* instruction) {
    if (instruction->IsDead() && !instruction->Is(Opcode::kParameter) && !instruction->HasSideEffect()) {
      Forget(instruction);
      return nullptr;
    }
    const std::vector<Instruction*> operands = instruction->operands();
    for (const Rule* rule : rules_.For(instruction->opcode())) {
      Instruction* replacement = ApplyRule(*rule, instruction);
      if (replacement == nullptr) continue;
      ++(*firings_)[rule->name];
      queued_.erase(instruction);
      known_.erase(instruction);
      Enqueue(replacement);
      queued_.erase(replacement);
      for (Instruction* operand : replacement->operands()) Enqueue(operand);
      for (Instruction* user : replacement->users()) Enqueue(user);
      for (Instruction* operand : operands) {
        if (operand->users().empty()) Enqueue(operand);  // to be forgotten
      }
      return replacement;
    }
    return nullptr;
  }

  void Forget(Instruction* instruction) {
    const std::vector<Instruction*> operands = instruction->operands();
    computation_->Remove(instruction);
    changed_ = true;
    known_.erase(instruction);
    std::unordered_set<Instruction*> seen;
    for (Instruction* operand : operands) {
      if (seen.insert(operand).second) Enqueue(operand);
    }
  }

  Computation* computation_;
  const RuleIndex& rules_;
  Firings* firings_;
  std::deque<Instruction*> queue_;
  std::unordered_set<Instruction*> queued_;
  std::unordered_set<Instruction*> known_;
  bool changed_ = false;
};

bool IsStatic(const Instruction& instruction) {
  const auto is_static = [](const Instruction* operand) { return operand->shape().IsStatic(); };
  return instruction.shape().IsStatic() &&
         std::all_of(instruction.operands().begin(), instruction.operands().end(), is_static);
}

bool Apply(hlo::Module& module, const RuleIndex& index, Firings* firings) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {
    if (!Rewriter(computation, index, firings).Run()) continue;
    computation->SetOrder(computation->PostOrder());
    changed = true;
  }
  if (changed) module.is_scheduled = false;
  return changed;
}

}  // namespace

Instruction* ApplyRule(const Rule& rule, Instruction* instruction) {
  // Sizes held in memory are the business of passes/dynamic; here every dimension is its bound.
  if (!IsStatic(*instruction)) return nullptr;
  Match match{instruction, {}, hlo::Builder(instruction->parent(), instruction)};
  if (!rule.pattern.Matches(instruction, match.bound)) return nullptr;
  if (rule.when && !rule.when(match)) return nullptr;
  match.build.before = instruction;
  Instruction* replacement = rule.replacement(match);
  HLORUN_CHECK(replacement->shape().SameAs(instruction->shape()));
  instruction->parent()->Replace(instruction, replacement);
  return replacement;
}

std::map<std::string_view, int64_t> ApplyRules(hlo::Module& module, const std::vector<Rule>& rules) {
  Firings firings;
  Apply(module, RuleIndex(rules), &firings);
  return firings;
}

bool RewriteByRules::Run(hlo::Module& module, PassContext&) {
  static const RuleIndex index(AllRules());
  Firings firings;
  const bool changed = Apply(module, index, &firings);
  Log().Add(firings);
  return changed;
}

std::map<std::string_view, int64_t> RuleFirings() { return Log().Read(); }

const std::vector<Rule>& AllRules() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> all;
    for (const auto& group :
         {TupleRules, ArithmeticRules, LogicRules, ConvertRules, BroadcastRules, ReshapeRules, TransposeRules,
          SliceRules, ConcatenateRules, PadRules, ScatterRules, ReduceRules, WindowRules, DotRules}) {
      for (Rule& rule : group()) all.push_back(std::move(rule));
    }
    return all;
  }();
  return kRules;
}

}  // namespace hlorun::passes
