// Where a run's time goes: each step against the roof above it, and their sum. Pure arithmetic over a profile and a
// device's cost table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/device_spec.h"
#include "hlorun/hlorun.h"

namespace hlorun::cli {

// What bounds a step: arithmetic, or the level that holds all of its bytes. Data come from another step, perhaps of
// another core, so the first cache is never it.
enum class Roof : uint8_t { kUnknown, kCompute, kL2, kL3, kMemory };

// A step's least time on the device, microseconds, from what it computes and moves.
struct RoofTime {
  Roof roof = Roof::kUnknown;  // unknown: the step's work is, or the device's costs are
  double us = 0;
  std::string peak;  // of kCompute: the name of the cost, "f32_gflops", or of what follows from it
};
RoofTime RoofOf(const StepTime& step, const DeviceSpec& device);

// All steps of one label, packing apart.
struct ProfileRow {
  std::string label, op_name, kind;
  bool packs = false;
  int64_t calls = 0;
  double us = 0, flops = 0, bytes = 0;
  Roof roof = Roof::kUnknown;  // of the step that is bound longest
  std::string peak;
  double roof_us = 0;  // bound of all of them; above `us` where a kernel does less than its definition (Winograd)
  // Reached, 1 is the roof; nullopt where nothing is known of the work.
  std::optional<double> OfRoof() const;
};

// Microseconds; the parts from compute to idle sum up to `total`.
struct ProfileSummary {
  int64_t steps = 0, packing_steps = 0;
  double total = 0;    // the steps one by one, and `idle`
  double compute = 0;  // what steps below the compute roof need there
  double memory = 0;   // likewise, below the memory's
  double launch = 0;   // a launch's cost for each step, as far as it is not hidden in these
  double packing = 0;  // all of the steps that pack
  double above = 0;    // what steps of known work take longer
  double unknown = 0;  // steps whose work is not known: host calls, exchanges with other devices
  double idle = 0;     // what the best unprofiled run took longer than its steps
  double best = 0;     // that run; 0: none was timed
};

struct Profile {
  std::vector<ProfileRow> rows;  // longest first
  ProfileSummary summary;
};

// `best_us`: of the runs without a profile; 0 where none was timed.
Profile ProfileOf(const std::vector<StepTime>& steps, const DeviceSpec& device, double best_us);

// "f32", "L3", "memory"; "-" for an unknown one.
std::string NameOf(const ProfileRow& row);

}  // namespace hlorun::cli
