// A transport whose messages take as long as a slower network's: for tests and benchmarks on one machine.
#pragma once

#include <memory>
#include <optional>

#include "backends/collectives/transport.h"

namespace hlorun::collectives {

struct TimedLink {
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes a second that an endpoint can send
};

// $HLORUN_TIMED_LINK=MICROSECONDS,GIGABYTES_PER_SECOND; nullopt where it is not set. Throws kInvalidArgument.
std::optional<TimedLink> WantedTimedLink();

// Messages go through `inner`, each behind one of its time of arrival: an endpoint sends one after another at the
// link's bandwidth, and what it sent arrives a latency later. Nobody computes for a message that is on its way. There
// is no shared window. All endpoints must be such transports, on one host (they compare clocks). Thread-safe as
// `inner`.
std::shared_ptr<Transport> MakeTimedTransport(std::shared_ptr<Transport> inner, const TimedLink& link);

}  // namespace hlorun::collectives
