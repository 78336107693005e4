#include "backends/opencl/runtime/device_context.h"

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/executable.h"
#include "backends/opencl/runtime/lane.h"
#include "backends/opencl/runtime/team.h"

namespace hlorun::opencl {
namespace {

cl::Context MakeContext(const cl::Device& device) {
  try {
    return cl::Context(device);
  } catch (const cl::Error& e) {
    FailCl(e.err(), "cannot open " + device.getInfo<CL_DEVICE_NAME>());
  }
}

}  // namespace

DeviceContext::DeviceContext(std::shared_ptr<Device> device, DeviceSpec spec)
    : device_(std::move(device)),
      spec_(std::move(spec)),
      quirks_(QuirksOf(device_->spec().platform, device_->device().getInfo<CL_DEVICE_TYPE>())),
      build_options_(BuildOptionsOf(device_->device())),
      context_(MakeContext(device_->device())),
      transfer_queue_(context_, device_->device()) {
  if (spec_.raw_pointers && !device_->spec().raw_pointers) {
    Fail(ErrorCode::kFailedPrecondition,
         "device spec: \"raw_pointers\" is true, but {} does not take plain host pointers", device_->spec().name);
  }
}

DeviceContext::~DeviceContext() = default;

std::shared_ptr<DeviceContext> DeviceContext::Open(std::shared_ptr<Device> device, DeviceSpec spec) {
  std::shared_ptr<DeviceContext> context(new DeviceContext(std::move(device), std::move(spec)));
  context->pool_ = std::make_shared<MemoryPool>(context);
  return context;
}

Lane& DeviceContext::lane(int64_t number) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Lane>& lane = lanes_[number];
  if (lane == nullptr) lane = MakeLane();
  return *lane;
}

std::unique_ptr<Lane> DeviceContext::MakeLane() const {
  // OpenCL orders cl_mem contents between queues only by events (Intel's CPU runtime shows stale contents without), so
  // lanes and transfers then share one queue.
  return std::make_unique<Lane>(raw_pointers() ? cl::CommandQueue(context_, device_->device()) : transfer_queue_);
}

DeviceContext* DeviceContext::team_context() {
  std::lock_guard lock(mutex_);
  if (!asked_for_team_) {
    asked_for_team_ = true;
    const std::shared_ptr<Device> device = raw_pointers() ? device_->InlineDevice() : nullptr;
    if (device != nullptr) {
      team_context_.reset(new DeviceContext(device, spec_));
      team_context_->team_ =
          std::make_unique<Team>(team_context_->context_, device->device(), device_->spec().compute_units);
    }
  }
  return team_context_.get();
}

std::shared_ptr<DeviceContext> OpenDevice(const std::shared_ptr<Device>& device, const DeviceSpec& spec) {
  return DeviceContext::Open(device, spec);
}

std::shared_ptr<MemoryPool> PoolOf(const std::shared_ptr<DeviceContext>& context) { return context->pool(); }

}  // namespace hlorun::opencl
