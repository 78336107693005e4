#include "passes/spmd/channels.h"

#include <algorithm>
#include <optional>

namespace hlorun::passes::spmd {

int64_t FirstFreeChannel(const hlo::Module& module) {
  int64_t next = 1;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      std::optional<int64_t> channel;
      if (const auto* c = std::get_if<hlo::attr::Collective>(&instruction->attributes())) channel = c->channel_id;
      if (const auto* p = std::get_if<hlo::attr::CollectivePermute>(&instruction->attributes()))
        channel = p->channel_id;
      if (const auto* t = std::get_if<hlo::attr::Transfer>(&instruction->attributes())) channel = t->channel_id;
      next = std::max(next, channel.value_or(0) + 1);
    }
  }
  return next;
}

}  // namespace hlorun::passes::spmd
