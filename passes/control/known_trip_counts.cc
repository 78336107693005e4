#include "passes/control/known_trip_counts.h"

#include <fmt/format.h>

#include "passes/control/trip_count.h"

namespace hlorun::passes {

bool KnownTripCounts::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->Is(hlo::Opcode::kWhile)) continue;
      // What the file says may have been true of another loop: simplification peels and unrolls.
      const std::optional<int64_t> count = TripCountOf(*instruction);
      const std::optional<int64_t> bound = TripBoundOf(*instruction);
      std::string config;
      if (count)
        config = fmt::format(R"({{"known_trip_count":{{"n":"{}"}}}})", *count);
      else if (bound)
        config = fmt::format(R"({{"{}":"{}"}})", kTripBound, *bound);
      if (instruction->backend_config == config) continue;
      instruction->backend_config = config;
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
