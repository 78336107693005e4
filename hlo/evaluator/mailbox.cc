#include "hlo/evaluator/mailbox.h"

#include "hlo/error.h"

namespace hlorun::hlo {

bool Mailbox::Has(const Key& key) const {
  const auto found = queues_.find(key);
  return found != queues_.end() && !found->second.empty();
}

Literal Mailbox::Take(const Key& key, const Instruction& receiver) {
  if (!Has(key)) {
    const auto [channel, source, target] = key;
    Invalid("{}: device {} receives on channel {} what device {} has not sent", receiver.name(), target, channel,
            source);
  }
  std::deque<Literal>& queue = queues_[key];
  Literal value = std::move(queue.front());
  queue.pop_front();
  return value;
}

}  // namespace hlorun::hlo
