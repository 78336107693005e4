// The ranks of an MPI job: point-to-point messages through a plugin, the watch over the other ranks, and how a job
// ends.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/collectives/mpi/plugin.h"
#include "backends/collectives/transport.h"

namespace hlorun::collectives {

// A thread of its own exchanges beats with all other ranks four times a second, also while this rank computes or
// compiles, so that only a killed or stopped rank falls silent. A beat carries the rank's progress: when every rank
// waits and none has moved for as long as the heartbeat, they wait for each other for ever.
//
// Before the first beat and after the last, a rank that was stopped is seen by the others of its node
// (node_siblings.h).
//
// A rank that fails reports its cause to the lowest rank that is alive. That rank collects for a moment, since one
// failure often shows on several ranks, prints the first cause alone, and ends the job.
//
// Thread-safe: MPI is entered by one thread at a time.
class MpiWorld {
 public:
  // Loads the plugin for `mpi` ("openmpi", "mpich") and initialises it. Throws Error kFailedPrecondition.
  // `heartbeat`: seconds of silence or standstill; 0: none is too long. `communicator`: the caller's MPI_Comm; null:
  // all processes that were launched together.
  MpiWorld(const std::string& mpi, double heartbeat, const void* communicator = nullptr);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::unique_ptr<Request> Send(std::span<const std::byte> data, int to, int tag);
  std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int tag);
  // Whoever waits for a message calls it again and again. Throws kAborted naming a rank that has been silent for longer
  // than the heartbeat, or all of them when they wait for each other.
  void CheckPeers();
  // Between them the calling thread does nothing but wait: for messages, or for threads that do.
  void WaitBegins() { --busy_; }
  void WaitEnds() {
    ++progress_;
    ++busy_;
  }
  // Stops the beats and finalizes; all ranks call it.
  void Finalize();
  // Ends the job with one message and exit code 2; `is_cause`: this rank's own failure, not the echo of another's.
  [[noreturn]] void EndJob(const std::string& message, bool is_cause);
  // What any thread does before it leaves the process without unwinding. Async-signal-safe. Once it is set, a rank's
  // silence or a standstill ends this process even when no thread of it looks.
  void set_cleanup(void (*cleanup)()) { cleanup_ = cleanup; }

 private:
  class MpiRequest;
  struct Beat;
  struct Report;
  struct Peer;

  void Load(const std::string& mpi);
  void Check(int code, const char* what) const;
  void BeatUntilStopped();
  void ExchangeBeats(bool send);
  void ReceiveReports();
  void Collect(const Report& report);
  double SilenceOf(int peer) const;
  int SilentPeer() const;  // -1: none
  // What ends the job: a rank's silence, or a standstill of all; empty: nothing.
  std::string Trouble() const;
  void ReportTrouble();
  void OutliveTheOthers() const;
  double Standstill() const;
  int LowestAlive() const;
  std::string HostOf(int rank) const;
  [[noreturn]] void PrintAndLeave();

  void* library_ = nullptr;
  const HlorunMpiPlugin* plugin_ = nullptr;
  int rank_ = 0, size_ = 1;
  const double heartbeat_;
  mutable std::mutex mutex_;  // of everything inside MPI

  std::unique_ptr<Peer[]> peers_;  // by rank, this one included
  std::atomic<int64_t> last_exchange_ms_{0};
  std::atomic<int> busy_{1};                    // threads of this rank that do not wait for messages
  std::atomic<uint64_t> progress_{0};           // waits that ended, messages that arrived
  std::atomic<uint64_t> outstanding_bytes_{0};  // of messages under way

  mutable std::mutex report_mutex_;  // of reports_
  std::vector<Report> reports_;
  std::atomic<int64_t> first_report_ms_{0};
  std::atomic<void (*)()> cleanup_{nullptr};
  std::atomic<bool> leaving_{false}, stop_{false};
  bool trouble_reported_ = false;  // the beater's
  std::thread beater_;
};

}  // namespace hlorun::collectives
