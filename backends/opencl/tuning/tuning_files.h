// Choices of schedules as they are shipped: a file, or a folder of files for many devices.
#pragma once

#include <string>

#include "backends/opencl/kernels/tuning_record.h"

namespace hlorun::opencl {

// `path` is a file for the device that `spec` describes ("-": stdin), or a folder: of its *.json those for this device,
// in the order of their names, of which a later one goes before an earlier; none of them is for it: an empty record.
// Throws Error, with one line: what cannot be read, what TuningRecord::FromJson refuses, a folder without *.json.
TuningRecord ReadTuning(const std::string& path, const DeviceSpec& spec);

}  // namespace hlorun::opencl
