// A live device with its OpenCL context, its memory pool and its lanes.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backends/opencl/runtime/device.h"
#include "backends/opencl/runtime/memory.h"
#include "backends/opencl/runtime/quirks.h"

namespace hlorun::opencl {

class Lane;
class Team;

// Shared, thread-safe.
class DeviceContext {
 public:
  static std::shared_ptr<DeviceContext> Open(std::shared_ptr<Device> device, DeviceSpec spec);
  ~DeviceContext();

  const Device& device() const { return *device_; }
  const DeviceSpec& spec() const { return spec_; }
  const Quirks& quirks() const { return quirks_; }
  const cl::Context& context() const { return context_; }
  const std::string& build_options() const { return build_options_; }
  bool raw_pointers() const { return spec_.raw_pointers; }
  const std::shared_ptr<MemoryPool>& pool() const { return pool_; }
  // Runs of one lane happen in order; lanes are independent. One for each partition that this process drives.
  Lane& lane(int64_t number);
  // One that belongs to the caller.
  std::unique_ptr<Lane> MakeLane() const;
  // The context of runs whose launches the calling thread and a team share; null where the platform has no device for
  // it (Device::InlineDevice). Its kernels take a LaunchTable. Made on first use.
  DeviceContext* team_context();
  // Of a team context; null otherwise.
  Team* team() const { return team_.get(); }
  // For blocking transfers between runs.
  const cl::CommandQueue& transfer_queue() const { return transfer_queue_; }

 private:
  DeviceContext(std::shared_ptr<Device> device, DeviceSpec spec);

  std::shared_ptr<Device> device_;
  DeviceSpec spec_;
  Quirks quirks_;
  std::string build_options_;
  cl::Context context_;
  cl::CommandQueue transfer_queue_;
  std::shared_ptr<MemoryPool> pool_;
  std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Team> team_;
  std::unique_ptr<DeviceContext> team_context_;
  bool asked_for_team_ = false;
};

}  // namespace hlorun::opencl
