// N devices in one process: a thread each, of which one runs at a time, meeting at collectives.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "hlo/evaluator/evaluation.h"

namespace hlorun::hlo {

class SpmdRun {
 public:
  SpmdRun(int64_t replica_count, int64_t partition_count)
      : replica_count_(replica_count), partition_count_(partition_count) {}

  int64_t replica_count() const { return replica_count_; }
  int64_t partition_count() const { return partition_count_; }
  int64_t device_count() const { return replica_count_ * partition_count_; }

  std::vector<Literal> Run(const Computation& entry, const std::vector<std::vector<Literal>>& arguments,
                           const EvaluatorOptions& options);

  // Waits until every device of `group` has come to `instruction` as often as this one; returns what each brought, in
  // the group's order. Throws when the others can no longer come.
  using Contributions = std::vector<std::vector<Literal>>;
  std::shared_ptr<const Contributions> Meet(const Instruction& instruction, int64_t device,
                                            const std::vector<int64_t>& group, std::vector<Literal> mine);

  // What devices sent to each other. Receive waits until the value is there; throws when it can no longer come.
  void Post(const Mailbox::Key& key, Literal value);
  Literal Receive(const Mailbox::Key& key, const Instruction& receiver);

 private:
  struct Meeting {
    std::shared_ptr<Contributions> contributions;
    size_t arrived = 0;
    size_t left = 0;
  };
  void Stop(std::exception_ptr error);

  int64_t replica_count_;
  int64_t partition_count_;
  std::mutex mutex_;  // held by the thread that runs
  std::condition_variable changed_;
  Mailbox mailbox_;
  std::set<Mailbox::Key> awaited_;  // what waiting devices wait for
  int64_t running_ = 0;             // devices that neither wait nor have ended
  std::exception_ptr error_;
  std::map<std::tuple<const Instruction*, int64_t, int64_t>, Meeting> meetings_;  // by instruction, group, visit
  std::map<std::pair<const Instruction*, int64_t>, int64_t> visits_;              // by instruction, device
};

}  // namespace hlorun::hlo
