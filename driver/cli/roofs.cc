#include "driver/cli/roofs.h"

#include <algorithm>
#include <array>
#include <map>

namespace hlorun::cli {
namespace {

// What may multiply a type, the fastest first. A roof is the device's, whatever the kernel chose.
struct TypePeaks {
  ElementType type;
  std::array<const char*, 2> peaks;
};
constexpr const char* kOther = "f32_gflops";  // types that are widened to it, and all that has no multiplier of its own
constexpr TypePeaks kTypePeaks[] = {
    {ElementType::kF64, {"f64_gflops", "f64_gflops"}},
    {ElementType::kC128, {"f64_gflops", "f64_gflops"}},
    {ElementType::kF16, {"f16_gflops", kOther}},
    {ElementType::kBF16, {"bf16_tiles_gflops", "bf16_words_gflops"}},
    {ElementType::kS8, {"s8_tiles_gflops", "s8_words_gflops"}},
    {ElementType::kS32, {"s32_gflops", kOther}},
    {ElementType::kU32, {"s32_gflops", kOther}},
};

struct Peak {
  const char* name;
  double gflops = 0;
};

// Products of f32 may go by tiles of bf16, in three parts of which six of nine products count (docs/products.md).
Peak PeakOf(const StepTime& step, const DeviceSpec& device) {
  constexpr double kProductsOfParts = 6;
  const double by_parts = device.Cost("bf16_tiles_gflops") / kProductsOfParts;
  if (step.multiplies && step.arithmetic == ElementType::kF32 && by_parts > device.Cost(kOther))
    return {"f32_by_tiles_gflops", by_parts};
  for (const TypePeaks& row : kTypePeaks) {
    if (row.type != step.arithmetic) continue;
    for (const char* peak : row.peaks) {
      if (device.Cost(peak) > 0) return {peak, device.Cost(peak)};
    }
  }
  return {kOther, device.Cost(kOther)};
}

struct Level {
  Roof roof;
  double bytes;  // that it holds for all cores together
  const char *copy, *read;
};

// Microseconds to read and write so many bytes; 0: nobody has measured.
double MemoryUs(const StepTime& step, const Level& level, const DeviceSpec& device) {
  const double copy = device.Cost(level.copy) * 1e3;  // bytes a microsecond
  const double read = device.Cost(level.read) > 0 ? device.Cost(level.read) * 1e3 : copy;
  if (copy <= 0) return 0;
  // As much as is written goes along with reads as in a copy; what is left is only read.
  const double copied = std::min(step.bytes, 2 * step.bytes_written);
  return copied / copy + (step.bytes - copied) / read;
}

RoofTime MemoryRoof(const StepTime& step, const DeviceSpec& device) {
  const auto units = static_cast<double>(device.device_class == DeviceClass::kCpu ? device.compute_units : 1);
  const Level levels[] = {
      {Roof::kL2, static_cast<double>(device.l2_bytes) * units, "l2_gbps", "l2_read_gbps"},
      {Roof::kL3, static_cast<double>(device.l3_bytes), "l3_gbps", "l3_read_gbps"},
      {Roof::kMemory, step.bytes, "bandwidth_gbps", "memory_read_gbps"},
  };
  for (const Level& level : levels) {
    if (step.bytes > level.bytes) continue;
    // A level that was not measured is as slow as the next.
    if (const double us = MemoryUs(step, level, device); us > 0) return {level.roof, us, ""};
  }
  return {};
}

double LaunchUs(const StepTime& step, const DeviceSpec& device) {
  if (step.kind != "kernel" && step.kind != "copy" && step.kind != "write" && step.kind != "library") return 0;
  const double to_the_end = device.Cost(step.by_team ? "launch_by_team_us" : "launch_and_finish_us");
  return to_the_end > 0 ? to_the_end : device.Cost("launch_us");
}

struct RowInProgress {
  ProfileRow row;
  double longest_us = 0, launch_us = 0;
};

void Add(const StepTime& step, const DeviceSpec& device, RowInProgress& to) {
  ProfileRow& row = to.row;
  row.label = step.label;
  row.op_name = step.op_name;
  row.kind = step.kind;
  row.packs = step.packs;
  ++row.calls;
  row.us += step.end_us - step.start_us;
  row.flops += step.flops;
  row.bytes += step.bytes;
  to.launch_us += LaunchUs(step, device);
  const RoofTime bound = RoofOf(step, device);
  row.roof_us += bound.us;
  if (bound.us <= to.longest_us) return;
  to.longest_us = bound.us;
  row.roof = bound.roof;
  row.peak = bound.peak;
}

// A row's time in parts: what its roof needs, what its launches cost, the rest.
void AddTo(ProfileSummary& summary, const RowInProgress& done) {
  const ProfileRow& row = done.row;
  summary.steps += row.calls;
  if (row.packs) {
    summary.packing_steps += row.calls;
    summary.packing += row.us;
    return;
  }
  const double needed = std::min(row.roof_us, row.us);
  const double launch = std::min(done.launch_us, row.us - needed);
  (row.roof == Roof::kCompute ? summary.compute : summary.memory) += needed;
  summary.launch += launch;
  (row.roof == Roof::kUnknown ? summary.unknown : summary.above) += row.us - needed - launch;
}

}  // namespace

RoofTime RoofOf(const StepTime& step, const DeviceSpec& device) {
  const Peak peak = PeakOf(step, device);
  RoofTime compute;
  if (step.flops > 0 && peak.gflops > 0) compute = {Roof::kCompute, step.flops / peak.gflops * 1e-3, peak.name};
  const RoofTime memory = step.bytes > 0 ? MemoryRoof(step, device) : RoofTime{};
  return compute.us > memory.us ? compute : memory;
}

std::optional<double> ProfileRow::OfRoof() const {
  if (roof == Roof::kUnknown || us <= 0) return std::nullopt;
  return roof_us / us;
}

Profile ProfileOf(const std::vector<StepTime>& steps, const DeviceSpec& device, double best_us) {
  std::map<std::pair<std::string, bool>, RowInProgress> rows;
  for (const StepTime& step : steps) Add(step, device, rows[{step.label, step.packs}]);
  Profile profile;
  double sum = 0;
  for (auto& [unused, done] : rows) {
    AddTo(profile.summary, done);
    sum += done.row.us;
    profile.rows.push_back(std::move(done.row));
  }
  std::stable_sort(profile.rows.begin(), profile.rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.us > b.us; });
  profile.summary.best = best_us;
  profile.summary.idle = std::max(0.0, best_us - sum);
  profile.summary.total = sum + profile.summary.idle;
  return profile;
}

std::string NameOf(const ProfileRow& row) {
  switch (row.roof) {
    case Roof::kCompute: return row.peak.substr(0, row.peak.rfind("_gflops"));
    case Roof::kL2: return "L2";
    case Roof::kL3: return "L3";
    case Roof::kMemory: return "memory";
    case Roof::kUnknown: break;
  }
  return "-";
}

}  // namespace hlorun::cli
