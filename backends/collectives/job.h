// Job: the processes and devices that run one program together, under a launcher or in this process alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/collectives/communicator.h"
#include "backends/collectives/shared_heap.h"
#include "hlo/error.h"

namespace hlorun::collectives {

// Devices are numbered by rank: rank r drives devices [r * local_devices, (r + 1) * local_devices). Every rank has as
// many. Calls marked collective are made by all ranks, in the same order, from one thread.
class Job {
 public:
  virtual ~Job() = default;

  // The job this process was launched in: under mpirun (or another launcher whose MPI a plugin knows), else this
  // process alone. `heartbeat` seconds of silence make a rank dead; 0: never. Throws kFailedPrecondition for a launcher
  // of another MPI than the plugins'.
  static std::shared_ptr<Job> Start(int64_t devices_per_rank, double heartbeat);
  static std::shared_ptr<Job> InProcess(int64_t devices);
  // Collective over an MPI communicator of the caller's: `communicator` points to an MPI_Comm of `bytes` bytes, which
  // tells Open MPI's (a pointer) from MPICH's (an int). It is duplicated; the caller's may be freed. MPI must have been
  // initialised for MPI_THREAD_MULTIPLE, and be finalized after Finish().
  static std::shared_ptr<Job> OverCommunicator(const void* communicator, size_t bytes, int64_t devices_per_rank,
                                               double heartbeat);

  virtual int rank() const = 0;
  virtual int rank_count() const = 0;
  virtual std::string host() const = 0;
  int64_t local_devices() const { return local_devices_; }
  // Before anything runs: how many devices this rank drives from now on. All ranks say the same.
  virtual void DriveDevices(int64_t local_devices) = 0;
  int64_t device_count() const { return local_devices_ * rank_count(); }
  int64_t first_device() const { return local_devices_ * rank(); }

  // Collective. Rank 0 makes the bytes; its Error ends the job. All ranks get them.
  virtual std::string BroadcastFromFirst(const std::function<std::string()>& make) = 0;
  // Collective. Unless all ranks' texts agree, throws on the first rank that differs an Error that names `what` and the
  // lines that differ, on the others kAborted.
  virtual void CheckSame(const std::string& text, const std::string& what) = 0;
  // Collective: the job's exit code, the largest of the ranks'. Nothing else may be called afterwards.
  virtual int Finish(int exit_code) = 0;
  // Ends the whole job with exit code 2. Of the errors with which ranks come here at about the same time one is
  // printed, with its rank and host: the first that is a cause (kAborted is the echo of another rank's failure).
  [[noreturn]] virtual void Abort(const Error& error) = 0;
  // Gives the process to the job: a rank that falls silent ends it even while this one computes, not only when it waits
  // for that rank. `cleanup` is called before the process is left without unwinding; async-signal-safe.
  virtual void AtAbort(void (*cleanup)()) = 0;

  // Memory in which collectives find operands without a copy; null where ranks do not share memory, or drive several
  // devices.
  virtual std::shared_ptr<SharedHeap> shared_heap() { return nullptr; }

  // Runs `body(local device, its communicator)` for each local device, each in its own thread when there are several;
  // results in device order. The first Error ends the others' waits and is rethrown. Threads that call it go one after
  // another: messages are told apart by their number in a run, not by the run.
  template <typename R>
  std::vector<R> OnEachLocalDevice(const std::function<R(int64_t, const std::shared_ptr<Communicator>&)>& body) {
    std::vector<std::optional<R>> results(static_cast<size_t>(local_devices_));
    const std::unique_lock<std::recursive_mutex> lock = Begin();
    RunOnDevices(
        [&](int64_t d, const std::shared_ptr<Communicator>& c) { results[static_cast<size_t>(d)] = body(d, c); });
    std::vector<R> values;
    for (std::optional<R>& result : results) values.push_back(std::move(*result));
    return values;
  }

 protected:
  explicit Job(int64_t local_devices) : local_devices_(local_devices) {}
  virtual void RunOnDevices(const std::function<void(int64_t, const std::shared_ptr<Communicator>&)>& body) = 0;
  void set_local_devices(int64_t local_devices) { local_devices_ = local_devices; }

 private:
  // Waits for the run that another thread has begun. Throws kFailedPrecondition in a host function, for which that run
  // may be waiting.
  std::unique_lock<std::recursive_mutex> Begin();

  int64_t local_devices_;
  std::recursive_mutex running_;  // the body of a single device may begin another
};

}  // namespace hlorun::collectives
