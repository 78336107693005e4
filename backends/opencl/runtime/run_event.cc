#include "backends/opencl/runtime/run_event.h"

#include <algorithm>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/lane.h"

namespace hlorun::opencl {

cl::Event RunEvent::Marker() {
  std::lock_guard lock(mutex_);
  return marker_;
}

bool RunEvent::Ready() {
  {
    std::lock_guard lock(mutex_);
    if (done_) return true;
  }
  const cl::Event marker = Marker();
  if (marker() == nullptr) return false;
  cl_int status = CL_QUEUED;
  if (clGetEventInfo(marker(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr) != CL_SUCCESS)
    return false;
  if (status > CL_COMPLETE) return false;
  WaitQuietly();
  return true;
}

void RunEvent::WaitQuietly() {
  cl::Event marker;
  {
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [&] { return done_ || marker_() != nullptr; });
    if (done_) return;
    marker = marker_;
  }
  const cl_event event = marker();
  cl_int status = clWaitForEvents(1, &event);
  if (status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  }
  std::exception_ptr error;
  if (status < 0) {
    if (failures_ != nullptr) ++*failures_;
    try {
      FailCl(status, what_ + " failed on the device (a profiled run names the step)");
    } catch (const Error&) {
      error = std::current_exception();
    }
  }
  Finish(error);
}

void RunEvent::Wait() {
  WaitQuietly();
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = error_;
  }
  if (error != nullptr) std::rethrow_exception(error);
}

void RunEvent::ThrowIfOneFailed() const {
  for (const EventRef& event : dependencies_) {
    if (event->Ready()) event->Wait();
  }
}

void RunEvent::OnReady(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!done_) {
      callbacks_.push_back(std::move(callback));
      // A run whose host thread is still at work finishes itself.
      if (marker_() != nullptr && callbacks_.size() == 1) lane_->Watch(shared_from_this());
      return;
    }
  }
  callback();
}

void RunEvent::SetMarker(cl::Event marker, std::string what) {
  std::lock_guard lock(mutex_);
  marker_ = std::move(marker);
  what_ = std::move(what);
  done_changed_.notify_all();
  if (!callbacks_.empty()) lane_->Watch(shared_from_this());
}

void RunEvent::Finish(std::exception_ptr error) {
  std::vector<DeviceMemory> retained;
  std::vector<EventRef> dependencies;
  std::vector<std::function<void()>> callbacks;
  {
    std::unique_lock lock(mutex_);
    if (finishing_) {
      done_changed_.wait(lock, [&] { return done_; });
      return;
    }
    finishing_ = true;
    dependencies.swap(dependencies_);
    retained.swap(retained_);
  }
  try {
    // They are done: the lane's order or the driver has seen to it.
    for (const EventRef& event : dependencies) event->Wait();
  } catch (...) {
    if (error == nullptr) error = std::current_exception();
  }
  // Before anyone learns that the run is done: the memory is then free for the next one.
  const auto of_caller =
      std::partition(retained.begin(), retained.end(), [](const DeviceMemory& memory) { return !memory.IsOfCaller(); });
  std::vector<DeviceMemory> later(std::make_move_iterator(of_caller), std::make_move_iterator(retained.end()));
  retained.clear();
  {
    std::lock_guard lock(mutex_);
    done_ = true;
    error_ = error;
    callbacks.swap(callbacks_);
    marker_ = cl::Event();
    done_changed_.notify_all();
  }
  for (auto& callback : callbacks) lane_->Call(std::move(callback));
  LetGo(std::move(later));
}

// Who owns the last copy may end what waits for this very run, or take a lock that the caller of Run holds: not in the
// thread that noticed the end.
void RunEvent::LetGo(std::vector<DeviceMemory> of_caller) {
  while (!of_caller.empty()) {
    DeviceMemory memory = std::move(of_caller.back());  // which may be there twice
    of_caller.pop_back();
    if (!memory.IsLast()) continue;
    try {
      lane_->Call([last = std::move(memory)] {});
    } catch (const Error&) {
      // No thread can be started: it goes here. The run is done, and well.
    }
  }
}

}  // namespace hlorun::opencl
