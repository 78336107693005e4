// One array, dense and as a part of an array of its bound's size.
#pragma once

#include <memory>
#include <mutex>

#include "backends/opencl/runtime/executable.h"

namespace hlorun {

// A program whose dimensions vary reads and writes memory of its bounds' size, where rows lie as far apart as the
// bounds say; everything else wants elements one after another. Each of the two is made from the other when it is first
// asked for, and kept: an array that is given to run after run is copied once, and one that goes from program to
// program of the same bounds never. Thread-safe. Copies wait for the array.
class BoundedArray {
 public:
  BoundedArray(opencl::DeviceArray dense, std::shared_ptr<opencl::DeviceContext> context);
  // Memory of the shape's size holds an array of these dimensions, none larger than the shape's, from index 0 on.
  BoundedArray(opencl::DeviceArray at_bound, const hlo::Dims& dimensions,
               std::shared_ptr<opencl::DeviceContext> context);
  // A shape alone, of an array that lies elsewhere.
  explicit BoundedArray(hlo::Shape shape) : shape_(std::move(shape)) {}

  const hlo::Shape& shape() const { return *shape_; }
  const opencl::EventRef& ready() const { return ready_; }  // null: now

  opencl::DeviceValue Dense();
  // Beyond the array's own size the memory holds anything. HLORUN_PADDING=nan or =random fills it when a copy is made,
  // for tests.
  opencl::DeviceValue AtBound(const hlo::Dims& bound);
  // For a program that may write it: a copy that this makes is not kept.
  opencl::DeviceValue ToDonate(const hlo::Dims& bound);
  // Writes the elements one after another.
  void ToHost(void* destination);

 private:
  opencl::DeviceValue DenseLocked();
  opencl::DeviceMemory CopyAtBound(const hlo::Dims& bound);
  // Puts the elements where an array of `dimensions` has them, into host memory.
  void WriteTo(std::byte* destination, const hlo::Dims& dimensions);

  opencl::SharedShape shape_;
  opencl::EventRef ready_;
  std::shared_ptr<opencl::DeviceContext> context_;
  bool is_born_dense_ = false;  // then dense_ never changes
  std::mutex mutex_;            // of what follows
  opencl::DeviceMemory dense_;
  opencl::DeviceMemory at_bound_;
  hlo::Dims bound_;  // of at_bound_; where that is empty, nothing
};

}  // namespace hlorun
