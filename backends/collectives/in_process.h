// Transport between devices of one process: messages meet in memory and are copied once.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "backends/collectives/transport.h"

namespace hlorun::collectives {

// The meeting place of `size` endpoints. Thread-safe.
class InProcessHub : public std::enable_shared_from_this<InProcessHub> {
 public:
  explicit InProcessHub(int size) : size_(size) {}
  std::shared_ptr<Transport> Endpoint(int rank);
  int size() const { return size_; }
  // Makes every wait of every endpoint throw kAborted with this message (the first one given counts).
  void Fail(const std::string& message);
  // Undoes Fail and drops messages of the failed run. Nobody may be waiting.
  void Reset();
  // Throws when the hub failed, or when every device has been idle for seconds: then no message can come any more.
  void CheckHealth();
  // `change` devices more (or less) have nothing to do: they wait, or do not run.
  void Idle(int change);

  std::unique_ptr<Request> Send(std::span<const std::byte> data, int from, int to, int64_t tag);
  std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int to, int64_t tag);

 private:
  // One message's half that waits for the other half.
  struct Offer {
    std::span<const std::byte> data;
    std::shared_ptr<bool> done;
  };
  struct Demand {
    std::span<std::byte> data;
    std::shared_ptr<bool> done;
  };
  using Key = std::tuple<int, int, int64_t>;  // from, to, tag
  class HubRequest;

  // Forgets the half whose flag is `done`, if it still waits.
  void Withdraw(const Key& key, const bool& done);

  const int size_;
  mutable std::mutex mutex_;
  std::map<Key, std::deque<Offer>> offers_;
  std::map<Key, std::deque<Demand>> demands_;
  std::string failure_;
  int idle_ = 0;
  std::chrono::steady_clock::time_point moved_;
};

}  // namespace hlorun::collectives
