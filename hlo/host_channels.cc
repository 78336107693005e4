#include "hlo/host_channels.h"

#include "hlo/error.h"

namespace hlorun::hlo {

void HostChannels::Push(Key key, std::vector<Literal> leaves) {
  const std::lock_guard lock(mutex_);
  queues_[key].push_back(std::move(leaves));
  changed_.notify_all();
}

std::vector<Literal> HostChannels::Pop(Key key, const char* what) {
  std::unique_lock lock(mutex_);
  std::deque<std::vector<Literal>>& queue = queues_[key];
  const bool woken = changed_.wait_for(lock, patience_, [&] { return !queue.empty() || !closed_.empty(); });
  const auto [direction, device, channel] = key;
  const std::string where = channel == kFeed ? "the feed" : fmt::format("channel {}", channel);
  if (!queue.empty()) {
    std::vector<Literal> leaves = std::move(queue.front());
    queue.pop_front();
    return leaves;
  }
  if (woken) Fail(ErrorCode::kAborted, "{} waits for a value on {} of device {}: {}", what, where, device, closed_);
  Fail(ErrorCode::kAborted, "{} waited {} ms for a value on {} of device {}", what, patience_.count(), where, device);
}

void HostChannels::Send(int64_t device, int64_t channel, std::vector<Literal> leaves) {
  Push({Direction::kToProgram, device, channel}, std::move(leaves));
}

std::vector<Literal> HostChannels::Receive(int64_t device, int64_t channel) {
  return Pop({Direction::kToHost, device, channel}, "the host");
}

void HostChannels::Close(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  closed_ = reason;
  changed_.notify_all();
}

void HostChannels::Give(int64_t device, int64_t channel, std::vector<Literal> leaves) {
  Push({Direction::kToHost, device, channel}, std::move(leaves));
}

std::vector<Literal> HostChannels::Take(int64_t device, int64_t channel) {
  return Pop({Direction::kToProgram, device, channel}, "the program");
}

}  // namespace hlorun::hlo
