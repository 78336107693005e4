#include "passes/control/loop_invariants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/cost_analysis.h"
#include "passes/control/loop_carry.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/product_readers.h"
#include "passes/spmd/spmd.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Elementary operations an element of the result: fewer are computed anew in less time than they are read.
constexpr double kOperationsWorthReading = 8;

// Only where all devices run each loop alike.
bool IsMovableCollective(const Instruction& i) {
  const bool only_exchanges = i.Is(Opcode::kAllGather) || i.Is(Opcode::kAllReduce) || i.Is(Opcode::kAllToAll) ||
                              i.Is(Opcode::kReduceScatter) || i.Is(Opcode::kCollectivePermute);
  const auto& attributes = i.module()->frontend_attributes;
  const auto partitioned = attributes.find(spmd::kPartitioned);
  return only_exchanges && partitioned != attributes.end() && partitioned->second == spmd::kAlike;
}

bool MayMove(const Instruction& i) {
  if (i.Is(Opcode::kParameter) || i.Has(hlo::kControl)) return false;
  if ((i.Has(hlo::kCollective) || i.HasSideEffect()) && !IsMovableCollective(i)) return false;
  if (i.Is(Opcode::kCustomCall) || i.Is(Opcode::kPartitionId) || i.Is(Opcode::kReplicaId)) return false;
  return i.shape().IsArray() && i.control_predecessors().empty() && i.control_successors().empty();
}

class Hoister {
 public:
  explicit Hoister(Instruction* loop) : loop_(loop), body_(loop->while_body()) {}

  bool Run() {
    FindInvariants();
    std::vector<Instruction*> targets;
    for (Instruction* i : body_->PostOrder()) {
      if (invariant_.contains(i) && IsWorthwhile(*i) && IsUsedByTrips(*i)) targets.push_back(i);
    }
    if (targets.empty()) return false;
    for (Instruction* target : targets) Carry(target);
    RemoveMovedCollectives();
    return true;
  }

 private:
  void FindInvariants() {
    for (Instruction* i : body_->PostOrder()) {
      if (PassedOn(*i) >= 0) {
        invariant_.insert(i);
      } else if (MayMove(*i) && std::all_of(i->operands().begin(), i->operands().end(),
                                            [&](const Instruction* o) { return invariant_.contains(o); })) {
        invariant_.insert(i);
      }
    }
  }

  // Nothing else would remove them: they have effects.
  void RemoveMovedCollectives() {
    std::vector<Instruction*> moved;
    for (Instruction* i : body_->PostOrder()) {
      if (invariant_.contains(i) && i->Has(hlo::kCollective)) moved.push_back(i);
    }
    for (auto i = moved.rbegin(); i != moved.rend(); ++i) {
      RemoveDeadInstructions(body_);
      if ((*i)->users().empty()) body_->Remove(*i);
    }
  }

  // The element of the carry that `i` is, where the body passes it on unchanged; else -1.
  int64_t PassedOn(const Instruction& i) const {
    if (!i.Is(Opcode::kGetTupleElement) || i.operand(0) != body_->parameter(0)) return -1;
    return IsPassedOn(*loop_, i.tuple_index()) ? i.tuple_index() : -1;
  }

  // Whether neighbours come from places far apart, which costs more than reading them once more in their order.
  // Products read transposed operands as they are.
  static bool Scatters(const Instruction& i) {
    if (!i.Is(Opcode::kTranspose) || i.dimensions().empty() || i.shape().ElementCount() == 0) return false;
    const auto last = static_cast<int64_t>(i.dimensions().size()) - 1;
    return i.dimensions().back() != last && i.shape().dimension(last) > 1 &&
           std::none_of(i.users().begin(), i.users().end(),
                        [](const Instruction* user) { return user->Is(Opcode::kDot); });
  }

  // Work of an op and of the invariant ones that it alone is computed from.
  double WorkOf(const Instruction& i) const {
    if (PassedOn(i) >= 0 || i.IsConstant()) return 0;
    if (Scatters(i)) return kOperationsWorthReading * static_cast<double>(i.shape().ElementCount());
    const hlo::Cost cost = hlo::CostOf(i);
    double work = cost.flops + kOperationsWorthReading * cost.transcendentals;
    if (i.Has(hlo::kElementwise) || i.Has(hlo::kDataMovement)) {
      for (const Instruction* operand : i.operands()) work += operand->users().size() == 1 ? WorkOf(*operand) : 0;
    }
    return work;
  }

  bool IsWorthwhile(const Instruction& i) const {
    if (PassedOn(i) >= 0 || i.IsConstant() || i.Has(hlo::kTransparent)) return false;
    if (i.Has(hlo::kCollective)) return true;
    int64_t read = 0;
    for (const Instruction* operand : i.operands()) read += operand->shape().ByteSize();
    constexpr int64_t kSmallBytes = 4096;
    // Weights in halves that each trip would widen; of more than the second cache holds the narrow ones are read sooner.
    constexpr int64_t kKeptBytes = 1 << 20;
    const bool is_operand = i.Has(hlo::kElementwise) && OnlyProductsRead(i);
    if (is_operand && i.shape().ByteSize() <= kKeptBytes) return true;
    if (i.shape().ByteSize() > std::max(read, kSmallBytes)) return i.Is(Opcode::kDot) || i.Is(Opcode::kConvolution);
    if (!i.Has(hlo::kElementwise) && !i.Has(hlo::kDataMovement) && !i.Is(Opcode::kBroadcast) && !i.Is(Opcode::kIota))
      return true;
    // Each trip would store it.
    if (is_operand) return true;
    return WorkOf(i) >= kOperationsWorthReading * static_cast<double>(i.shape().ElementCount());
  }

  // By something that stays in the loop; what then turns out unused is removed as a dead carry.
  bool IsUsedByTrips(const Instruction& i) const {
    return std::any_of(i.users().begin(), i.users().end(),
                       [&](const Instruction* user) { return !invariant_.contains(user) || !IsWorthwhile(*user); });
  }

  Instruction* Outside(Instruction* i) {
    if (const auto known = outside_.find(i); known != outside_.end()) return known->second;
    const int64_t element = PassedOn(*i);
    if (element >= 0) return outside_[i] = loop_->operand(0)->operand(element);
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) operands.push_back(Outside(operand));
    return outside_[i] = loop_->parent()->Add(i->CloneWithOperands(i->shape(), std::move(operands)), loop_);
  }

  void Carry(Instruction* target) {
    Instruction* inside = AddCarry(loop_, Outside(target));
    target->ReplaceAllUsesWith(inside);
  }

  Instruction* loop_;
  Computation* body_;
  std::unordered_set<const Instruction*> invariant_;
  std::unordered_map<const Instruction*, Instruction*> outside_;
};

}  // namespace

bool HoistLoopInvariants::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  // Callees first: what leaves an inner loop may leave the outer one as well.
  for (Computation* computation : module.ControlComputations()) {
    std::vector<Instruction*> loops = computation->PostOrder();
    std::erase_if(loops, [](const Instruction* i) { return !i->Is(Opcode::kWhile); });
    bool here = false;
    for (Instruction* loop : loops) here |= MayGrow(*loop) && Hoister(loop).Run();
    if (here) computation->SetOrder(computation->PostOrder());
    changed |= here;
  }
  return changed;
}

}  // namespace hlorun::passes
