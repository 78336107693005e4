// How long work takes, roughly: for choices between two forms of one program, never for promises.
#pragma once

#include "hlo/device_spec.h"
#include "hlo/instruction.h"

namespace hlorun::passes {

// Microseconds throughout.
class TimeModel {
 public:
  explicit TimeModel(const DeviceSpec& device);

  // A kernel queued behind others.
  double launch() const { return launch_; }
  // Bytes read from memory and written again.
  double Moved(int64_t bytes) const;
  // The host waits for the device, reads a value, decides, and fills the empty queue again.
  double round_trip() const { return 40; }

  // All of a computation's work on all cores, launches not counted; loops of unknown length as kAssumedTrips.
  double Work(const hlo::Computation& computation) const;
  // Kernels of an executed instruction as they are launched one after another; whole loops and branches included.
  double Launched(const hlo::Instruction& instruction) const;
  double Launched(const hlo::Computation& computation) const;
  // The same done by one work-item inside a kernel that runs anyway. The instruction may be a fusion.
  double Sequential(const hlo::Instruction& instruction) const;
  double Sequential(const hlo::Computation& computation) const;
  // How many kernels are launched; loops multiplied out.
  double Launches(const hlo::Computation& computation) const;

  static constexpr double kAssumedTrips = 16;

 private:
  double Trips(const hlo::Instruction& loop) const;

  double launch_ = 0;
  double gflops_ = 0, gbytes_ = 0;  // of the whole device, a second
  bool is_gpu_ = false;
};

}  // namespace hlorun::passes
