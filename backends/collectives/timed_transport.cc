#include "backends/collectives/timed_transport.h"

#include <chrono>
#include <cstdlib>
#include <mutex>

#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

using Clock = std::chrono::steady_clock;  // one in all processes of a host

double Now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// A message and the time of its arrival, which comes or goes first.
class TimedRequest : public Request {
 public:
  // `done`: of a send, when the link has taken it all; a receive is told by the message.
  explicit TimedRequest(double done) : time_(done) {}
  std::span<std::byte> stamp() { return {reinterpret_cast<std::byte*>(&stamp_), sizeof stamp_}; }
  void set_stamp(double arrival) { stamp_ = arrival; }
  void Add(std::unique_ptr<Request> stamp, std::unique_ptr<Request> data) {
    parts_[0] = std::move(stamp);
    parts_[1] = std::move(data);
  }
  bool Test() override {
    for (std::unique_ptr<Request>& part : parts_) {
      if (part != nullptr && !part->Test()) return false;
      part = nullptr;
    }
    return Now() >= Done();
  }
  // Nothing is known while what tells the time, or the message itself, has yet to go through `inner`.
  Clock::time_point NotBefore() const override {
    if (parts_[0] != nullptr || parts_[1] != nullptr) return {};
    return Clock::time_point(std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(Done())));
  }

 private:
  double Done() const { return time_ > 0 ? time_ : stamp_; }

  double time_, stamp_ = 0;
  std::unique_ptr<Request> parts_[2];
};

class TimedTransport : public Transport {
 public:
  TimedTransport(std::shared_ptr<Transport> inner, const TimedLink& link) : inner_(std::move(inner)), link_(link) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  std::unique_ptr<Request> Send(std::span<const std::byte> data, int to, int64_t tag) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_ = std::max(free_, Now()) + static_cast<double>(data.size()) / link_.bandwidth;
    auto request = std::make_unique<TimedRequest>(free_);
    request->set_stamp(free_ + link_.latency);
    auto stamp = inner_->Send(request->stamp(), to, tag);
    request->Add(std::move(stamp), inner_->Send(data, to, tag));
    return request;
  }
  std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int64_t tag) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto request = std::make_unique<TimedRequest>(0);
    auto stamp = inner_->Receive(request->stamp(), from, tag);
    request->Add(std::move(stamp), inner_->Receive(data, from, tag));
    return request;
  }
  void Progress() override { inner_->Progress(); }
  void WaitBegins() override { inner_->WaitBegins(); }
  void WaitEnds() override { inner_->WaitEnds(); }
  void Abort(const std::string& message) override { inner_->Abort(message); }

 private:
  std::shared_ptr<Transport> inner_;
  const TimedLink link_;
  std::mutex mutex_;  // pairs of messages stay together
  double free_ = 0;   // when the link has taken everything that was sent
};

}  // namespace

std::optional<TimedLink> WantedTimedLink() {
  const char* text = std::getenv("HLORUN_TIMED_LINK");
  if (text == nullptr || *text == '\0') return std::nullopt;
  char *comma = nullptr, *end = nullptr;
  TimedLink link;
  link.latency = std::strtod(text, &comma) / 1e6;
  if (*comma == ',') link.bandwidth = std::strtod(comma + 1, &end) * 1e9;
  if (end == nullptr || *end != '\0' || link.latency < 0 || !(link.bandwidth > 0)) {
    Invalid("HLORUN_TIMED_LINK=\"{}\": give microseconds and gigabytes a second, as 20,1.5", text);
  }
  return link;
}

std::shared_ptr<Transport> MakeTimedTransport(std::shared_ptr<Transport> inner, const TimedLink& link) {
  return std::make_shared<TimedTransport>(std::move(inner), link);
}

}  // namespace hlorun::collectives
