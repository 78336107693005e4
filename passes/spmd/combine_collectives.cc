#include "passes/spmd/combine_collectives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "hlo/builder.h"
#include "passes/spmd/link.h"
#include "passes/spmd/uniform_predicates.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// A combined message is at most so many times what a link is worth starting for: by then its latency is nothing, while
// all operands must be there before the first is sent.
constexpr double kCombinedWorth = 32;

// In bytes.
struct Limits {
  explicit Limits(const spmd::Link& link)
      : small(static_cast<int64_t>(link.worth_bytes())),
        combined(static_cast<int64_t>(link.worth_bytes() * kCombinedWorth)) {}
  int64_t small, combined;
};

// What is there before or after, whichever is more.
int64_t BytesOf(const Instruction& collective) {
  return std::max(collective.operand(0)->shape().ByteSize(), collective.shape().ByteSize());
}

bool IsCombinable(const Instruction& instruction, const Limits& limits) {
  const bool reduces = instruction.Is(Opcode::kAllReduce) || instruction.Is(Opcode::kReduceScatter);
  if ((!reduces && !instruction.Is(Opcode::kAllGather)) || instruction.operand_count() != 1) return false;
  if (!instruction.control_predecessors().empty() || !instruction.control_successors().empty()) return false;
  return BytesOf(instruction) <= limits.small && (!reduces || hlo::ReducerOpcode(*instruction.called()).has_value());
}

// What must be equal for two to become one. The level is the number of collectives on the longest path before: those of
// one level cannot depend on each other, and combining them makes no cycle.
struct Key {
  int64_t level;
  Opcode opcode;
  std::optional<Opcode> reducer;
  std::optional<int64_t> dimension;
  hlo::ElementType type;
  bool has_channel, global_ids;
  std::vector<std::vector<int64_t>> groups;
  auto operator<=>(const Key&) const = default;
};

Key KeyOf(const Instruction& instruction, int64_t level) {
  const auto& collective = instruction.As<hlo::attr::Collective>();
  const bool reduces = !instruction.called_computations().empty();
  return {level,
          instruction.opcode(),
          reduces ? hlo::ReducerOpcode(*instruction.called()) : std::nullopt,
          collective.dimension,
          instruction.shape().element_type(),
          collective.channel_id.has_value(),
          collective.use_global_device_ids,
          collective.replica_groups.Expanded()};
}

std::vector<std::vector<Instruction*>> CombinableSets(const std::vector<Instruction*>& order, const Limits& limits) {
  std::unordered_map<const Instruction*, int64_t> levels;
  std::map<Key, std::vector<Instruction*>> sets;
  std::vector<std::vector<Instruction*>> full;
  for (Instruction* instruction : order) {
    int64_t level = 0;
    const auto after = [&](const Instruction* before) {
      level = std::max(level, levels[before] + (before->HasSideEffect() ? 1 : 0));
    };
    for (const Instruction* operand : instruction->operands()) after(operand);
    for (const Instruction* predecessor : instruction->control_predecessors()) after(predecessor);
    levels[instruction] = level;
    if (!IsCombinable(*instruction, limits)) continue;
    std::vector<Instruction*>& set = sets[KeyOf(*instruction, level)];
    int64_t bytes = BytesOf(*instruction);
    for (const Instruction* member : set) bytes += BytesOf(*member);
    if (bytes > limits.combined) full.push_back(std::exchange(set, {}));
    set.push_back(instruction);
  }
  for (auto& [key, set] : sets) full.push_back(std::move(set));
  std::erase_if(full, [](const auto& set) { return set.size() < 2; });
  return full;
}

void Combine(hlo::Computation* computation, const std::vector<Instruction*>& set) {
  std::vector<Instruction*> operands;
  for (const Instruction* member : set) operands.push_back(member->operand(0));
  hlo::Builder build(computation, set[0]);
  Instruction* combined = build.Make(set[0]->opcode(), operands, set[0]->attributes(), set[0]->called_computations());
  // Made before the first is replaced, whose metadata they take.
  std::vector<Instruction*> elements;
  for (size_t i = 0; i < set.size(); ++i) elements.push_back(build.GetTupleElement(combined, static_cast<int64_t>(i)));
  for (size_t i = 0; i < set.size(); ++i) computation->Replace(set[i], elements[i]);
}

}  // namespace

bool CombineCollectives::Run(hlo::Module& module, PassContext& context) {
  // Devices of several kinds must come to the same collectives, whatever each of them measured.
  const bool mixed = module.frontend_attributes.contains(spmd::kMixedDevices);
  const Limits limits(mixed ? spmd::Link{} : spmd::LinkOf(context.device));
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    const auto sets = CombinableSets(computation->PostOrder(), limits);
    for (const std::vector<Instruction*>& set : sets) Combine(computation, set);
    if (!sets.empty()) computation->SetOrder(computation->PostOrder());
    changed |= !sets.empty();
  }
  return changed;
}

}  // namespace hlorun::passes
