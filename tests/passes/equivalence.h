// Text in, text out: what tests of passes share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"
#include "passes/kernel_model.h"
#include "passes/pass.h"

namespace hlorun::passes {

enum class Inputs : uint8_t {
  kHarsh,  // NaN, infinities, signed zeros, the extremes of the type
  kMild,   // between -2 and 2, away from where rounding is amplified
};

std::unique_ptr<hlo::Module> Parse(std::string_view text);

// One literal a parameter of the entry computation.
std::vector<hlo::Literal> RandomArguments(const hlo::Module& module, Inputs inputs, uint64_t seed);

struct Tolerance {
  bool exact = true;    // bit for bit, NaN payloads and denormals aside
  double relative = 0;  // to the largest magnitude of the array; scaled up for 16-bit types
};
inline constexpr Tolerance kBitwise{true, 0};
inline constexpr Tolerance kRounding{false, 1e-5};

// Empty when equal, else what differs first.
std::string Difference(const hlo::Literal& expected, const hlo::Literal& actual, const Tolerance& tolerance);

// Runs `pass` on a copy of `before`, verifies the result and expects the same values as before on random arguments.
// Returns the text of the result.
std::string RunAndCompare(std::string_view before, Pass& pass, const Tolerance& tolerance = kBitwise,
                          const KernelModel& kernels = GenericKernelModel());

// As above, without the comparison.
std::unique_ptr<hlo::Module> RunPass(std::string_view before, Pass& pass,
                                     const KernelModel& kernels = GenericKernelModel());

// How many instructions of this opcode all computations hold together.
int64_t Count(const hlo::Module& module, hlo::Opcode opcode);

}  // namespace hlorun::passes
