// Large products of complex matrices become products of their parts, for which there are fast kernels.
//
//   before: c64[256,256] dot(x, y)
//   after:  complex(dot(real(x), real(y)) - dot(imag(x), imag(y)), dot(real(x), imag(y)) + dot(imag(x), real(y)))
//
// Small ones, and those by a vector, which read more than they multiply, stay as they are. For canonical dots
// (dot_form.h).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SplitComplexDots : public Pass {
 public:
  std::string_view name() const override { return "split-complex-dots"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
