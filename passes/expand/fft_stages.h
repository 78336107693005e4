// A transform of n points as one kernel makes it: stages of small transforms between two arrays (Stockham's ordering,
// in which no stage permutes and the result ends in order; G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th
// ed., 1.4).
//
// Stage with radix r, after stages whose radices multiply to s, m = n / (r s): for p < m and q < s,
//   y[q + s (r p + k)] = w^(p k) sum over j of e^(-2 pi i j k / r) x[q + s (p + m j)],   w = e^(-2 pi i / (r m)).
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/literal.h"

namespace hlorun::passes {

// What the passes call the kernel: operands real part, imaginary part (both [batch, n], or both [batch, n, columns])
// and FftTable(n); the result is a tuple of both parts of the forward transforms along the n, not normalised.
inline constexpr const char* kFftTarget = "hlorun.fft";

struct FftStage {
  int64_t radix, groups, stride;  // r, m, s
  // Stages of short strides are walked along p and q at once, so that vectors are long; their factors are stored once
  // for each element then, not once for each p.
  bool by_element;
  int64_t table;  // where its factors begin: (radix - 1) rows, of groups (* stride) each; none where groups is 1
  int64_t factors() const { return groups == 1 ? 0 : (radix - 1) * factors_per_row(); }
  int64_t factors_per_row() const { return by_element ? groups * stride : groups; }
};

// Empty where n has a prime factor that no stage has.
std::vector<FftStage> FftStagesOf(int64_t n);

// The factors w^(p k) of all stages: [2, factors], real parts, then imaginary ones.
hlo::Literal FftTable(hlo::ElementType type, const std::vector<FftStage>& stages);

// Lets the evaluator run kFftTarget.
void RegisterFftEvaluator();

}  // namespace hlorun::passes
