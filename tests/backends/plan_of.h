// Module text -> plan, and the thunks of one kind in it. For tests.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "backends/opencl/compiler.h"
#include "backends/opencl/plan.h"
#include "hlo/text/parser.h"

namespace hlorun::opencl {

inline Plan PlanOf(std::string_view text, const CompileOptions& options = {}, const DeviceSpec& device = {}) {
  const auto module = hlo::ParseModule(text);
  return CompileModule(*module, device, options).plan;
}

template <typename Work>
std::vector<const Work*> ThunksOf(const Sequence& sequence) {
  std::vector<const Work*> found;
  for (const Thunk& thunk : sequence.thunks) {
    if (const auto* work = std::get_if<Work>(&thunk.work)) found.push_back(work);
  }
  return found;
}

}  // namespace hlorun::opencl
