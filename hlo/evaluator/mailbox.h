// Values that devices sent to each other and nobody has received yet.
#pragma once

#include <deque>
#include <map>
#include <tuple>

#include "hlo/instruction.h"
#include "hlo/literal.h"

namespace hlorun::hlo {

// Not thread-safe: of an SPMD run's devices one runs at a time.
class Mailbox {
 public:
  using Key = std::tuple<int64_t, int64_t, int64_t>;  // channel, source, target
  void Put(const Key& key, Literal value) { queues_[key].push_back(std::move(value)); }
  bool Has(const Key& key) const;
  // The oldest value. Throws kInvalidArgument naming `receiver` when there is none.
  Literal Take(const Key& key, const Instruction& receiver);

 private:
  std::map<Key, std::deque<Literal>> queues_;
};

}  // namespace hlorun::hlo
