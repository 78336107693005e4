// Clusters: which instructions of a computation become one kernel.
//
// Every instruction either is materialised (a kernel writes it to memory) or inlined into all kernels that read it. So
// a cluster is a materialised root with all that is inlined into it, instructions may belong to several clusters, and
// no choice can make a cycle. Clusters are then joined where neither needs the other's results through a third.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "hlo/computation.h"

#include "passes/kernel_model.h"

namespace hlorun::passes {

struct Cluster {
  std::vector<hlo::Instruction*> roots;    // one, or several of what was joined
  std::vector<hlo::Instruction*> members;  // roots included, users before operands
  // The reduce, pooling, dot or convolution whose epilogue the other members at the root's place are, or the pooling's
  // gradient that a loop finishes; null for a plain loop.
  hlo::Instruction* hero = nullptr;
  std::unordered_set<const hlo::Instruction*> is_member;
  // Operands that are not members. Scalar constants count as neither, each fusion has copies of those that it needs;
  // nor do their broadcasts that are no members yet.
  std::unordered_set<const hlo::Instruction*> reads;

  bool NeedsOutline() const;  // otherwise it is one instruction that runs as it is
};

bool IsScalarConstant(const hlo::Instruction& instruction);

// Members that a kernel computes: all but scalar constants in an array's shape, of which a polynomial (erfc) has as
// many as it has steps.
size_t OperationsIn(const std::vector<hlo::Instruction*>& members);

// Kernels stay compilable: PoCL's time grows faster than linearly beyond, while a chain that is cut takes as many
// kernels and arrays as values cross the cut (two erfcs: 22 kernels in 0.87 s where one takes 0.63, and is 1.4 times as
// fast).
inline constexpr size_t kMaxClusterOperations = 192;
inline constexpr size_t kMaxClusterReads = 20;

// Of all instructions of `computation` that run as kernels, those that can take part in fusions.
std::vector<Cluster> FindClusters(hlo::Computation& computation, const KernelModel& kernels);

// Joins clusters that reduce the same dimensions of arrays of the same dimensions, share a large operand, and do not
// depend on each other: batch normalisation's sum(x) and sum(x * x) read x once.
void MergeSiblingReductions(std::vector<Cluster>& clusters);

// Replaces a cluster of several instructions by a fusion.
void Outline(const Cluster& cluster);

}  // namespace hlorun::passes
