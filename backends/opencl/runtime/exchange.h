// A collective that runs while the device computes, on a thread of the lane's.
#pragma once

#include <atomic>
#include <exception>

namespace hlorun::opencl {

// Shared by the thread that runs the collective and the one that waits for it.
struct Exchange {
  std::exception_ptr error;  // before `done` is true
  std::atomic<bool> done{false};
};

}  // namespace hlorun::opencl
