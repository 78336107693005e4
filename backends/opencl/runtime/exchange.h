// A collective that runs while the device computes, on a thread of the lane's.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace hlorun::opencl {

// Shared by the thread that runs the collective and the one that waits for it, which sleeps: one that yields, as
// std::atomic's wait does first, stays in the scheduler's queue, where who exchanges must get past it.
class Exchange {
 public:
  void Done(std::exception_ptr error = nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    error_ = std::move(error);
    is_done_ = true;
    changed_.notify_all();
  }
  bool is_done() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_done_;
  }
  // What went wrong in it, if anything.
  std::exception_ptr Wait() const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::exception_ptr error_;
  bool is_done_ = false;
};

}  // namespace hlorun::opencl
