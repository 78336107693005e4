// The event of one run: holds what the run uses until it is done, and its error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/runtime/executable.h"

namespace hlorun::opencl {

class Lane;

class RunEvent : public Event, public std::enable_shared_from_this<RunEvent> {
 public:
  // `failures` counts runs that fail on the device after they were enqueued; may be null.
  explicit RunEvent(Lane& lane, std::shared_ptr<std::atomic<int64_t>> failures = nullptr)
      : lane_(&lane), failures_(std::move(failures)) {}

  bool Ready() override;
  void Wait() override;
  // Called at once when the run is done, else by a thread of the lane's that does nothing else, so that it may run and
  // wait for other programs.
  void OnReady(std::function<void()> callback) override;

  const Lane* lane() const { return lane_; }
  // Kept until the run is done; the caller's memory a little longer, for dropping it may run code of the caller's.
  void Retain(DeviceMemory memory) { retained_.push_back(std::move(memory)); }
  // This run fails when that one has failed.
  void DependOn(EventRef event) { dependencies_.push_back(std::move(event)); }
  // Throws the error of a run among those that are done; what they made is not to be worked on.
  void ThrowIfOneFailed() const;
  // Everything is enqueued: the run is done when `marker` is.
  void SetMarker(cl::Event marker, std::string what);
  // The run is done, well or not.
  void Finish(std::exception_ptr error);
  // As Wait, without throwing.
  void WaitQuietly();

 private:
  cl::Event Marker();
  void LetGo(std::vector<DeviceMemory> of_caller);

  Lane* lane_;
  std::shared_ptr<std::atomic<int64_t>> failures_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool finishing_ = false;  // one thread finishes, others wait for it
  bool done_ = false;
  std::exception_ptr error_;
  cl::Event marker_;
  std::string what_;
  std::vector<DeviceMemory> retained_;
  std::vector<EventRef> dependencies_;
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace hlorun::opencl
