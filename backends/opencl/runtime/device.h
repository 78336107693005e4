// OpenCL platforms and devices: discovery, capabilities as a DeviceSpec, and what is special about a platform.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/runtime/cl.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// A live device. Shared, immutable, thread-safe.
class Device {
 public:
  Device(cl::Platform platform, cl::Device device, int platform_index, int device_index);
  // `device` does what `like` does.
  Device(const Device& like, cl::Device device);

  const cl::Platform& platform() const { return platform_; }
  const cl::Device& device() const { return device_; }
  int platform_index() const { return platform_index_; }
  int device_index() const { return device_index_; }
  std::string Label() const;  // "0:0 pthread-skylake-avx512 (Portable Computing Language, OpenCL 3.0 PoCL 3.1)"
  const DeviceSpec& spec() const { return spec_; }
  // Whether the host may call its kernels' functions (native_call.h).
  bool calls_kernels() const { return calls_kernels_; }
  // The device of the same platform that runs kernels in the thread that enqueues them (Quirks::inline_device),
  // described as this one is; where there is none, or this is it, this one if its kernels can be called, else null.
  std::shared_ptr<Device> InlineDevice() const;
  // Identifies device, driver, compiler and ISA for caches and saved plans; never volatile properties.
  std::string Fingerprint() const;

 private:
  cl::Platform platform_;
  cl::Device device_;
  int platform_index_, device_index_;
  DeviceSpec spec_;
  bool calls_kernels_ = false;
};

// All devices of all platforms, in the loader's order. Throws kNotFound, naming the packages that bring one, when none.
std::vector<std::shared_ptr<Device>> ListDevices();
// "0:1" (platform:device) or part of a platform's or device's name, any case; "" is the first. Throws kNotFound listing
// what there is.
std::shared_ptr<Device> FindDevice(const std::string& selector);

}  // namespace hlorun::opencl
