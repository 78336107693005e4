// What messages between devices cost.
#pragma once

#include "hlo/device_spec.h"

namespace hlorun::passes::spmd {

struct Link {
  double latency = 20e-6;  // seconds until a message starts
  double bandwidth = 4e9;  // bytes a second
  // Bytes that take as long to send as to start sending.
  double worth_bytes() const { return latency * bandwidth; }
  double Microseconds(double bytes) const { return (latency + bytes / bandwidth) * 1e6; }
};

// A shorter exchange is not started early: starting and ending it wakes a thread twice.
inline constexpr double kWorthMicroseconds = 100;

// From the all-reduces in the device's cost table ("all_reduce_BYTES_us") where there are any.
Link LinkOf(const DeviceSpec& device);
// The device with such a link instead of what its cost table has.
void SetLink(DeviceSpec& device, const Link& link);

}  // namespace hlorun::passes::spmd
