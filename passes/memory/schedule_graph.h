// A computation as a graph of nodes, numbered in a topological order (the text's), and the arrays that live between
// them: what orders of execution are made of and judged by.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

class KernelModel;

// Most bytes that a called computation adds to those that are live around its call.
using CalledPeaks = std::unordered_map<const hlo::Computation*, int64_t>;

// Instructions with side effects keep their order, so that all ranks of a job communicate in the same one; the done of
// an asynchronous pair is tied to its start alone.
class ScheduleGraph {
 public:
  using Order = std::vector<int>;  // nodes
  class Run;

  ScheduleGraph(const hlo::Computation& computation, const KernelModel& kernels, const CalledPeaks& peaks);

  size_t size() const { return nodes_.size(); }
  int64_t given_bytes() const { return given_bytes_; }
  hlo::Instruction* instruction(int node) const { return instructions_[static_cast<size_t>(node)]; }
  const std::vector<int>& before(int node) const { return nodes_[static_cast<size_t>(node)].before; }
  const std::vector<int>& after(int node) const { return nodes_[static_cast<size_t>(node)].after; }
  int64_t PeakOf(const Order& order) const;

  Order TextOrder() const;
  // Depth first from the sinks, operands with the largest subtree peak first (Sethi and Ullman's order for trees).
  Order DepthFirst() const;
  // Runs next what changes the live bytes best; between equals, what became ready last (its operands are still in
  // cache), then the text's order.
  Order Greedy() const;

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

  int64_t Defined(int node) const;
  void AddEdge(int before, int after);
  void AddArrays(int index, const KernelModel& kernels, const CalledPeaks& peaks);
  bool AddPassedOn(Node& node, const hlo::Instruction& instruction);
  void AddReads(int index, const hlo::Instruction& instruction, bool passes_on);
  void AddUpdates(Node& node, const hlo::Instruction& instruction, int64_t leaf, int64_t bytes,
                  const KernelModel& kernels);

  std::vector<hlo::Instruction*> instructions_;
  std::vector<Node> nodes_;
  std::vector<Array> arrays_;
  std::unordered_map<const hlo::Instruction*, int> index_;
  bool is_entry_;
  int64_t given_bytes_ = 0;  // of parameters that may be overwritten
};

// Execution of a prefix of an order.
class ScheduleGraph::Run {
 public:
  explicit Run(const ScheduleGraph& graph);
  // Live bytes after `node` minus before.
  int64_t Change(int node) const;
  // Live bytes while `node` runs.
  int64_t During(int node) const;
  void Step(int node);
  int64_t peak() const { return peak_; }

 private:
  const Node& At(int node) const { return graph_.nodes_[static_cast<size_t>(node)]; }
  bool Dies(size_t array) const { return unread_[array] == 1 && !graph_.arrays_[array].is_result; }
  int64_t Freed(const Node& node) const;
  int64_t Fresh(const Node& node) const;

  const ScheduleGraph& graph_;
  std::vector<size_t> unread_;
  int64_t live_, peak_;
};

}  // namespace hlorun::passes
