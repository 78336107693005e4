#include "driver/cli/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/arrays/compare.h"

namespace hlorun::cli {
namespace {

using Json = nlohmann::ordered_json;

double Rounded(double value, double unit) { return std::round(value / unit) * unit; }

}  // namespace

double Timing::Best() const { return ms.empty() ? first_ms : *std::min_element(ms.begin(), ms.end()); }

double Timing::Median() const {
  if (ms.empty()) return first_ms;
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::string JsonReport(const Executable& executable, const Timing& timing, const DeviceDescription& device,
                       const std::vector<hlo::Literal>& results) {
  const CompileReport report = executable.report();
  const MemoryUse memory = executable.memory();
  Json json;
  json["compile_s"] = Rounded(report.compile_s, 1e-4);
  json["first_ms"] = Rounded(timing.first_ms, 1e-4);
  json["best_ms"] = Rounded(timing.Best(), 1e-4);
  json["median_ms"] = Rounded(timing.Median(), 1e-4);
  json["iterations"] = timing.ms.size();
  json["arena_bytes"] = memory.arena_bytes;
  json["largest_live_bytes"] = memory.largest_live_bytes;
  json["argument_bytes"] = memory.argument_bytes;
  json["constant_bytes"] = memory.constant_bytes;
  json["result_bytes"] = memory.result_bytes;
  json["peak_bytes"] = memory.peak_bytes;
  json["kernels"] = report.kernels;
  json["kernels_compiled"] = report.kernels_compiled;
  json["schedules_measured"] = report.schedules_measured;
  json["passes_run"] = report.passes_run;
  json["host_thunks"] = report.host_thunks;
  json["resource_creations"] = executable.resource_creations();
  json["flops"] = executable.flops();
  json["device"] = device.label;
  json["results"] = Json::array();
  for (const hlo::Literal& result : results) {
    json["results"].push_back({{"shape", result.shape().ToString(false)}, {"checksum", Checksum(result)}});
  }
  return json.dump() + "\n";
}

std::string HumanReport(const Executable& executable, const Timing& timing, const DeviceDescription& device,
                        const std::vector<hlo::Literal>& results) {
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    text += fmt::format("result {}: {}  checksum {}  {}\n", i, results[i].shape().ToString(false), Checksum(results[i]),
                        Preview(results[i]));
  }
  const CompileReport report = executable.report();
  text += fmt::format("{}: compiled in {:.3f} s ({} kernels, {} built)", device.name, report.compile_s, report.kernels,
                      report.kernels_compiled);
  if (!timing.ms.empty()) {
    text += fmt::format("; first run {:.3f} ms, best {:.3f} ms, median {:.3f} ms of {}", timing.first_ms, timing.Best(),
                        timing.Median(), timing.ms.size());
    const double flops = executable.flops();
    if (flops > 1e6) text += fmt::format(" ({:.1f} GFLOP/s)", flops / timing.Best() / 1e6);
  } else if (timing.first_ms > 0) {
    text += fmt::format("; first run {:.3f} ms", timing.first_ms);
  }
  return text + "\n";
}

std::string ProfileTable(const std::vector<StepTime>& steps) {
  struct Row {
    int64_t calls = 0;
    double us = 0, flops = 0, bytes = 0;
    std::string op_name, kind;
  };
  std::map<std::string, Row> rows;
  double total = 0;
  for (const StepTime& step : steps) {
    Row& row = rows[step.label];
    ++row.calls;
    row.us += step.end_us - step.start_us;
    row.flops += step.flops;
    row.bytes += step.bytes;
    row.op_name = step.op_name;
    row.kind = step.kind;
    total += step.end_us - step.start_us;
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  std::string text =
      fmt::format("{:>10} {:>6} {:>6} {:>9} {:>8}  {}\n", "us", "share", "calls", "GFLOP/s", "GB/s", "HLO");
  for (const auto& [label, row] : sorted) {
    text += fmt::format("{:10.1f} {:5.1f}% {:6} {:9.1f} {:8.2f}  {} [{}] {}\n", row.us,
                        100 * row.us / std::max(total, 1e-9), row.calls, row.flops / std::max(row.us, 1e-9) / 1e3,
                        row.bytes / std::max(row.us, 1e-9) / 1e3, label, row.kind, row.op_name);
  }
  return text + fmt::format("{:10.1f} in all\n", total);
}

}  // namespace hlorun::cli
