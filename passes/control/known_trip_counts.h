// Writes the trip counts of counting loops into their backend_config, as XLA does: later passes turn the counter's
// arithmetic into kernels, where nobody finds it any more.
//
//   before: w = while(t), condition=c, body=b
//   after:  w = while(t), condition=c, body=b, backend_config={"known_trip_count":{"n":"7"}}
//
// A loop that may end before its counter does gets the counter's end: {"trip_bound":"100"}.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

inline constexpr std::string_view kTripBound = "trip_bound";

class KnownTripCounts : public Pass {
 public:
  std::string_view name() const override { return "trip-counts"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
