// Chooses schedules by measuring them on the device at hand, and keeps what it finds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/compiler.h"
#include "backends/opencl/kernels/tuning_record.h"
#include "backends/opencl/runtime/executable.h"

namespace hlorun::opencl {

// For one device, as `context` describes it. Thread-safe; processes that share a folder measure one after the other.
class Tuner {
 public:
  // `build`: how candidates are compiled, and in which folder choices are kept between runs (none where it says that
  // the disk is not used).
  Tuner(std::shared_ptr<DeviceContext> context, BuildOptions build);

  // What earlier runs measured on this device. What cannot be read counts as nothing.
  TuningRecord Kept() const;

  // Measures (kQuick: a few candidates, within seconds in all; kFull: all) what `record` lacks, adds it, and keeps it.
  // Afterwards the record has every product that is worth it, if only with what the rules choose. Returns how many
  // schedules were run. Candidates that add in another order than the rules' choice take part only where choices are
  // kept: the next run must give the same bits.
  int64_t Tune(const std::vector<ProductUse>& products, Autotune effort, TuningRecord& record) const;
  // Whether Tune() would measure something.
  bool IsWanted(const std::vector<ProductUse>& products, Autotune effort, const TuningRecord& record) const;

  static std::string PathIn(const std::string& cache_folder, const DeviceSpec& spec);

 private:
  // One for all products of a type: CLBlast keeps one set of numbers a process, and compiles anew where they change.
  using LibraryByType = std::map<hlo::ElementType, LibrarySchedule>;

  bool IsWanted(const ProductUse& use, Autotune effort, const TuningRecord& record) const;
  TunedProduct Measure(const ProductProblem& problem, Autotune effort, bool is_kept, const TuningRecord& record,
                       LibraryByType& libraries, int64_t& measured) const;
  // The library as a candidate: as it comes or, where that is faster, as its own tuner makes it.
  LibrarySchedule LibraryFor(const ProductProblem& problem, const TuningRecord& record, LibraryByType& libraries,
                             int64_t& measured) const;
  bool Keep(const TuningRecord& record) const;  // whether it is there now

  const std::shared_ptr<DeviceContext> context_;
  const BuildOptions build_;
  std::string folder_;  // empty: nothing is kept
};

}  // namespace hlorun::opencl
