// What was measured to be fastest: a schedule for each problem, on one device. As JSON it is kept beside compiled
// kernels, saved with plans, and shipped (tuning/*.json).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "backends/opencl/kernels/product_schedule.h"
#include "passes/options.h"

namespace hlorun::opencl {

// All of a device that a choice depends on. Not how many cores there are: results must not.
struct TunedDevice {
  std::string name, platform, driver_version, isa;
  DeviceClass device_class = DeviceClass::kCpu;
  int64_t vector_bytes = 0, l2_bytes = 0, local_memory_bytes = 0, max_work_group_size = 0;

  explicit TunedDevice(const DeviceSpec& spec);
  bool operator==(const TunedDevice&) const = default;
  std::string ToString() const;  // one line
};

struct TunedProduct {
  ProductSchedule schedule;
  bool measured_all = false;   // all candidates, not a few
  double us = 0, rule_us = 0;  // of the choice, and of what the rules choose; 0: not measured
};

// A value; immutable where it is shared.
class TuningRecord {
 public:
  explicit TuningRecord(const DeviceSpec& spec) : device_(spec) {}

  const TunedDevice& device() const { return device_; }
  const TunedProduct* Find(const ProductProblem& problem) const;  // null: none
  // How the library multiplies some product of this type, where it was chosen; null: it was for none.
  const LibrarySchedule* LibraryOf(hlo::ElementType type) const;
  void Set(const ProductProblem& problem, const TunedProduct& product);
  // The entries of `other` are added, and go before those of the same problem but where only these measured all.
  void Merge(const TuningRecord& other);
  bool empty() const { return products_.empty(); }
  size_t size() const { return products_.size(); }

  std::string ToJson() const;  // one entry a line, sorted
  // Throws Error with one line, which begins with `source`: no such JSON, another version, another device than `spec`,
  // unknown or missing fields, numbers out of range, a schedule that cannot run its problem.
  static TuningRecord FromJson(const std::string& text, const DeviceSpec& spec, const std::string& source);
  // The same, but none where it was measured on another device than `spec`.
  static std::optional<TuningRecord> OfDevice(const std::string& text, const DeviceSpec& spec,
                                              const std::string& source);

 private:
  struct Entry {
    ProductProblem problem;
    TunedProduct product;
  };
  TunedDevice device_;
  std::map<std::string, Entry> products_;  // by the problem's text
};

// The schedule that `options` hold; null: none, the rules choose.
const ProductSchedule* TunedScheduleOf(const ProductProblem& problem, const CompileOptions& options);
const ProductSchedule* TunedScheduleOf(const hlo::Instruction& dot, const CompileOptions& options);

}  // namespace hlorun::opencl
