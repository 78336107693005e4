#include "backends/opencl/tuning/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "backends/opencl/kernels/product_candidates.h"
#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/compile_lock.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/tuning/clblast_tuner.h"
#include "backends/opencl/tuning/product_contest.h"
#include "hlo/atomic_file.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using Clock = std::chrono::steady_clock;

// Smaller products are over before a tile's shape matters.
constexpr double kFewestFlops = 4e6;
constexpr double kQuickSeconds =
    15;  // no product of a module is begun later: those that are left get the rules' choice
constexpr ContestLimits kQuickLimits{0.3, 15}, kFullLimits{3, 25};
// What another choice must gain, so that noise chooses nothing; and a library's, with which nothing is fused.
constexpr double kLeastGain = 1.03, kLeastLibraryGain = 1.1;

bool FitsMemory(const ProductProblem& problem, const DeviceSpec& device) {
  const ProductShape& s = problem.shape;
  const auto bytes = [&](hlo::ElementType type, int64_t rows, int64_t columns) {
    return static_cast<double>(s.batch) * static_cast<double>(rows) * static_cast<double>(columns) * hlo::BytesOf(type);
  };
  const double sizes[] = {bytes(s.lhs_type, s.m, s.k), bytes(s.rhs_type, s.k, s.n),
                          bytes(problem.result_type, s.m, s.n)};
  const double sum = sizes[0] + sizes[1] + sizes[2];
  return sum < static_cast<double>(device.global_memory_bytes) / 8 &&
         *std::max_element(sizes, sizes + 3) < static_cast<double>(device.max_allocation_bytes);
}

double Rounded(double us) { return std::round(us * 10) / 10; }

}  // namespace

Tuner::Tuner(std::shared_ptr<DeviceContext> context, BuildOptions build)
    : context_(std::move(context)), build_(std::move(build)) {
  if (build_.use_disk_cache) folder_ = build_.cache_dir.empty() ? DefaultCacheDirectory() : build_.cache_dir;
}

std::string Tuner::PathIn(const std::string& cache_folder, const DeviceSpec& spec) {
  // What only decides which schedules there are: a device from which it is taken away keeps choices of its own.
  const std::string own = fmt::format("{}, fragments={} {} {}", TunedDevice(spec).ToString(), spec.matrix_fragments,
                                      spec.has_s8_fragments, spec.has_wide_fragments);
  return cache_folder + "/tuning/" + HashText(own) + ".json";
}

TuningRecord Tuner::Kept() const {
  const DeviceSpec& spec = context_->spec();
  const std::string path = PathIn(folder_, spec);
  std::string text;
  if (folder_.empty() || !ReadWholeFile(path, text)) return TuningRecord(spec);
  try {
    return TuningRecord::FromJson(text, spec, path);
  } catch (const Error&) {
    return TuningRecord(spec);  // damaged, or of another version: it is measured, and written, anew
  }
}

bool Tuner::Keep(const TuningRecord& record) const {
  if (folder_.empty()) return false;
  try {
    WriteFileAtomically(PathIn(folder_, context_->spec()), {record.ToJson()}, Fault::kCacheWrite);
  } catch (const Error&) {
    return false;  // a disk that cannot be written makes no error: the next run measures again
  }
  return true;
}

bool Tuner::IsWanted(const ProductUse& use, Autotune effort, const TuningRecord& record) const {
  if (use.problem.flops() < kFewestFlops || !FitsMemory(use.problem, context_->spec())) return false;
  const TunedProduct* known = record.Find(use.problem);
  return known == nullptr || (effort == Autotune::kFull && !known->measured_all);
}

bool Tuner::IsWanted(const std::vector<ProductUse>& products, Autotune effort, const TuningRecord& record) const {
  return (effort == Autotune::kQuick || effort == Autotune::kFull) &&
         std::any_of(products.begin(), products.end(),
                     [&](const ProductUse& use) { return IsWanted(use, effort, record); });
}

