// The accumulation that reduce, reduce-window, select-and-scatter, scatter and reducing collectives share.
//
// A narrow float is held in f32 throughout. A wide sum or product of floats is accumulated in f64 and rounded once:
// XLA:CPU accumulates bf16 and f16 in f32 and chooses its own order for f32, so the exact value is the best statement
// of what all orders approximate. Scatters combine one update at a time and round each time.
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
  enum class Rounding { kOnce, kAtEachStep };
  Reducer(Evaluation& evaluation, const Computation& computation, Rounding rounding = Rounding::kOnce);

  int64_t arity() const { return static_cast<int64_t>(types_.size()); }
  // The type in which accumulator i is handed to Run.
  ElementType accumulator_type(int64_t i) const { return types_[static_cast<size_t>(i)]; }
  // `array` rounded to the type that the computation declares for accumulator or value i, in the type that Run takes.
  Literal AsAccumulator(int64_t i, const Literal& array) const;
  Literal AsValue(int64_t i, const Literal& array) const;
  // True when the order of accumulation cannot be seen in the result (beyond rounding of f64).
  bool associates() const { return associates_; }

  // accumulators[i][k] = computation(accumulators[.][k], values[.][k]) for k < count.
  void Run(std::span<void* const> accumulators, std::span<const void* const> values, int64_t count);

 private:
  // Sets the kernel when the computation is one associative op.
  void Specialise(const Computation& computation, Rounding rounding);

  std::unique_ptr<ScalarFunction> function_;
  LaneKernel kernel_ = nullptr;  // of a single opcode; null: function_
  int bits_ = 0;
  bool associates_ = false;
  const Computation& computation_;
  std::vector<ElementType> types_, value_types_;  // as Run takes them
};

}  // namespace hlorun::hlo
