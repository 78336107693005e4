// A compiled plan on a device, and its runs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/collectives/communicator.h"
#include "backends/opencl/plan.h"
#include "backends/opencl/plan_builder.h"
#include "backends/opencl/runtime/device.h"
#include "backends/opencl/runtime/memory.h"
#include "hlo/custom_calls/registry.h"
#include "hlo/host_channels.h"

namespace hlorun::opencl {

// A live device with its OpenCL context, queues and memory pool. Shared, thread-safe.
class DeviceContext;
std::shared_ptr<DeviceContext> OpenDevice(const std::shared_ptr<Device>& device, const DeviceSpec& spec);
std::shared_ptr<MemoryPool> PoolOf(const std::shared_ptr<DeviceContext>& context);

// A point in a run's work. Copies share it. Thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool Ready() = 0;
  virtual void Wait() = 0;  // throws the run's Error
  virtual void OnReady(std::function<void()> callback) = 0;
};
using EventRef = std::shared_ptr<Event>;

// Memory on a device, and the event after which it holds its value.
struct DeviceValue {
  DeviceMemory memory;
  EventRef ready;  // null: now
};

// A shape that many arrays have: the results of each run of a program, for one. Copies share it.
class SharedShape {
 public:
  SharedShape() = default;  // none yet: only to be assigned to
  SharedShape(hlo::Shape shape) : shape_(std::make_shared<const hlo::Shape>(std::move(shape))) {}  // NOLINT: a value
  const hlo::Shape& operator*() const { return *shape_; }
  const hlo::Shape* operator->() const { return shape_.get(); }

 private:
  std::shared_ptr<const hlo::Shape> shape_;
};

struct DeviceArray {
  SharedShape shape;
  DeviceMemory memory;
  EventRef ready;

  operator DeviceValue() const { return {memory, ready}; }  // NOLINT: an array is given where its shape is known
};

struct RunArgument {
  DeviceValue value;
  bool donate = false;
};

struct ThunkTime {
  const Thunk* thunk = nullptr;
  double start_us = 0, end_us = 0;  // by std::chrono::steady_clock
  bool by_team = false;             // in the calling thread and its helpers (team.h), not in the device's queue
};

struct RunOptions {
  std::shared_ptr<collectives::Communicator> communicator;  // null: one device
  int64_t replica = 0, partition = 0;
  std::vector<ThunkTime>* profile = nullptr;                    // filled when set; the run then waits after each thunk
  std::shared_ptr<const hlo::CustomCallRegistry> custom_calls;  // for HostCallThunks; may be null
  std::shared_ptr<hlo::HostChannels> channels;                  // for TransferThunks; may be null
};

struct CompileStatistics {
  int64_t kernels = 0;           // distinct
  int64_t kernels_compiled = 0;  // built from source in this process; 0 from a warm cache or a plan
  int64_t programs = 0;
  double seconds = 0;
};

// Immutable and thread-safe: each run borrows a context (arena, its own cl_kernels) from a pool.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual const Plan& plan() const = 0;
  virtual const CompileStatistics& statistics() const = 0;
  // Enqueues and returns; results become ready later. Arguments are the flattened leaves; `results` has room for as
  // many as the plan has. Returns the run's event, which whoever gets no result from it must wait for to learn of its
  // error; null where the run is done, and well.
  virtual EventRef Run(std::span<const RunArgument> arguments, const RunOptions& options,
                       std::span<DeviceArray> results) = 0;
  std::vector<DeviceArray> Run(const std::vector<RunArgument>& arguments, const RunOptions& options) {
    std::vector<DeviceArray> results(plan().results.size());
    Run(arguments, options, results);
    return results;
  }
  virtual SavedPlan Save() = 0;
  // Allocations, buffer creations and kernel builds so far; a steady state adds none.
  virtual int64_t resource_creations() const = 0;
};

struct BuildOptions {
  int64_t threads = 0;
  bool use_disk_cache = true;
  std::string cache_dir;
  std::function<void(int64_t done, int64_t total)> progress;
};
std::unique_ptr<Executable> BuildExecutable(Plan plan, const std::shared_ptr<DeviceContext>& context,
                                            const BuildOptions& options);
std::unique_ptr<Executable> BuildExecutable(SavedPlan saved, const std::shared_ptr<DeviceContext>& context,
                                            const BuildOptions& options);

}  // namespace hlorun::opencl
