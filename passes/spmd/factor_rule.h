// Factor rules: which dimensions of an op's operands and results are the same loop, and what cutting that loop takes.
//
//   dot f32[B,M,K] x f32[B,K,N]:  operands [b,m,k] [b,k,n], result [b,m,n]; b, m, n parallel, k reduced
//   reshape f32[8,6] -> f32[48]:  operand [f0,f1], result [f0 f1] (a dimension of two factors, major first)
//
// Propagation, partitioning and cost read nothing else of an op. A dimension without factors stays whole.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes::spmd {

enum class FactorKind : uint8_t {
  kParallel,  // each part of the results needs the same part of the operands, nothing more
  kReduced,   // of operands only: the parts' results are combined by the op's reducer
  kWindow,    // operand and result are cut alike, but a part needs some of its neighbours' elements
  kSelected,  // of operands only: run-time indices pick from it; each part picks what it has, the sum has all
  kUpdated,   // operand and result are cut alike; run-time indices are moved by the part's offset
  kBlocked,   // cannot be cut
};

struct FactorRule {
  struct Factor {
    int64_t size = 1;
    FactorKind kind = FactorKind::kParallel;
  };
  using Dimension = std::vector<int>;     // factors, major first
  using Tensor = std::vector<Dimension>;  // one entry a dimension

  std::vector<Factor> factors;
  std::vector<Tensor> operands;
  std::vector<Tensor> results;  // leaves of the result
  bool is_known = true;         // false: the op has no rule, everything stays whole
};

// For any instruction whose operands are arrays or tokens. Control flow, tuples and parameters have no rule of their
// own.
FactorRule FactorRuleOf(const hlo::Instruction& instruction);

// The reducer that combines the parts' results along reduced and selected factors; nullopt when they cannot be combined
// by one all-reduce (several results, or an unknown reducer).
std::optional<hlo::Opcode> CombinerOf(const hlo::Instruction& instruction);

}  // namespace hlorun::passes::spmd
