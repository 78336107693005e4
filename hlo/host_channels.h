// What a running program and its host exchange besides arguments and results: infeed, outfeed, and the host's end of
// send and recv. A queue of values for each device and channel, in each direction.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "hlo/literal.h"

namespace hlorun::hlo {

// Thread-safe. The host's calls never wait for the program, except Receive; the program's wait for values that the host
// has yet to give.
class HostChannels {
 public:
  // Channels of infeed and outfeed; those of send and recv are their channel_id.
  static constexpr int64_t kFeed = -1;

  // How long either side waits for a value before it throws kAborted.
  explicit HostChannels(std::chrono::milliseconds patience = std::chrono::seconds(60)) : patience_(patience) {}

  // The host gives the program on `device` a value: one literal for each leaf, tokens left out.
  void Send(int64_t device, int64_t channel, std::vector<Literal> leaves);
  // The host takes the oldest value that the program on `device` gave; waits for it.
  std::vector<Literal> Receive(int64_t device, int64_t channel);
  // Ends all waits with an error that says `reason`; for a run that failed, or a host that has no more to give.
  void Close(const std::string& reason);

  // The program's side.
  void Give(int64_t device, int64_t channel, std::vector<Literal> leaves);
  std::vector<Literal> Take(int64_t device, int64_t channel);

 private:
  enum class Direction : uint8_t { kToProgram, kToHost };
  using Key = std::tuple<Direction, int64_t, int64_t>;
  void Push(Key key, std::vector<Literal> leaves);
  std::vector<Literal> Pop(Key key, const char* what);

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::deque<std::vector<Literal>>> queues_;
  std::string closed_;  // the reason; empty while open
};

}  // namespace hlorun::hlo
