// A lane: one in-order queue, a second one for what may run beside it, and the thread that drives runs whose course the
// host decides.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

class RunEvent;

// Everything enqueued in a lane happens in that order, so an array made in a lane needs no waiting for in the same
// lane. Thread-safe. Threads start when first needed.
class Lane {
 public:
  explicit Lane(cl::CommandQueue queue);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const cl::CommandQueue& queue() const { return queue_; }
  // In-order as well, of the same device; made on first use; null where the device makes none. Whoever enqueues there
  // has it wait for the lane's queue before, and the lane's queue for it behind, so that the lane keeps its order.
  const cl::CommandQueue& second_queue();
  // Waits until nothing is left in either, whatever became of it.
  void Drain();

  // Runs `work` in the calling thread when nothing posted is outstanding, keeping the lane's order; false otherwise.
  bool RunInline(const std::function<void()>& work);
  // The same, when nothing is in flight either.
  template <typename Work>
  bool RunAlone(const Work& work) {
    std::lock_guard lock(order_);
    if (!Quiet()) return false;
    work();
    return true;
  }
  // Runs `work` on the lane's thread, after all that was posted before.
  void Post(std::function<void()> work);
  // Runs `work` on the thread for exchanges with other devices, after all that was posted there before.
  void PostExchange(std::function<void()> work);
  // Waits for the event on a thread of its own, in order of calls, so that its callbacks run.
  void Watch(std::shared_ptr<RunEvent> event);
  // Calls a run's callback on the thread for these: whoever notices a run's end may hold locks, or be the one that the
  // callback's own runs need.
  void Call(std::function<void()> callback);
  // Remembers a run in flight; at most kRunsInFlight are, the oldest is waited for beyond that.
  void Admit(std::shared_ptr<RunEvent> event);
  // Lets go of what finished runs hold. Returns whether none is in flight.
  bool Reap();

 private:
  // Nothing posted is outstanding, nothing in flight.
  bool Quiet();

  struct Worker;
  static constexpr size_t kRunsInFlight = 4;

  cl::CommandQueue queue_, second_queue_;
  std::once_flag has_second_queue_;
  std::mutex order_;  // held while work runs inline
  std::unique_ptr<Worker> driver_, watcher_, exchanger_, caller_;
  std::mutex flight_mutex_;
  std::atomic<size_t> flying_ = 0;  // how many are in flight, for a look without the lock
  std::deque<std::shared_ptr<RunEvent>> in_flight_;
};

}  // namespace hlorun::opencl
