#include "driver/cli/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "driver/arrays/compare.h"
#include "driver/cli/json_text.h"
#include "hlo/error.h"

namespace hlorun::cli {
namespace {

using Json = nlohmann::ordered_json;

double Rounded(double value, double unit) { return std::round(value / unit) * unit; }

// "read 31, copied 22 GB/s": of a level; empty when nobody has measured it.
std::string BandwidthText(const DeviceSpec& spec, const char* level, const char* read, const char* copy) {
  if (spec.Cost(copy) <= 0) return "";
  const std::string reads = spec.Cost(read) > 0 ? fmt::format("read {:.0f}, ", spec.Cost(read)) : "";
  return fmt::format("; {}: {}copied {:.0f} GB/s", level, reads, spec.Cost(copy));
}

// The peaks of the types, then the bandwidths: what the roofs are.
std::string RoofsText(const DeviceSpec& spec) {
  std::string text = fmt::format("f32 {:.0f}", spec.f32_gflops);
  for (const auto& [name, value] : spec.cost_table) {
    constexpr std::string_view kPeak = "_gflops";
    if (name.ends_with(kPeak)) text += fmt::format(", {} {:.0f}", name.substr(0, name.size() - kPeak.size()), value);
  }
  return text + " GFLOP/s" + BandwidthText(spec, "L2", "l2_read_gbps", "l2_gbps") +
         BandwidthText(spec, "L3", "l3_read_gbps", "l3_gbps") +
         BandwidthText(spec, "memory", "memory_read_gbps", "bandwidth_gbps");
}

// One line for each part of the time that there is.
std::string SummaryText(const ProfileSummary& s, const DeviceSpec& spec) {
  const struct {
    const char* name;
    double us;
    std::string what;
  } parts[] = {
      {"compute roof", s.compute, "what products and other arithmetic need at the peak"},
      {"memory roof", s.memory, "what the others need at their level's bandwidth"},
      {"packing", s.packing, fmt::format("{} steps that only bring operands into order", s.packing_steps)},
      {"launch", s.launch, fmt::format("of {} steps, each to its end", s.steps)},
      {"above roofs", s.above, "what the kernels take longer"},
      {"unknown", s.unknown, "steps whose work is not known: the host, other devices"},
      {"idle", s.idle, "what the best run took longer than its steps"},
  };
  std::string text = fmt::format("Where {:.1f} us go:\n", s.total);
  for (const auto& part : parts) {
    if (part.us <= 0) continue;
    text += fmt::format("  {:<13} {:10.1f} us {:5.1f}%  {}\n", part.name, part.us, 100 * part.us / s.total, part.what);
  }
  if (s.best > 0) {
    text += fmt::format("The best run took {:.1f} us; steps are timed one by one, each waited for.\n", s.best);
  }
  return text + "Roofs: " + RoofsText(spec) + "\n";
}

Json JsonOf(const Profile& profile, const DeviceSpec& spec) {
  Json rows = Json::array();
  const double total = profile.summary.total - profile.summary.idle;
  for (const ProfileRow& row : profile.rows) {
    const std::optional<double> reached = row.OfRoof();
    Json json = {{"label", row.label},
                 {"op_name", row.op_name},
                 {"kind", row.packs ? "packing" : row.kind},
                 {"calls", row.calls},
                 {"us", Rounded(row.us, 1e-3)},
                 {"share", total > 0 ? Rounded(row.us / total, 1e-5) : 0},
                 {"flops", row.flops},
                 {"bytes", row.bytes},
                 {"roof", reached ? Json(NameOf(row)) : Json()},
                 {"of_roof", reached ? Json(Rounded(*reached, 1e-4)) : Json()}};
    rows.push_back(std::move(json));
  }
  const ProfileSummary& s = profile.summary;
  Json costs = {
      {"f32_gflops", spec.f32_gflops}, {"bandwidth_gbps", spec.bandwidth_gbps}, {"launch_us", spec.launch_us}};
  for (const auto& [name, value] : spec.cost_table) costs[name] = value;
  return {{"rows", rows},
          {"summary",
           {{"steps", s.steps},
            {"packing_steps", s.packing_steps},
            {"total_us", s.total},
            {"compute_us", s.compute},
            {"memory_us", s.memory},
            {"packing_us", s.packing},
            {"launch_us", s.launch},
            {"above_us", s.above},
            {"unknown_us", s.unknown},
            {"idle_us", s.idle},
            {"best_us", s.best}}},
          {"roofs", costs}};
}

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
                       const std::vector<hlo::Literal>& results, const Profile* profile, const DeviceSpec& measured) {
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
  if (profile != nullptr) json["profile"] = JsonOf(*profile, measured);
  return TextOf(json) + "\n";
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

std::string ProfileTable(const Profile& profile, const DeviceSpec& measured) {
  const double total = profile.summary.total - profile.summary.idle;
  std::string text = fmt::format("{:>10} {:>6} {:>6} {:>9} {:>8} {:>5} {:<10}  {}\n", "us", "share", "calls", "GFLOP/s",
                                 "GB/s", "of", "roof", "HLO");
  for (const ProfileRow& row : profile.rows) {
    const double us = std::max(row.us, 1e-9);
    const std::optional<double> reached = row.OfRoof();
    text += fmt::format("{:10.1f} {:5.1f}% {:6} {:9.1f} {:8.2f} {:>5} {:<10}  {} [{}] {}\n", row.us,
                        100 * row.us / std::max(total, 1e-9), row.calls, row.flops / us / 1e3, row.bytes / us / 1e3,
                        reached ? fmt::format("{:.0f}%", 100 * *reached) : "-", NameOf(row), row.label,
                        row.packs ? "packing" : row.kind, row.op_name);
  }
  return text + fmt::format("{:10.1f} in all\n", total) + SummaryText(profile.summary, measured);
}

void FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  Fail(ErrorCode::kResourceExhausted, "cannot write to the standard output: {}", std::strerror(errno));
}

}  // namespace hlorun::cli
