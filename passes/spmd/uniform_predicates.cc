#include "passes/spmd/uniform_predicates.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "hlo/builder.h"
#include "passes/control/trip_count.h"
#include "passes/spmd/channels.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsFloat(const hlo::Shape& shape) {
  return shape.IsArray() && (hlo::IsFloating(shape.element_type()) || hlo::IsComplex(shape.element_type()));
}

// Whether devices that agree on the entry's parameters agree on `value`, whatever their arithmetic: only integers lead
// to it. What a loop carries is not followed.
bool IsExact(const Instruction* value, const Computation* entry) {
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> pending = {value};
  while (!pending.empty()) {
    const Instruction* i = pending.back();
    pending.pop_back();
    if (!seen.insert(i).second) continue;
    if (i->Is(Opcode::kParameter)) {
      if (i->parent() != entry) return false;
      continue;
    }
    const bool computes_floats = IsFloat(i->shape()) && !i->Has(hlo::kDataMovement) && !i->IsConstant();
    if (computes_floats || i->Has(hlo::kControl)) return false;
    pending.insert(pending.end(), i->operands().begin(), i->operands().end());
  }
  return true;
}

class Broadcasts {
 public:
  explicit Broadcasts(hlo::Module& module) : module_(module), next_channel_(FirstFreeChannel(module)) {}

  int64_t Run() {
    for (Computation* computation : module_.ControlComputations()) {
      std::vector<Instruction*> control;
      for (const auto& i : computation->instructions()) {
        if (i->Is(Opcode::kWhile) || i->Is(Opcode::kConditional)) control.push_back(i.get());
      }
      for (Instruction* i : control) Unify(i);
    }
    return changed_;
  }

 private:
  void Unify(Instruction* control) {
    if (control->Is(Opcode::kWhile)) {
      Computation* condition = control->while_condition();
      if (TripCountOf(*control) || condition->root()->Is(Opcode::kCollectiveBroadcast)) return;
      condition->set_root(FromFirst(condition->root()));
    } else if (!IsExact(control->operand(0), module_.entry())) {
      control->ReplaceOperand(0, FromFirst(control->operand(0)));
    } else {
      return;
    }
    ++changed_;
  }

  Instruction* FromFirst(Instruction* predicate) {
    hlo::attr::Collective collective;
    collective.replica_groups.groups.emplace_back(static_cast<size_t>(module_.num_partitions));
    std::iota(collective.replica_groups.groups[0].begin(), collective.replica_groups.groups[0].end(), 0);
    collective.channel_id = next_channel_++;
    collective.use_global_device_ids = true;
    hlo::Builder build(predicate->parent(), predicate);
    return build.Make(Opcode::kCollectiveBroadcast, {predicate}, collective);
  }

  hlo::Module& module_;
  int64_t next_channel_;
  int64_t changed_ = 0;
};

}  // namespace

int64_t MakePredicatesUniform(hlo::Module& module) {
  return module.replica_count == 1 && module.num_partitions > 1 ? Broadcasts(module).Run() : 0;
}

}  // namespace hlorun::passes::spmd
