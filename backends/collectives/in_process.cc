#include "backends/collectives/in_process.h"

#include <chrono>
#include <cstring>

#include "hlo/error.h"

namespace hlorun::collectives {

class InProcessHub::HubRequest : public Request {
 public:
  HubRequest(InProcessHub* hub, const Key& key, std::shared_ptr<bool> done)
      : hub_(hub), key_(key), done_(std::move(done)) {}
  // A device that fails leaves its requests, and the memory that they name.
  ~HubRequest() override { hub_->Withdraw(key_, *done_); }
  bool Test() override {
    const std::lock_guard<std::mutex> lock(hub_->mutex_);
    if (*done_) return true;
    if (!hub_->failure_.empty()) throw Error(ErrorCode::kAborted, hub_->failure_);
    return false;
  }

 private:
  InProcessHub* hub_;
  Key key_;
  std::shared_ptr<bool> done_;
};

namespace {

class HubEndpoint : public Transport {
 public:
  HubEndpoint(std::shared_ptr<InProcessHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }
  bool is_network() const override { return false; }
  std::unique_ptr<Request> Send(std::span<const std::byte> data, int to, int64_t tag) override {
    return hub_->Send(data, rank_, to, tag);
  }
  std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int64_t tag) override {
    return hub_->Receive(data, from, rank_, tag);
  }
  void Progress() override { hub_->CheckHealth(); }
  void WaitBegins() override { hub_->Idle(1); }
  void WaitEnds() override { hub_->Idle(-1); }
  void Abort(const std::string& message) override { hub_->Fail(message); }

 private:
  std::shared_ptr<InProcessHub> hub_;
  int rank_;
};

void CopyMessage(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.size() != to.size()) {
    Fail(ErrorCode::kInternal, "a message of {} bytes meets a receive of {}", from.size(), to.size());
  }
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

std::shared_ptr<Transport> InProcessHub::Endpoint(int rank) {
  return std::make_shared<HubEndpoint>(shared_from_this(), rank);
}

void InProcessHub::Fail(const std::string& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.empty()) failure_ = message;
}

void InProcessHub::Reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_.clear();
  offers_.clear();
  demands_.clear();
}

void InProcessHub::CheckHealth() {
  // Only messages end waits: when all wait and none comes, none ever will. The time is for threads that are woken late.
  constexpr auto kStandstill = std::chrono::seconds(5);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.empty() && idle_ >= size_ && std::chrono::steady_clock::now() - moved_ > kStandstill) {
    failure_ = fmt::format(
        "all {} devices wait for each other: they do not run the same collectives (does a branch or a loop around one differ "
        "between devices?)",
        size_);
  }
  if (!failure_.empty()) throw Error(ErrorCode::kAborted, failure_);
}

void InProcessHub::Idle(int change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_ += change;
  moved_ = std::chrono::steady_clock::now();
}

void InProcessHub::Withdraw(const Key& key, const bool& done) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (done) return;
  const auto erase_from = [&](auto& halves) {
    const auto waiting = halves.find(key);
    if (waiting == halves.end()) return;
    std::erase_if(waiting->second, [&](const auto& half) { return half.done.get() == &done; });
    if (waiting->second.empty()) halves.erase(waiting);
  };
  erase_from(offers_);
  erase_from(demands_);
}

std::unique_ptr<Request> InProcessHub::Send(std::span<const std::byte> data, int from, int to, int64_t tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto done = std::make_shared<bool>(false);
  const Key key{from, to, tag};
  if (auto waiting = demands_.find(key); waiting != demands_.end()) {
    Demand& demand = waiting->second.front();
    CopyMessage(data, demand.data);
    *demand.done = true;
    *done = true;
    waiting->second.pop_front();
    if (waiting->second.empty()) demands_.erase(waiting);
  } else {
    offers_[key].push_back({data, done});
  }
  return std::make_unique<HubRequest>(this, key, std::move(done));
}

std::unique_ptr<Request> InProcessHub::Receive(std::span<std::byte> data, int from, int to, int64_t tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto done = std::make_shared<bool>(false);
  const Key key{from, to, tag};
  if (auto waiting = offers_.find(key); waiting != offers_.end()) {
    Offer& offer = waiting->second.front();
    CopyMessage(offer.data, data);
    *offer.done = true;
    *done = true;
    waiting->second.pop_front();
    if (waiting->second.empty()) offers_.erase(waiting);
  } else {
    demands_[key].push_back({data, done});
  }
  return std::make_unique<HubRequest>(this, key, std::move(done));
}

}  // namespace hlorun::collectives
