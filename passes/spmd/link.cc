#include "passes/spmd/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace hlorun::passes::spmd {

namespace {

constexpr std::string_view kPrefix = "all_reduce_";

}  // namespace

Link LinkOf(const DeviceSpec& device) {
  Link link;
  double smallest = 0, largest = 0;
  for (const auto& [name, microseconds] : device.cost_table) {
    if (!name.starts_with(kPrefix) || microseconds <= 0) continue;
    const double bytes = std::strtod(name.c_str() + kPrefix.size(), nullptr);
    if (bytes <= 0) continue;
    if (smallest == 0 || bytes < smallest) {
      smallest = bytes;
      link.latency = microseconds / 1e6;
    }
    if (bytes > largest) {
      largest = bytes;
      link.bandwidth = bytes / (microseconds / 1e6);
    }
  }
  return link;
}

void SetLink(DeviceSpec& device, const Link& link) {
  constexpr int64_t kLarge = int64_t{1} << 40;  // its latency is nothing
  constexpr double kLeastMicroseconds = 1e-3;   // an entry of 0 counts as not measured
  std::erase_if(device.cost_table, [](const auto& entry) { return entry.first.starts_with(kPrefix); });
  device.cost_table[fmt::format("{}1_us", kPrefix)] = std::max(link.latency * 1e6, kLeastMicroseconds);
  device.cost_table[fmt::format("{}{}_us", kPrefix, kLarge)] = static_cast<double>(kLarge) / link.bandwidth * 1e6;
}

}  // namespace hlorun::passes::spmd
