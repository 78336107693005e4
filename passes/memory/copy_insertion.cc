#include "passes/memory/copy_insertion.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hlo/error.h"
#include "passes/memory/colocation.h"
#include "passes/memory/hand_over.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

using LeafMap = std::map<int64_t, Instruction*>;

Instruction* AddBefore(Instruction* before, hlo::Computation* computation, Opcode opcode, const hlo::Shape& shape,
                       std::vector<Instruction*> operands, hlo::Attributes attributes = hlo::attr::None{}) {
  auto made = std::make_unique<Instruction>(opcode, shape, std::move(operands), std::move(attributes));
  return computation->Add(std::move(made), before);
}

// Where the replacement of an operand or root goes, and what it is made of.
class LeafCopier {
 public:
  // New instructions go before `before`, or to the end of `computation` when null.
  LeafCopier(hlo::Computation* computation, Instruction* before) : computation_(computation), before_(before) {}

  // `whole` with the given leaves copied; copies are made in the order of `leaves`.
  Instruction* Copy(Instruction* whole, const std::vector<int64_t>& leaves) {
    LeafMap copies;
    for (const int64_t leaf : leaves) {
      Instruction* source = LeafOf(whole, leaf);
      Instruction* copy = AddBefore(before_, computation_, Opcode::kCopy, source->shape(), {source});
      copy->metadata = source->metadata;
      copies[leaf] = copy;
    }
    return Rebuild(whole, 0, copies);
  }

 private:
  Instruction* Element(Instruction* tuple, int64_t index) {
    if (tuple->Is(Opcode::kTuple)) return tuple->operand(index);
    return AddBefore(before_, computation_, Opcode::kGetTupleElement, tuple->shape().tuple_shape(index), {tuple},
                     hlo::attr::TupleIndex{index});
  }

  Instruction* LeafOf(Instruction* whole, int64_t leaf) {
    while (whole->shape().IsTuple()) {
      int64_t index = 0;
      for (;; ++index) {
        const int64_t count = hlo::LeafCount(whole->shape().tuple_shape(index));
        if (leaf < count) break;
        leaf -= count;
      }
      whole = Element(whole, index);
    }
    return whole;
  }

  Instruction* Rebuild(Instruction* whole, int64_t first_leaf, const LeafMap& copies) {
    const auto next = copies.lower_bound(first_leaf);
    if (next == copies.end() || next->first >= first_leaf + hlo::LeafCount(whole->shape())) return whole;
    if (!whole->shape().IsTuple()) return next->second;
    std::vector<Instruction*> elements;
    for (size_t i = 0; i < whole->shape().tuple_shapes().size(); ++i) {
      Instruction* element = Element(whole, static_cast<int64_t>(i));
      elements.push_back(Rebuild(element, first_leaf, copies));
      first_leaf += hlo::LeafCount(element->shape());
    }
    return AddBefore(before_, computation_, Opcode::kTuple, whole->shape(), std::move(elements));
  }

  hlo::Computation* computation_;
  Instruction* before_;
};

// Copies of one place, in the order that needs the fewest: values of other slots first, before those are overwritten.
void InsertCopies(Instruction* source, Instruction* consumer, std::vector<Flow> flows, const Dataflow& dataflow) {
  std::stable_partition(flows.begin(), flows.end(),
                        [&](const Flow& flow) { return dataflow.value(flow.from).kind != Value::Kind::kDefined; });
  std::vector<int64_t> leaves;
  for (const Flow& flow : flows) {
    // An aliased result may fail both as alias and as result.
    if (std::find(leaves.begin(), leaves.end(), flow.leaf) == leaves.end()) leaves.push_back(flow.leaf);
  }
  hlo::Computation* computation = source->parent();
  Instruction* replacement = LeafCopier(computation, consumer).Copy(source, leaves);
  if (consumer != nullptr) {
    consumer->ReplaceOperand(0, replacement);
  } else {
    computation->set_root(replacement);
  }
  computation->RemoveWithDeadOperands(source);
}

// One in each computation: the dataflow does not know the instructions that one makes.
bool HandOverSome(const std::vector<Flow>& failed, const Dataflow& dataflow, const KernelModel& kernels) {
  std::set<const hlo::Computation*> done;
  for (const Flow& flow : failed) {
    const hlo::Computation* computation = flow.source->parent();
    if (!done.contains(computation) && HandOver(flow, dataflow, kernels)) done.insert(computation);
  }
  return !done.empty();
}

}  // namespace

bool CopyInsertion::Run(hlo::Module& module, PassContext& context) {
  // Each round copies what collides. A copy at the end of a computation reads its source after everything else, so it
  // can collide only with copies beside it, and the copy of a copy with nothing: loops nested n deep settle in 2 + n
  // rounds; the bound is for bugs.
  constexpr int kRounds = 100;
  bool changed = false;
  for (int round = 0; round < kRounds;) {
    const Dataflow dataflow(module);
    const LiveRanges live(module, dataflow);
    Colocation sets(module, dataflow, live, context.kernels);
    const std::vector<Flow> failed = JoinFlows(module, dataflow, sets);
    // What is handed over needs no copy: see again what does. Each time fewer readers are left, so this ends.
    if (HandOverSome(failed, dataflow, context.kernels)) {
      changed = true;
      continue;
    }
    std::map<std::pair<std::string, std::string>, std::vector<Flow>>
        places;  // by name: the order is the same every time
    for (const Flow& flow : failed) {
      places[{flow.source->name(), flow.consumer == nullptr ? "" : flow.consumer->name()}].push_back(flow);
    }
    if (places.empty()) return changed;
    for (auto& [place, flows] : places) InsertCopies(flows[0].source, flows[0].consumer, flows, dataflow);
    changed = true;
    ++round;
  }
  Fail(ErrorCode::kInternal, "copy insertion does not settle in module {}: please report this as a bug", module.name());
}

}  // namespace hlorun::passes