LibrarySchedule Tuner::LibraryFor(const ProductProblem& problem, const TuningRecord& record, LibraryByType& libraries,
                                  int64_t& measured) const {
  if (const LibrarySchedule* chosen = record.LibraryOf(problem.shape.lhs_type)) return *chosen;
  const auto [known, is_new] = libraries.try_emplace(problem.shape.lhs_type);
  if (!is_new) return known->second;
  const std::optional<ClblastNumbers> numbers = TuneClblast(problem.shape, context_);
  if (!numbers) return known->second;
  // Each in turns with the rules' choice, not with the other, or CLBlast would compile at every turn.
  const ProductSchedule rule = ScheduleByRule(problem, context_->spec());
  const auto beside_rule = [&](const LibrarySchedule& library) {
    const std::vector<double> us = TimeCandidates(problem, {rule, library}, context_, build_, kQuickLimits);
    ++measured;
    return us[1] / us[0];
  };
  if (const LibrarySchedule tuned{*numbers}; beside_rule(tuned) < beside_rule({})) known->second = tuned;
  return known->second;
}

TunedProduct Tuner::Measure(const ProductProblem& problem, Autotune effort, bool is_kept, const TuningRecord& record,
                            LibraryByType& libraries, int64_t& measured) const {
  const bool all = effort == Autotune::kFull;
  std::vector<ProductSchedule> candidates =
      ProductCandidates(problem, context_->spec(), /*few=*/!all, /*other_orders=*/is_kept);
  for (ProductSchedule& candidate : candidates) {
    if (std::holds_alternative<LibrarySchedule>(candidate))
      candidate = LibraryFor(problem, record, libraries, measured);
  }
  TunedProduct choice{.schedule = candidates[0], .measured_all = all};
  if (candidates.size() == 1) return choice;
  const std::vector<double> us =
      TimeCandidates(problem, candidates, context_, build_, all ? kFullLimits : kQuickLimits);
  measured += static_cast<int64_t>(candidates.size());
  choice.us = choice.rule_us = us[0];
  double least = us[0] / kLeastGain;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const bool is_library = std::holds_alternative<LibrarySchedule>(candidates[i]);
    const double counted = is_library ? us[i] * (kLeastLibraryGain / kLeastGain) : us[i];
    if (counted >= least) continue;
    least = counted;
    choice.schedule = candidates[i];
    choice.us = us[i];
  }
  choice.us = Rounded(choice.us);
  choice.rule_us = Rounded(choice.rule_us);
  return choice;
}

int64_t Tuner::Tune(const std::vector<ProductUse>& products, Autotune effort, TuningRecord& record) const {
  std::optional<CompileLock> lock;
  bool is_kept = false;
  if (!folder_.empty()) {
    // In a folder of its own: what is built meanwhile takes the locks of programs.
    const std::string key = record.device().ToString();
    lock.emplace(folder_ + "/tuning", key);
    // Somebody else may have measured meanwhile.
    TuningRecord kept = Kept();
    kept.Merge(record);
    record = kept;
    is_kept = Keep(record);
  }
  std::vector<ProductUse> wanted;
  std::copy_if(products.begin(), products.end(), std::back_inserter(wanted),
               [&](const ProductUse& use) { return IsWanted(use, effort, record); });
  std::stable_sort(wanted.begin(), wanted.end(), [](const ProductUse& a, const ProductUse& b) {
    return a.problem.flops() * static_cast<double>(a.uses) > b.problem.flops() * static_cast<double>(b.uses);
  });
  const auto start = Clock::now();
  int64_t measured = 0;
  LibraryByType libraries;
  for (const ProductUse& use : wanted) {
    const bool is_late = std::chrono::duration<double>(Clock::now() - start).count() > kQuickSeconds;
    TunedProduct choice{.schedule = ScheduleByRule(use.problem, context_->spec())};
    try {
      if (effort == Autotune::kFull || !is_late)
        choice = Measure(use.problem, effort, is_kept, record, libraries, measured);
    } catch (const Error&) {
      // No memory for the operands, say: the rules choose, and the run itself says what is wrong.
    }
    record.Set(use.problem, choice);
  }
  if (!wanted.empty()) Keep(record);
  return measured;
}

}  // namespace hlorun::opencl
