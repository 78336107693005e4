#include "passes/memory/schedule_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "hlo/module.h"
#include "passes/kernel_model.h"
#include "passes/memory/dataflow.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Order = ScheduleGraph::Order;

bool IsDonated(const Instruction& parameter) {
  const auto& aliases = parameter.module()->input_output_alias;
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](const hlo::AliasEntry& entry) { return entry.parameter == parameter.parameter_number(); });
}

}  // namespace

ScheduleGraph::ScheduleGraph(const hlo::Computation& computation, const KernelModel& kernels, const CalledPeaks& peaks)
    : instructions_(computation.PostOrder()),
      nodes_(instructions_.size()),
      is_entry_(computation.module()->entry() == &computation) {
  for (size_t i = 0; i < instructions_.size(); ++i) index_[instructions_[i]] = static_cast<int>(i);
  int last_effect = -1;
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction* instruction = instructions_[i];
    const int node = static_cast<int>(i);
    for (const Instruction* operand : instruction->operands()) AddEdge(index_.at(operand), node);
    for (const Instruction* before : instruction->control_predecessors()) AddEdge(index_.at(before), node);
    if (instruction->HasSideEffect() && !instruction->Is(Opcode::kAsyncDone)) {
      if (last_effect >= 0) AddEdge(last_effect, node);
      last_effect = node;
    }
    AddArrays(node, kernels, peaks);
  }
  const Node& root = nodes_[static_cast<size_t>(index_.at(computation.root()))];
  for (const size_t array : root.holds) arrays_[array].is_result = true;
}

