// fft becomes a kernel of stages (fft_stages.h) where the device has one, on a real array by pairs of its elements; else
// real matrix products. A transform of n = a b points is b transforms of a points, factors, and a transforms of b points
// (Cooley and Tukey): down to what a kernel takes, or to the prime factors, grouped so that the products are not tiny.
//
// Where a prime factor is large, all n points are a convolution (chirp.h), by transforms of other lengths.
//
// All four kinds, over one to three dimensions.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandFft : public Pass {
 public:
  std::string_view name() const override { return "expand-fft"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
