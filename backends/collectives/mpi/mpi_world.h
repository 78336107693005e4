// The ranks of an MPI job: point-to-point messages through a plugin, and the watch over silent ranks.
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

// A thread of its own sends heartbeats to all other ranks twice a second, also while this rank computes or compiles, so
// that only a killed or stopped rank falls silent. Thread-safe: MPI is entered by one thread at a time.
class MpiWorld {
 public:
  // Loads the plugin for `mpi` ("openmpi", "mpich") and initialises it. Throws Error kFailedPrecondition.
  MpiWorld(const std::string& mpi, double heartbeat);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::unique_ptr<Request> Send(std::span<const std::byte> data, int to, int tag);
  std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int tag);
  // Throws kAborted naming the rank that has been silent for longer than the heartbeat.
  void CheckPeers();
  // Stops the heartbeats and finalizes; all ranks call it.
  void Finalize();
  [[noreturn]] void Abort();

 private:
  class MpiRequest;
  struct Pulse;
  void Check(int code, const char* what) const;
  void BeatUntilStopped();

  void* library_ = nullptr;
  const HlorunMpiPlugin* plugin_ = nullptr;
  int rank_ = 0, size_ = 1;
  double heartbeat_;
  mutable std::mutex mutex_;
  std::vector<std::atomic<int64_t>> last_heard_ms_;  // by rank, steady clock
  std::atomic<bool> stop_{false};
  std::thread beater_;
};

}  // namespace hlorun::collectives
