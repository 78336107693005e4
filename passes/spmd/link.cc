#include "passes/spmd/link.h"

#include <cstdlib>
#include <string_view>

namespace hlorun::passes::spmd {

Link LinkOf(const DeviceSpec& device) {
  constexpr std::string_view kPrefix = "all_reduce_";
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

}  // namespace hlorun::passes::spmd
