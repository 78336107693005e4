// The accumulation that reduce, reduce-window, select-and-scatter, scatter and reducing collectives share.
//
// A sum or product of floats is accumulated in f64 and rounded once: XLA:CPU accumulates bf16 and f16 in f32 and
// chooses its own order for f32, so the exact value is the best statement of what all orders approximate.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hlo/evaluator/lanes/lane_kernels.h"
#include "hlo/evaluator/scalar_function.h"

namespace hlorun::hlo {

class Reducer {
 public:
  // `computation` takes n accumulators, then n values, and returns n accumulators.
  Reducer(Evaluation& evaluation, const Computation& computation);

  int64_t arity() const { return static_cast<int64_t>(types_.size()); }
  // The type in which accumulator and values i are handed to Run.
  ElementType accumulator_type(int64_t i) const { return types_[static_cast<size_t>(i)]; }
  // True when the order of accumulation cannot be seen in the result (beyond rounding of f64).
  bool associates() const { return associates_; }

  // accumulators[i][k] = computation(accumulators[.][k], values[.][k]) for k < count.
  void Run(std::span<void* const> accumulators, std::span<const void* const> values, int64_t count);

 private:
  ScalarFunction function_;
  LaneKernel kernel_ = nullptr;  // of a single opcode; null: function_
  int bits_ = 0;
  bool associates_ = false;
  std::vector<ElementType> types_;
};

}  // namespace hlorun::hlo
