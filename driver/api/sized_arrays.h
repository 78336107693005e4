// Arrays of actual size in front of a plan whose arrays have the size of their bounds.
#pragma once

#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/executable.h"
#include "driver/api/array_impl.h"

namespace hlorun {

// Of one executable. Thread-safe. The plan and the context must outlive it.
class SizedArrays {
 public:
  SizedArrays(const opencl::Plan& plan, const std::shared_ptr<opencl::DeviceContext>& context)
      : plan_(plan), context_(context) {}

  // The plan's arguments: the arrays as their parameters' bounds lay them out, and the sizes. Arrays have been checked
  // against the bounds. Throws Error when sizes that must be equal are not. `donate` may be shorter than the arrays.
  // `whole`: of arrays of which each device has a part, the dimensions of the whole ones, by argument; empty when there
  // are none. The list lies in `room`.
  std::pmr::vector<opencl::RunArgument> Bind(const std::vector<Array>& arrays, const std::vector<bool>& donate,
                                             const std::vector<hlo::Dims>& whole,
                                             std::pmr::memory_resource* room) const;

  // Takes the sizes off a plan's results (waiting for them) and says with each array what its own size is. Nothing is
  // copied. Results of a plan without sizes are not waited for. `results` are moved from.
  struct Results {
    std::vector<Array> arrays;
    std::vector<int64_t> whole_sizes;  // what the plan's sizes.whole_results are
  };
  Results Measure(std::span<opencl::DeviceArray> results) const;

 private:
  void CheckEqualSizes(const std::vector<hlo::Dims>& dimensions) const;
  int64_t ReadSize(const opencl::DeviceArray& scalar) const;

  const opencl::Plan& plan_;
  const std::shared_ptr<opencl::DeviceContext>& context_;
};

}  // namespace hlorun
