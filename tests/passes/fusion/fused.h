// Fusion as tests of passes ask for it: text in, the kernels that come out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/device_spec.h"
#include "hlo/module.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {

struct Fused {
  std::unique_ptr<hlo::Module> module;
  std::vector<KernelKind> kernels;  // of the entry, in topological order

  // The i-th of them; null beyond.
  const hlo::Instruction* Kernel(size_t i) const;
};

// Fuses an entry of these instructions, which may call the reducers `add` and `max` of f32 and the two of `recurrence`,
// and checks that it still verifies and evaluates to the same bits.
Fused Fuse(const std::string& body, const DeviceSpec& device = {});

}  // namespace hlorun::passes
