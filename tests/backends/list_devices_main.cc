// Prints each device and its DeviceSpec, or the error that there is none (exit status 2).
#include <cstdio>

#include "backends/opencl/runtime/device.h"
#include "hlo/error.h"

int main() {
  try {
    for (const auto& device : hlorun::opencl::ListDevices()) {
      std::printf("%s\n%s\n%s", device->Label().c_str(), device->Fingerprint().c_str(),
                  device->spec().ToJson().c_str());
    }
  } catch (const hlorun::Error& e) {
    std::printf("%s: %s\n", hlorun::ErrorCodeName(e.code()), e.what());
    return 2;
  }
  return 0;
}
