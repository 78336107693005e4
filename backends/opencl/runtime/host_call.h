// Steps that the host computes: a table of functions by custom-call target.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

class ThunkRunner;

// Reads operands, writes results; both lie in host memory, row-major.
using HostCall = std::function<void(const HostCallThunk& call, std::span<const std::byte* const> operands,
                                    std::span<std::byte* const> results)>;
using HostCallTable = std::map<std::string, HostCall>;

// The queue has been waited for. Throws kUnimplemented naming the target when the run's table lacks it.
void RunHostCall(const HostCallThunk& call, ThunkRunner& runner);

}  // namespace hlorun::opencl
