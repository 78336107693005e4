// Waiting for one message.
#pragma once

#include <memory>

#include "backends/collectives/transport.h"
#include "backends/collectives/wait.h"

namespace hlorun::collectives {

// Returns when `request`, of `transport`, is complete, which it keeps going meanwhile. Throws Error when a peer failed.
inline void Await(Transport& transport, const std::unique_ptr<Request>& request) {
  const WaitScope scope(transport);
  WaitUntil(
      [&] {
        if (request->Test()) return true;
        transport.Progress();
        return false;
      },
      Patience::kSharedCore, [&] { return request->NotBefore(); });
}

}  // namespace hlorun::collectives
