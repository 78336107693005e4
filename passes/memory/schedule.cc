#include "passes/memory/schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "passes/kernel_model.h"
#include "passes/memory/dataflow.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

using Order = std::vector<int>;  // nodes

// A computation as a graph of nodes, numbered in a topological order, and the arrays that live between them.
class Graph {
 public:
  Graph(const hlo::Computation& computation, const KernelModel& kernels,
        const std::unordered_map<const hlo::Computation*, int64_t>& peaks)
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
      if (instruction->HasSideEffect()) {
        if (last_effect >= 0) AddEdge(last_effect, node);
        last_effect = node;
      }
      AddArrays(node, kernels, peaks);
    }
    const Node& root = nodes_[static_cast<size_t>(index_.at(computation.root()))];
    for (const size_t array : root.holds) arrays_[array].is_result = true;
  }

  size_t size() const { return nodes_.size(); }
  int64_t given_bytes() const { return given_bytes_; }
  Instruction* instruction(int node) const { return instructions_[static_cast<size_t>(node)]; }

  Order TextOrder() const {
    Order order(size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  // Depth first from the sinks, operands with the largest subtree peak first (Sethi and Ullman's order for trees).
  Order DepthFirst() const {
    std::vector<int64_t> need(size());
    for (size_t i = 0; i < size(); ++i) {
      std::vector<std::pair<int64_t, int64_t>> operands;  // need, bytes that stay
      for (const int before : nodes_[i].before)
        operands.push_back({need[static_cast<size_t>(before)], Defined(before)});
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

  // Runs next what changes the live bytes best; between equals, what became ready last (its operands are still in
  // cache), then the text's order.
  Order Greedy() const {
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

  int64_t PeakOf(const Order& order) const {
    Run run(*this);
    for (const int node : order) run.Step(node);
    return run.peak();
  }

 private:
  struct Array {
    int64_t bytes = 0;
    bool is_result = false;
    std::vector<int> readers;
  };
  struct Node {
    std::vector<int> before, after;
    std::vector<size_t> defines;
    std::vector<size_t> holds;  // arrays its leaves name: its own, or its operands' when it moves no data
    std::vector<size_t> reads;
    std::vector<size_t> updates;  // of those, what it may overwrite with its result
    int64_t transient = 0;        // scratch, peak of called computations
  };

  // Execution of a prefix of an order.
  class Run {
   public:
    explicit Run(const Graph& graph) : graph_(graph), live_(graph.given_bytes_), peak_(live_) {
      for (const Array& array : graph.arrays_) unread_.push_back(array.readers.size());
    }
    // Live bytes after `node` minus before.
    int64_t Change(int node) const {
      const Node& it = graph_.nodes_[static_cast<size_t>(node)];
      return Fresh(it) - Freed(it);
    }
    void Step(int node) {
      const Node& it = graph_.nodes_[static_cast<size_t>(node)];
      const int64_t freed = Freed(it);
      int64_t overwritten = 0;
      for (const size_t array : it.updates) overwritten += Dies(array) ? graph_.arrays_[array].bytes : 0;
      const int64_t fresh = Fresh(it);
      peak_ = std::max(peak_, live_ + std::max<int64_t>(fresh - overwritten, 0) + it.transient);
      live_ += fresh - freed;
      for (const size_t array : it.reads) --unread_[array];
    }
    int64_t peak() const { return peak_; }

   private:
    bool Dies(size_t array) const { return unread_[array] == 1 && !graph_.arrays_[array].is_result; }
    int64_t Freed(const Node& node) const {
      int64_t bytes = 0;
      for (const size_t array : node.reads) bytes += Dies(array) ? graph_.arrays_[array].bytes : 0;
      return bytes;
    }
    int64_t Fresh(const Node& node) const {
      int64_t bytes = 0;
      for (const size_t array : node.defines) {
        const Array& defined = graph_.arrays_[array];
        bytes += !defined.readers.empty() || defined.is_result ? defined.bytes : 0;
      }
      return bytes;
    }
    const Graph& graph_;
    std::vector<size_t> unread_;
    int64_t live_, peak_;
  };

  int64_t Defined(int node) const {
    int64_t bytes = 0;
    for (const size_t array : nodes_[static_cast<size_t>(node)].defines) bytes += arrays_[array].bytes;
    return bytes;
  }

  void AddEdge(int before, int after) {
    auto& known = nodes_[static_cast<size_t>(after)].before;
    if (std::find(known.begin(), known.end(), before) != known.end()) return;
    known.push_back(before);
    nodes_[static_cast<size_t>(before)].after.push_back(after);
  }

  void AddArrays(int index, const KernelModel& kernels,
                 const std::unordered_map<const hlo::Computation*, int64_t>& peaks) {
    Node& node = nodes_[static_cast<size_t>(index)];
    const Instruction* instruction = instructions_[static_cast<size_t>(index)];
    const auto held = [&](const Instruction* operand) -> const std::vector<size_t>& {
      return nodes_[static_cast<size_t>(index_.at(operand))].holds;
    };
    if (instruction->Is(Opcode::kGetTupleElement) &&
        held(instruction->operand(0)).size() == static_cast<size_t>(hlo::LeafCount(instruction->operand(0)->shape()))) {
      const int64_t first = FirstLeafOf(instruction->operand(0)->shape(), instruction->tuple_index());
      const auto& all = held(instruction->operand(0));
      node.holds.assign(all.begin() + first, all.begin() + first + hlo::LeafCount(instruction->shape()));
      return;
    }
    // A loop works on the arrays it is given, as a first approximation.
    const bool is_loop = instruction->Is(Opcode::kWhile);
    const bool passes_on = (instruction->Has(hlo::kTransparent) || is_loop) && instruction->operand_count() > 0;
    for (const Instruction* operand : instruction->operands()) {
      const auto& from = held(operand);
      if (passes_on) node.holds.insert(node.holds.end(), from.begin(), from.end());
      if (passes_on && !is_loop) continue;
      for (const size_t array : from) {
        if (std::find(node.reads.begin(), node.reads.end(), array) != node.reads.end()) continue;
        node.reads.push_back(array);
        arrays_[array].readers.push_back(index);
      }
    }
    for (const hlo::Computation* callee : instruction->called_computations()) {
      const auto it = peaks.find(callee);
      if (it != peaks.end()) node.transient = std::max(node.transient, it->second);
    }
    if (passes_on) return;
    node.transient += kernels.ScratchBytes(*instruction);
    // Arguments and constants stay; what a body or branch is given may be overwritten.
    const bool is_parameter = instruction->Is(Opcode::kParameter);
    const bool stays = instruction->IsConstant() || (is_parameter && is_entry_ && !IsDonated(*instruction));
    int64_t leaf = 0;
    hlo::ForEachLeaf(instruction->shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
      node.holds.push_back(arrays_.size());
      if (!stays && !is_parameter) node.defines.push_back(arrays_.size());
      arrays_.push_back({stays ? 0 : shape.ByteSize(), false, {}});
      if (is_parameter) given_bytes_ += arrays_.back().bytes;
      AddUpdates(node, *instruction, leaf++, shape.ByteSize(), kernels);
    });
  }

  static bool IsDonated(const Instruction& parameter) {
    const auto& aliases = parameter.module()->input_output_alias;
    return std::any_of(aliases.begin(), aliases.end(),
                       [&](const hlo::AliasEntry& entry) { return entry.parameter == parameter.parameter_number(); });
  }

  void AddUpdates(Node& node, const Instruction& instruction, int64_t leaf, int64_t bytes, const KernelModel& kernels) {
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

  std::vector<Instruction*> instructions_;
  std::vector<Node> nodes_;
  std::vector<Array> arrays_;
  std::unordered_map<const Instruction*, int> index_;
  bool is_entry_;
  int64_t given_bytes_ = 0;  // of parameters that may be overwritten
};

}  // namespace

bool Schedule::Run(hlo::Module& module, PassContext& context) {
  std::unordered_map<const hlo::Computation*, int64_t> peaks;
  bool changed = !module.is_scheduled;
  for (hlo::Computation* computation : module.ControlComputations()) {
    const Graph graph(*computation, context.kernels, peaks);
    Order best;
    int64_t best_peak = std::numeric_limits<int64_t>::max();
    for (const Order& order : {graph.TextOrder(), graph.DepthFirst(), graph.Greedy()}) {
      const int64_t peak = graph.PeakOf(order);
      if (peak >= best_peak) continue;
      best = order;
      best_peak = peak;
    }
    peaks[computation] = best_peak - graph.given_bytes();
    std::vector<Instruction*> order;
    for (const int node : best) order.push_back(graph.instruction(node));
    size_t position = 0;
    for (const auto& instruction : computation->instructions()) changed |= instruction.get() != order[position++];
    computation->SetOrder(order);
  }
  module.is_scheduled = true;
  return changed;
}

}  // namespace hlorun::passes
