#include "passes/fusion/outline_region.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/fusion/cluster.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Members = std::vector<Instruction*>;

// Moves members into a computation of their own.
class Outliner {
 public:
  Outliner(Computation& computation, const Members& members, const char* config, const char* name)
      : computation_(&computation),
        members_(members),
        config_(config),
        name_(name),
        inside_(members.begin(), members.end()),
        body_(computation.module()->AddComputation(name)) {}

  Instruction* Run() {
    FindCarriers();
    for (Instruction* member : members_) {
      std::vector<Instruction*> operands;
      for (Instruction* operand : member->operands()) operands.push_back(StandFor(operand));
      map_[member] = body_->Add(member->CloneWithOperands(member->shape(), std::move(operands)));
    }
    for (Instruction* member : members_) FindEscapes(member);
    Instruction* region = Finish();
    if (escapes_.size() == 1) {
      replacements_[escapes_[0]] = region;
    } else {
      for (size_t r = 0; r < escapes_.size(); ++r)
        replacements_[escapes_[r]] = Element(region, static_cast<int64_t>(r));
    }
    for (Instruction* member : members_) RedirectUsers(member);
    RemoveAll();
    return region;
  }

 private:
  // Users before operands; a tuple that carried goes with its last user.
  void RemoveAll() {
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      std::vector<Instruction*> work = {*member};
      while (!work.empty()) {
        Instruction* next = work.back();
        work.pop_back();
        const std::unordered_set<Instruction*> operands(next->operands().begin(), next->operands().end());
        computation_->Remove(next);
        for (Instruction* operand : operands) {
          if (operand->Is(Opcode::kTuple) && inside_.contains(operand) && operand->users().empty())
            work.push_back(operand);
        }
      }
    }
  }

  // Tuples that only members take apart.
  void FindCarriers() {
    std::vector<const Instruction*> work(members_.begin(), members_.end());
    while (!work.empty()) {
      const Instruction* inside = work.back();
      work.pop_back();
      for (const Instruction* tuple : inside->operands()) {
        if (!tuple->Is(Opcode::kTuple) || tuple->IsRoot() || inside_.contains(tuple)) continue;
        const bool is_carrier = std::all_of(tuple->users().begin(), tuple->users().end(),
                                            [&](const Instruction* user) { return inside_.contains(user); });
        if (is_carrier && inside_.insert(tuple).second) work.push_back(tuple);
      }
    }
  }

  // What stands for an operand in the region's computation.
  Instruction* StandFor(Instruction* operand) {
    if (const auto known = map_.find(operand); known != map_.end()) return known->second;
    Instruction*& made = map_[operand];
    if (operand->shape().IsTuple()) {
      std::vector<Instruction*> elements;
      for (size_t i = 0; i < operand->shape().tuple_shapes().size(); ++i) {
        const auto index = static_cast<int64_t>(i);
        Instruction* element = operand->Is(Opcode::kTuple) ? operand->operand(index) : Element(operand, index);
        elements.push_back(StandFor(element));
      }
      return map_[operand] = body_->Add(Opcode::kTuple, operand->shape(), std::move(elements));
    }
    if (IsScalarConstant(*operand)) return made = body_->Add(operand->CloneWithOperands(operand->shape(), {}));
    const auto number = static_cast<int64_t>(operands_.size());
    operands_.push_back(operand);
    return made = body_->AddParameter(number, operand->shape(), fmt::format("p{}", number));
  }

  bool IsUsedOutside(const Instruction* member) const {
    return member->IsRoot() || std::any_of(member->users().begin(), member->users().end(),
                                           [&](const Instruction* user) { return !inside_.contains(user); });
  }

  void FindEscapes(Instruction* member) {
    if (!IsUsedOutside(member)) return;
    if (member->shape().IsTuple()) {
      EscapeElements(member, map_.at(member));
    } else {
      escapes_.push_back(member);
      results_.push_back(map_.at(member));
    }
  }

  // A tuple leaves as its leaves, which are put together again outside.
  void EscapeElements(Instruction* outer, Instruction* inner) {
    std::vector<Instruction*>& elements = rebuilt_[outer];
    for (size_t i = 0; i < outer->shape().tuple_shapes().size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      hlo::Builder build(body_);
      Instruction* element = build.GetTupleElement(inner, index);
      // A stand-in outside, so that leaves have a name there.
      Instruction* stand_in = Element(outer, index);
      stand_ins_.push_back(stand_in);
      elements.push_back(stand_in);
      if (stand_in->shape().IsTuple()) {
        EscapeElements(stand_in, element);
      } else {
        escapes_.push_back(stand_in);
        results_.push_back(element);
      }
    }
  }

  Instruction* Element(Instruction* tuple, int64_t index) {
    hlo::Builder build(computation_);
    return build.GetTupleElement(tuple, index);
  }

  Instruction* Finish() {
    hlo::Shape shape;
    if (results_.size() == 1) {
      body_->set_root(results_[0]);
      shape = results_[0]->shape();
    } else {
      hlo::Builder build(body_);
      body_->set_root(build.Tuple(results_));
      shape = body_->root()->shape();
    }
    auto made = std::make_unique<Instruction>(Opcode::kFusion, shape, operands_,
                                              hlo::attr::Fusion{hlo::FusionKind::kCustom, {}},
                                              std::vector<Computation*>{body_});
    made->backend_config = config_;
    made->set_name(name_);
    const auto control = std::find_if(members_.begin(), members_.end(), [](const Instruction* i) {
      return i->Is(Opcode::kWhile) || i->Is(Opcode::kConditional);
    });
    made->metadata = (control != members_.end() ? *control : members_.back())->metadata;
    return computation_->Add(std::move(made));
  }

  Instruction* Rebuild(Instruction* outer) {
    if (const auto replaced = replacements_.find(outer); replaced != replacements_.end()) return replaced->second;
    std::vector<Instruction*> elements;
    for (Instruction* element : rebuilt_.at(outer)) elements.push_back(Rebuild(element));
    hlo::Builder build(computation_);
    return build.Tuple(elements);
  }

  void RedirectUsers(Instruction* member) {
    if (!IsUsedOutside(member)) return;
    Instruction* with = Rebuild(member);
    if (member->shape().IsTuple()) RemoveStandIns();
    const bool is_root = member->IsRoot();
    for (Instruction* user : std::vector<Instruction*>(member->users())) {
      if (!inside_.contains(user)) member->ReplaceUseWith(user, with);
    }
    if (is_root) computation_->set_root(with);
  }

  void RemoveStandIns() {
    for (size_t n = stand_ins_.size(); n-- > 0;) computation_->Remove(stand_ins_[n]);
    stand_ins_.clear();
  }

  Computation* computation_;
  const Members& members_;
  const char *const config_, *const name_;
  std::unordered_set<const Instruction*> inside_;
  Computation* body_;
  std::unordered_map<const Instruction*, Instruction*> map_;
  std::vector<Instruction*> operands_;  // of the region
  std::vector<Instruction*> escapes_;   // members, or stand-ins for their leaves, by result
  std::vector<Instruction*> results_;   // inside, by result
  std::vector<Instruction*> stand_ins_;
  std::unordered_map<const Instruction*, std::vector<Instruction*>> rebuilt_;
  std::unordered_map<const Instruction*, Instruction*> replacements_;
};

}  // namespace

Instruction* OutlineRegion(Computation& computation, const std::vector<Instruction*>& members, const char* config,
                           const char* name) {
  return Outliner(computation, members, config, name).Run();
}

}  // namespace hlorun::passes
