// Conformance cases on a device, held against the evaluator.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "driver/include/hlorun/hlorun.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {

struct Outcome {
  std::string name;
  enum class Kind { kAgrees, kDiffers, kRefused } kind = Kind::kAgrees;
  std::string message;  // of a difference, or the error
};

// Compiles all cases as one module; where that fails, halves of them, so that one refused case does not hide the rest.
// Cases that the evaluator itself refuses are left out.
// `candidate`: run each product that a tuner may choose a schedule for by this one of its candidates (modulo how many
// there are); negative: as the options say.
// `flushes_denormals`: denormals in inputs and results count as zeros: for devices that keep some of them, where
// XLA:CPU and the evaluator flush them.
std::vector<Outcome> Sweep(Client& client, std::span<const Case> cases, const CompileOptions& options,
                           int64_t candidate = -1, bool flushes_denormals = false);

}  // namespace hlorun::conformance
