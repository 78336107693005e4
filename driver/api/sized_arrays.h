// Arrays of actual size in front of a plan whose arrays have the size of their bounds.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/executable.h"

namespace hlorun {

// An array in memory of its bound's size, kept beside it: one that is given to run after run is copied once.
struct PaddedCopy {
  std::mutex mutex;
  hlo::Dims bound;
  opencl::DeviceArray array;
};

// For one run. The plan must outlive it.
class SizedArrays {
 public:
  SizedArrays(const opencl::Plan& plan, std::shared_ptr<opencl::DeviceContext> context)
      : plan_(plan), context_(std::move(context)) {}

  // Puts arrays that are smaller than their bound into memory of the bound's size (waiting for them), and appends the
  // sizes. copies[i] belongs to arguments[i]; an array that is donated leaves no copy. Arguments have been checked
  // against the bounds. Throws Error when sizes that must be equal are not. `whole`: of arrays of which each device has
  // a part, the dimensions of the whole ones, by argument; empty when there are none.
  //
  // What is beyond the sizes is whatever the memory held. HLORUN_PADDING=nan or =random fills it, for tests.
  void Bind(std::vector<opencl::RunArgument>& arguments, const std::vector<PaddedCopy*>& copies,
            const std::vector<hlo::Dims>& whole) const;

  // Waits, takes the sizes off, and gives each array its actual size: in place where its elements lie at the front of
  // its memory anyway, else as a copy. A plan without sizes is left alone and not waited for.
  struct Compacted {
    std::vector<opencl::DeviceArray> arrays;
    std::vector<int64_t> whole_sizes;  // what the plan's sizes.whole_results are
  };
  Compacted Compact(std::vector<opencl::DeviceArray> results) const;

 private:
  void CheckEqualSizes(const std::vector<hlo::Dims>& dimensions) const;
  int64_t ReadSize(const opencl::DeviceArray& scalar) const;
  opencl::DeviceArray Resized(const opencl::DeviceArray& array, const hlo::Shape& shape, const hlo::Dims& from_bound,
                              const hlo::Dims& to_bound) const;

  const opencl::Plan& plan_;
  std::shared_ptr<opencl::DeviceContext> context_;
};

}  // namespace hlorun
