// A reducer, comparator or combiner, compiled to lane operations: called on many scalars at once, or on one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hlo/evaluator/evaluation.h"

namespace hlorun::hlo {

// Applies a computation over scalars to `count` independent sets of arguments. Computations of elementwise ops,
// constants and tuples run as loops over lanes; anything else (control flow, arrays inside) through Evaluation, slowly.
class ScalarFunction {
 public:
  // Widened: parameters and results of narrow floating types are handed over in f32, and nothing is rounded to them
  // inside. Only where IsLanes().
  ScalarFunction(Evaluation& evaluation, const Computation& computation, bool widened = false);
  ~ScalarFunction();

  // False: the computation is not one of lanes, or converts types itself.
  bool IsLanes() const { return program_ != nullptr; }

  // inputs[i] holds count elements of parameter i; results[j] receives the j-th leaf of the root. A result may be an
  // input's storage.
  void Run(std::span<const void* const> inputs, std::span<void* const> results, int64_t count);

 private:
  struct LaneProgram;
  void RunOneByOne(std::span<const void* const> inputs, std::span<void* const> results, int64_t count);

  Evaluation& evaluation_;
  const Computation& computation_;
  std::unique_ptr<LaneProgram> program_;  // null: not expressible as lanes
};

// The opcode when `computation` is exactly op(x, y) of its two parameters, in either order where op commutes.
std::optional<Opcode> SingleOpcode(const Computation& computation);

}  // namespace hlorun::hlo
