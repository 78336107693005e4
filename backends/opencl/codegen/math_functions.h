// Elementary functions of f32 as OpenCL C of our own, and fmod of f32 and f64.
//
// The built-ins of PoCL and of Intel's runtime differ from each other, some by more than 4 ulp, and some go wrong where
// one lane of a vector is huge; these give the same bits on every device that has fma. Accuracy is in docs/numerics.md.
// Denormals are zero, as everywhere; where XLA:CPU returns tiny arguments as they are, so do these.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

struct MathFunction {
  std::string_view name;  // the built-in that it stands for: "exp"
  hlo::ElementType type;  // of arguments and result
  // OpenCL C for any number of lanes: @F, @I, @U are float, int, uint of n lanes (@n); NAME the function; @?(c, a, b)
  // picks by lane; @{exp} another function of this table with as many lanes; @any(c) whether c holds in some lane.
  std::string_view source;
  std::vector<std::string_view> uses = {};  // other functions of this table
  std::string_view by_assembly = {};        // for 16 lanes where x86's AVX-512 may be used; empty: `source`
};

// Null where the built-in is good enough.
const MathFunction* FindMathFunction(std::string_view builtin, hlo::ElementType type);

}  // namespace hlorun::opencl
