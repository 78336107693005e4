// Enqueues a plan's steps for one run, and makes the decisions that the host must make.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <vector>

#include "backends/opencl/runtime/exchange.h"
#include "backends/opencl/runtime/run_context.h"

namespace hlorun::opencl {

class Lane;
class Team;

// Whether a run needs the host between its steps: loops of unknown length, branches, collectives and host calls; or so
// many launches that enqueuing them all would take long.
bool NeedsHost(const Sequence& sequence);

// Whether a team can run a plan's launches (team.h): where there is one, it does so better than a queue, whose threads
// fall asleep between launches. Not those of a library, which want a queue.
bool SuitsTeam(const Plan& plan);
// Whether they are so short that the calling thread may lead the team.
bool IsBrief(const Plan& plan);

class ThunkRunner {
 public:
  // `memories` is complete. All references outlive the run.
  // `team`: runs every launch, copy and write at once, in this thread; null: they go into the lane's queue.
  ThunkRunner(const DeviceContext& device, Lane& lane, Team* team, RunContext& context, const Memories& memories,
              const Plan& plan, const RunOptions& options);

  // Where `timing` is not null, sections are launched one by one into that queue, and what becomes of each launch is
  // put into `launched`, by its number: of the first one, where there are several. Both outlive the run.
  void TimeSections(cl_command_queue timing, std::span<cl::Event> launched) {
    timing_queue_ = timing;
    launched_ = launched;
  }
  // Throws Error naming the thunk that failed.
  void Run(const StepSequence& steps);
  // After Run has thrown: ends the exchanges that are under way, those of other devices with it. Else nothing is.
  void AbandonExchanges(const std::string& reason);
  // Sends in the background; CompleteSends waits for what is under way.
  void SendLater(hlo::Literal value, int to, int64_t tag);
  void CompleteSends();
  // By channel: what this device sent to itself and has not received yet.
  std::map<int64_t, std::deque<std::vector<hlo::Literal>>>& own_transfers() { return own_transfers_; }
  void Copy(const DeviceMemory& from, const DeviceMemory& to, int64_t bytes);
  // Waits until everything enqueued has run; keeps the transport going meanwhile.
  void Finish();

  DeviceMemory At(const Slice& slice) const;
  const RunOptions& options() const { return options_; }
  RunContext& context() { return context_; }
  const Plan& plan() const { return plan_; }
  // How many collectives of `group` (or of such pairs) this device has run. Counted by group: another group's devices
  // may take another branch, or more trips.
  int64_t NextCollective(const std::vector<int64_t>& group) { return collectives_[group]++; }
  // Blocking; what is read is there.
  void Read(const DeviceMemory& from, void* to, int64_t bytes) { Read(from, to, bytes, queue_); }
  void Write(const void* from, const DeviceMemory& to, int64_t bytes) { Write(from, to, bytes, queue_); }
  void Read(const DeviceMemory& from, void* to, int64_t bytes, cl_command_queue queue) const;
  void Write(const void* from, const DeviceMemory& to, int64_t bytes, cl_command_queue queue) const;
  DeviceMemory Allocate(int64_t bytes) const;
  // Launches with three pointers, as reducers take.
  void LaunchReducer(int32_t kernel, const DeviceMemory& a, const DeviceMemory& b, const DeviceMemory& out);

 private:
  void RunStep(const Step& step);
  // A loop's body, once.
  void RunTrip(const Step& loop);
  int64_t ShareOf(const Step& step) const { return works_alone_ ? step.share_alone : step.share; }
  // Side by side: by the team, or by two queues.
  void RunSection(std::span<const Step> steps);
  void RunByTwoQueues(std::span<const Step> steps);
  // One by one, by the queue that times them.
  void TimeSection(std::span<const Step> steps);
  void Launch(const PreparedLaunch& launch) { Launch(launch, queue_); }
  void Launch(const PreparedLaunch& launch, cl_command_queue queue, cl_event* launched = nullptr);
  void Do(const WriteThunk& thunk);
  void Do(const WhileThunk& thunk, const Step& step);
  void Do(const ConditionalThunk& thunk, const Step& step);
  void Do(const HostCallThunk& thunk);
  void Do(const LibraryThunk& thunk);
  void Do(const TransferThunk& thunk);
  void Do(const CollectiveThunk& thunk);
  // On the lane's thread for exchanges, once what is in the queue has run.
  std::shared_ptr<Exchange> Start(const CollectiveThunk& thunk);
  void Await(const Exchange& exchange);
  void RunAhead(const WhileThunk& thunk, const Step& step);
  bool ReadPredicate(const Slice& slice);
  // Reads a byte when the device gets there: into context().predicates[slot].
  cl::Event ReadLater(const Slice& slice, size_t slot);
  // Keeps the transport going meanwhile.
  void WaitFor(cl_event event);
  void Throttle();
  static double Now();  // microseconds

  const DeviceContext& device_;
  Lane& lane_;
  cl_command_queue queue_;
  Team* team_;
  RunContext& context_;
  const Memories& memories_;
  const Plan& plan_;
  const RunOptions& options_;
  struct PendingSend {
    std::unique_ptr<hlo::Literal> value;  // does not move
    std::unique_ptr<collectives::Request> request;
  };
  std::vector<PendingSend> sends_;
  std::map<int64_t, std::deque<std::vector<hlo::Literal>>> own_transfers_;
  cl_command_queue timing_queue_ = nullptr;
  std::span<cl::Event> launched_;
  std::map<std::vector<int64_t>, int64_t> collectives_;  // of the thread that exchanges
  std::vector<std::shared_ptr<Exchange>> started_;       // by ticket
  std::shared_ptr<Exchange> last_exchange_;              // when it is done, all are
  bool works_alone_ = false;                             // in a trip of which only long work is shared
  int64_t queued_ = 0;                                   // launches since the last marker
  cl::Event previous_marker_;
};

}  // namespace hlorun::opencl
