// The one form of `dot` that kernels see, after CanonicalizeDots.
//
//   [M,K] or [K,M]  by  [K,N] or [N,K]  ->  [M,N]
//   [B,M,K] or [B,K,M]  by  [B,K,N] or [B,N,K]  ->  [B,M,N]
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/instruction.h"

namespace hlorun::passes {

struct DotForm {
  int64_t batch = 1;
  bool has_batch_dimension = false;
  int64_t m = 0, n = 0, k = 0;
  bool lhs_transposed = false;  // [K,M]
  bool rhs_transposed = false;  // [N,K]
};

// Nullopt when `dot` is no dot of that form.
std::optional<DotForm> DotFormOf(const hlo::Instruction& dot);

}  // namespace hlorun::passes