Order ScheduleGraph::TextOrder() const {
  Order order(size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order ScheduleGraph::DepthFirst() const {
  std::vector<int64_t> need(size());
  for (size_t i = 0; i < size(); ++i) {
    std::vector<std::pair<int64_t, int64_t>> operands;  // need, bytes that stay
    for (const int before : nodes_[i].before) operands.push_back({need[static_cast<size_t>(before)], Defined(before)});
    std::sort(operands.begin(), operands.end(),
              [](const auto& a, const auto& b) { return a.first - a.second > b.first - b.second; });
    int64_t held = 0;
    for (const auto& [peak, stays] : operands) {
      need[i] = std::max(need[i], held + peak);
      held += stays;
    }
    need[i] = std::max(need[i], held + Defined(static_cast<int>(i)) + nodes_[i].transient);
  }
  Order order;
  std::vector<bool> done(size());
  const auto is_done = [&](int node) { return static_cast<bool>(done[static_cast<size_t>(node)]); };
  for (size_t sink = 0; sink < size(); ++sink) {
    if (!nodes_[sink].after.empty()) continue;
    std::vector<int> stack = {static_cast<int>(sink)};
    while (!stack.empty()) {
      const int top = stack.back();
      std::vector<int> waiting;
      for (const int before : nodes_[static_cast<size_t>(top)].before) {
        if (!is_done(before)) waiting.push_back(before);
      }
      if (waiting.empty()) {
        stack.pop_back();
        if (!is_done(top)) order.push_back(top);
        done[static_cast<size_t>(top)] = true;
        continue;
      }
      std::stable_sort(waiting.begin(), waiting.end(), [&](int a, int b) {
        return need[static_cast<size_t>(a)] - Defined(a) < need[static_cast<size_t>(b)] - Defined(b);
      });
      stack.insert(stack.end(), waiting.begin(), waiting.end());
    }
  }
  return order;
}

Order ScheduleGraph::Greedy() const {
  Run run(*this);
  std::vector<int> missing(size());
  std::vector<int> ready;
  std::vector<int> since(size(), 0);
  for (size_t i = 0; i < size(); ++i) {
    missing[i] = static_cast<int>(nodes_[i].before.size());
    if (missing[i] == 0) ready.push_back(static_cast<int>(i));
  }
  Order order;
  while (!ready.empty()) {
    size_t best = 0;
    int64_t best_change = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < ready.size(); ++i) {
      const int64_t change = run.Change(ready[i]);
      const bool better =
          change < best_change ||
          (change == best_change && since[static_cast<size_t>(ready[i])] > since[static_cast<size_t>(ready[best])]);
      if (!better) continue;
      best = i;
      best_change = change;
    }
    const int node = ready[best];
    ready.erase(ready.begin() + static_cast<int64_t>(best));
    order.push_back(node);
    run.Step(node);
    for (const int after : nodes_[static_cast<size_t>(node)].after) {
      if (--missing[static_cast<size_t>(after)] > 0) continue;
      since[static_cast<size_t>(after)] = static_cast<int>(order.size());
      ready.push_back(after);
    }
  }
  return order;
}

int64_t ScheduleGraph::PeakOf(const Order& order) const {
  Run run(*this);
  for (const int node : order) run.Step(node);
  return run.peak();
}

int64_t ScheduleGraph::Defined(int node) const {
  int64_t bytes = 0;
  for (const size_t array : nodes_[static_cast<size_t>(node)].defines) bytes += arrays_[array].bytes;
  return bytes;
}

void ScheduleGraph::AddEdge(int before, int after) {
  auto& known = nodes_[static_cast<size_t>(after)].before;
  if (std::find(known.begin(), known.end(), before) != known.end()) return;
  known.push_back(before);
  nodes_[static_cast<size_t>(before)].after.push_back(after);
}

// One element of a tuple.
bool ScheduleGraph::AddPassedOn(Node& node, const Instruction& instruction) {
  const bool is_done = instruction.Is(Opcode::kAsyncDone);
  if (!is_done && !instruction.Is(Opcode::kGetTupleElement)) return false;
  const hlo::Shape& tuple = instruction.operand(0)->shape();
  const auto& all = nodes_[static_cast<size_t>(index_.at(instruction.operand(0)))].holds;
  if (all.size() != static_cast<size_t>(hlo::LeafCount(tuple))) return false;
  const int64_t first = FirstLeafOf(tuple, is_done ? 1 : instruction.tuple_index());
  node.holds.assign(all.begin() + first, all.begin() + first + hlo::LeafCount(instruction.shape()));
  return true;
}

void ScheduleGraph::AddReads(int index, const Instruction& instruction, bool passes_on) {
  Node& node = nodes_[static_cast<size_t>(index)];
  for (const Instruction* operand : instruction.operands()) {
    const auto& from = nodes_[static_cast<size_t>(index_.at(operand))].holds;
    if (passes_on) node.holds.insert(node.holds.end(), from.begin(), from.end());
    if (passes_on && !instruction.Is(Opcode::kWhile)) continue;
    for (const size_t array : from) {
      if (std::find(node.reads.begin(), node.reads.end(), array) != node.reads.end()) continue;
      node.reads.push_back(array);
      arrays_[array].readers.push_back(index);
    }
  }
}

void ScheduleGraph::AddArrays(int index, const KernelModel& kernels, const CalledPeaks& peaks) {
  Node& node = nodes_[static_cast<size_t>(index)];
  const Instruction* instruction = instructions_[static_cast<size_t>(index)];
  if (AddPassedOn(node, *instruction)) {
    // Until it is done, an asynchronous op reads its operands and writes its result.
    if (instruction->Is(Opcode::kAsyncDone)) AddReads(index, *instruction, false);
    return;
  }
  // A loop works on the arrays it is given, as a first approximation.
  const bool is_loop = instruction->Is(Opcode::kWhile), is_start = instruction->Is(Opcode::kAsyncStart);
  const bool passes_on = (instruction->Has(hlo::kTransparent) || is_loop) && instruction->operand_count() > 0;
  AddReads(index, *instruction, passes_on);
  for (const hlo::Computation* callee : instruction->called_computations()) {
    const auto it = peaks.find(callee);
    if (it != peaks.end()) node.transient = std::max(node.transient, it->second);
  }
  if (passes_on) return;
  node.transient += kernels.ScratchBytes(*instruction);
  if (is_start) {
    for (const Instruction* operand : instruction->operands()) {
      const auto& from = nodes_[static_cast<size_t>(index_.at(operand))].holds;
      node.holds.insert(node.holds.end(), from.begin(), from.end());
    }
  }
  // Arguments and constants stay; what a body or branch is given may be overwritten.
  const bool is_parameter = instruction->Is(Opcode::kParameter);
  const bool stays = instruction->IsConstant() || (is_parameter && is_entry_ && !IsDonated(*instruction));
  const hlo::Shape& made = is_start ? instruction->shape().tuple_shape(1) : instruction->shape();
  int64_t leaf = 0;
  hlo::ForEachLeaf(made, [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    node.holds.push_back(arrays_.size());
    if (!stays && !is_parameter) node.defines.push_back(arrays_.size());
    arrays_.push_back({stays ? 0 : shape.ByteSize(), false, {}});
    if (is_parameter) given_bytes_ += arrays_.back().bytes;
    if (!is_start) AddUpdates(node, *instruction, leaf++, shape.ByteSize(), kernels);
  });
}

void ScheduleGraph::AddUpdates(Node& node, const Instruction& instruction, int64_t leaf, int64_t bytes,
                               const KernelModel& kernels) {
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const auto& from = nodes_[static_cast<size_t>(index_.at(instruction.operand(i)))].holds;
    if (from.size() != 1 || instruction.operand(i)->shape().ByteSize() != bytes) continue;
    if (std::find(node.updates.begin(), node.updates.end(), from[0]) != node.updates.end()) continue;
    if (kernels.MayShareBuffer(instruction, i, leaf)) {
      node.updates.push_back(from[0]);
      return;
    }
  }
}

ScheduleGraph::Run::Run(const ScheduleGraph& graph) : graph_(graph), live_(graph.given_bytes_), peak_(live_) {
  for (const Array& array : graph.arrays_) unread_.push_back(array.readers.size());
}

int64_t ScheduleGraph::Run::Change(int node) const { return Fresh(At(node)) - Freed(At(node)); }

int64_t ScheduleGraph::Run::During(int node) const {
  int64_t overwritten = 0;
  for (const size_t array : At(node).updates) overwritten += Dies(array) ? graph_.arrays_[array].bytes : 0;
  return live_ + std::max<int64_t>(Fresh(At(node)) - overwritten, 0) + At(node).transient;
}

void ScheduleGraph::Run::Step(int node) {
  peak_ = std::max(peak_, During(node));
  live_ += Change(node);
  for (const size_t array : At(node).reads) --unread_[array];
}

int64_t ScheduleGraph::Run::Freed(const Node& node) const {
  int64_t bytes = 0;
  for (const size_t array : node.reads) bytes += Dies(array) ? graph_.arrays_[array].bytes : 0;
  return bytes;
}

int64_t ScheduleGraph::Run::Fresh(const Node& node) const {
  int64_t bytes = 0;
  for (const size_t array : node.defines) {
    const Array& defined = graph_.arrays_[array];
    bytes += !defined.readers.empty() || defined.is_result ? defined.bytes : 0;
  }
  return bytes;
}

}  // namespace hlorun::passes
