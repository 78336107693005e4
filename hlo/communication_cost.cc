#include "hlo/communication_cost.h"

#include <algorithm>

#include "hlo/cost_analysis.h"

namespace hlorun::hlo {
namespace {

enum class Pattern { kReduceAll, kScatter, kGather, kCopy };

struct Row {
  Opcode opcode;
  Pattern pattern;
  const char* name;
};

constexpr Row kRows[] = {
    {Opcode::kAllGather, Pattern::kGather, "all-gather"},
    {Opcode::kAllGatherStart, Pattern::kGather, "all-gather"},
    {Opcode::kAllReduce, Pattern::kReduceAll, "all-reduce"},
    {Opcode::kAllReduceStart, Pattern::kReduceAll, "all-reduce"},
    {Opcode::kAllToAll, Pattern::kScatter, "all-to-all"},
    {Opcode::kCollectiveBroadcast, Pattern::kCopy, "collective-broadcast"},
    {Opcode::kCollectivePermute, Pattern::kCopy, "collective-permute"},
    {Opcode::kCollectivePermuteStart, Pattern::kCopy, "collective-permute"},
    {Opcode::kRaggedAllToAll, Pattern::kScatter, "ragged-all-to-all"},
    {Opcode::kReduceScatter, Pattern::kScatter, "reduce-scatter"},
};

const Row* RowOf(const Instruction& instruction) {
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return instruction.Is(r.opcode); });
  return row == std::end(kRows) ? nullptr : row;
}

double GroupSize(const Instruction& instruction) {
  const auto* collective = std::get_if<attr::Collective>(&instruction.attributes());
  if (collective == nullptr) return 2;
  const auto groups = collective->replica_groups.Expanded();
  if (!groups.empty() && !groups[0].empty()) return static_cast<double>(groups[0].size());
  const Module& module = *instruction.module();
  return static_cast<double>(std::max(module.replica_count, module.num_partitions));
}

using Totals = std::map<std::string, double>;

double Sum(const Totals& totals) {
  double sum = 0;
  for (const auto& [name, bytes] : totals) sum += bytes;
  return sum;
}

Totals TotalsOf(const Computation& computation) {
  Totals totals;
  const auto add = [&](const Totals& inner, double times) {
    for (const auto& [name, bytes] : inner) totals[name] += bytes * times;
  };
  for (const auto& instruction : computation.instructions()) {
    if (const Row* row = RowOf(*instruction)) totals[row->name] += RingBytes(*instruction);
    if (instruction->Is(Opcode::kWhile)) {
      const auto trips = static_cast<double>(KnownTripCount(*instruction).value_or(1));
      for (const Computation* callee : instruction->called_computations()) add(TotalsOf(*callee), trips);
    } else if (instruction->Is(Opcode::kConditional)) {
      Totals most;
      for (const Computation* branch : instruction->called_computations()) {
        Totals inner = TotalsOf(*branch);
        if (Sum(inner) >= Sum(most)) most = std::move(inner);
      }
      add(most, 1);
    } else if (instruction->Is(Opcode::kCall) || instruction->Is(Opcode::kAsyncStart)) {
      add(TotalsOf(*instruction->called()), 1);
    }
  }
  return totals;
}

}  // namespace

double RingBytes(const Instruction& instruction) {
  const Row* row = RowOf(instruction);
  if (row == nullptr) return 0;
  double bytes = 0;
  for (const Instruction* operand : instruction.operands()) bytes += static_cast<double>(operand->shape().ByteSize());
  const double n = GroupSize(instruction);
  switch (row->pattern) {
    case Pattern::kReduceAll: return 2 * bytes * (n - 1) / n;
    case Pattern::kScatter: return bytes * (n - 1) / n;
    case Pattern::kGather: return bytes * (n - 1);
    case Pattern::kCopy: return bytes;
  }
  return 0;
}

std::map<std::string, double> RingBytesByKind(const Module& module) { return TotalsOf(*module.entry()); }

}  // namespace hlorun::hlo
