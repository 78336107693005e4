#include "hlo/evaluator/spmd.h"

#include <thread>

#include "hlo/error.h"

namespace hlorun::hlo {

void SpmdRun::Stop(std::exception_ptr error) {
  if (error_ == nullptr) error_ = std::move(error);
  changed_.notify_all();
}

std::shared_ptr<const SpmdRun::Contributions> SpmdRun::Meet(const Instruction& instruction, int64_t device,
                                                            const std::vector<int64_t>& group,
                                                            std::vector<Literal> mine) {
  const auto self = std::find(group.begin(), group.end(), device);
  HLORUN_CHECK(self != group.end());
  const int64_t visit = visits_[{&instruction, device}]++;
  const auto key = std::make_tuple(&instruction, group[0], visit);
  Meeting& meeting = meetings_[key];
  if (meeting.contributions == nullptr) meeting.contributions = std::make_shared<Contributions>(group.size());
  (*meeting.contributions)[static_cast<size_t>(self - group.begin())] = std::move(mine);
  const size_t expected = group.size();
  if (++meeting.arrived == expected) {
    running_ += static_cast<int64_t>(expected) - 1;  // the others wake up
    changed_.notify_all();
  } else {
    if (--running_ == 0) {
      Stop(std::make_exception_ptr(Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: some devices of its group never come to this collective, so that the rest wait for ever",
                      instruction.name()))));
    }
    // The mutex is this thread's already; waiting hands it to another device.
    std::unique_lock lock(mutex_, std::adopt_lock);
    changed_.wait(lock, [&] { return meeting.arrived == expected || error_ != nullptr; });
    lock.release();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  std::shared_ptr<const Contributions> contributions = meeting.contributions;
  if (++meeting.left == expected) meetings_.erase(key);
  return contributions;
}

void SpmdRun::Post(const Mailbox::Key& key, Literal value) {
  mailbox_.Put(key, std::move(value));
  if (awaited_.erase(key) == 0) return;
  ++running_;  // the receiver wakes up
  changed_.notify_all();
}

Literal SpmdRun::Receive(const Mailbox::Key& key, const Instruction& receiver) {
  if (!mailbox_.Has(key)) {
    awaited_.insert(key);
    if (--running_ == 0) {
      const auto [channel, source, target] = key;
      Stop(std::make_exception_ptr(
          Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: device {} waits for ever for what device {} never sends on channel {}",
                            receiver.name(), target, source, channel))));
    }
    std::unique_lock lock(mutex_, std::adopt_lock);
    changed_.wait(lock, [&] { return mailbox_.Has(key) || error_ != nullptr; });
    lock.release();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  return mailbox_.Take(key, receiver);
}

std::vector<Literal> SpmdRun::Run(const Computation& entry, const std::vector<std::vector<Literal>>& arguments,
                                  const EvaluatorOptions& options) {
  std::vector<Literal> results(static_cast<size_t>(device_count()));
  std::vector<std::thread> threads;
  running_ = device_count();
  for (int64_t device = 0; device < device_count(); ++device) {
    threads.emplace_back([&, device] {
      const std::lock_guard lock(mutex_);
      try {
        if (error_ != nullptr) return;
        const DenormalFlush flush(options.flush_denormals);
        Evaluation evaluation(options, this, device);
        if (device == 0) evaluation.set_observed(&entry);
        results[static_cast<size_t>(device)] = evaluation.Run(entry, arguments[static_cast<size_t>(device)]);
        const bool is_last = --running_ == 0;
        if (is_last && !awaited_.empty()) {
          const auto [channel, source, target] = *awaited_.begin();
          Invalid("device {} waits for ever for what device {} never sends on channel {}", target, source, channel);
        }
        if (is_last && !meetings_.empty()) {
          Fail(ErrorCode::kInvalidArgument, "{}: some devices of its group never come to this collective",
               std::get<0>(meetings_.begin()->first)->name());
        }
      } catch (...) {
        Stop(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (error_ != nullptr) std::rethrow_exception(error_);
  return results;
}

}  // namespace hlorun::hlo
