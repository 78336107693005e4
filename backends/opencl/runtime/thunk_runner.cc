#include "backends/opencl/runtime/thunk_runner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "backends/collectives/wait.h"
#include "backends/opencl/runtime/buffer_view.h"
#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/collective_run.h"
#include "backends/opencl/runtime/host_call.h"
#include "backends/opencl/runtime/kernel_text.h"
#include "backends/opencl/runtime/lane.h"
#include "backends/opencl/runtime/queue_order.h"
#include "backends/opencl/runtime/sections.h"
#include "backends/opencl/runtime/team.h"
#include "backends/opencl/runtime/transfer_run.h"
#include "hlo/fault.h"

namespace hlorun::opencl {
namespace {

// Launches that may wait in the queue before the enqueuing thread waits for older ones; bounds the runtime's memory.
constexpr int64_t kQueueDepth = 1024;
// A plan with more launches than this, loops unrolled, is driven by the lane's thread so that Run returns soon.
constexpr double kInlineLaunches = 4096;

// Launches of a run, or infinity where the host must decide.
double LaunchCount(const Sequence& sequence) {
  double count = 0;
  for (const Thunk& thunk : sequence.thunks) {
    if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
      // Where the kernels find the end themselves the host launches all iterations that there may be, conditions too.
      const bool is_counted = loop->trip_count >= 0;
      const bool host_decides = !is_counted && (loop->at_most < 0 || loop->ahead > 0);
      const double trips = static_cast<double>(is_counted ? loop->trip_count : loop->at_most);
      count += host_decides ? HUGE_VAL
                            : trips * (1 + LaunchCount(*loop->body) + (is_counted ? 0 : LaunchCount(*loop->condition)));
    } else if (std::holds_alternative<ConditionalThunk>(thunk.work) ||
               std::holds_alternative<CollectiveThunk>(thunk.work) ||
               std::holds_alternative<HostCallThunk>(thunk.work) || std::holds_alternative<TransferThunk>(thunk.work)) {
      return HUGE_VAL;
    } else {
      count += 1;
    }
  }
  return count;
}

// A run of a team that holds the calling thread does so not for longer than this, estimated at the speed of two modest
// cores.
constexpr double kBriefMicroseconds = 5000;
constexpr double kFlopsPerMicrosecond = 1e5, kBytesPerMicrosecond = 4e4;
// Of a loop whose length only the run will tell.
constexpr double kAssumedTrips = 16;

// What a team would take for a run; HUGE_VAL where it cannot run it.
double TeamMicroseconds(const Sequence& sequence) {
  double sum = 0;
  for (const Thunk& thunk : sequence.thunks) {
    if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
      const double trips = loop->trip_count >= 0 ? static_cast<double>(loop->trip_count) : kAssumedTrips;
      sum += trips * TeamMicroseconds(*loop->body);
      if (loop->trip_count < 0) sum += trips * TeamMicroseconds(*loop->condition);
    } else if (const auto* choice = std::get_if<ConditionalThunk>(&thunk.work)) {
      for (const auto& branch : choice->branches)
        sum += TeamMicroseconds(*branch) / static_cast<double>(choice->branches.size());
    } else if (std::holds_alternative<LibraryThunk>(thunk.work)) {
      return HUGE_VAL;
    } else {
      sum += std::max(thunk.flops / kFlopsPerMicrosecond, thunk.bytes / kBytesPerMicrosecond);
    }
  }
  return sum;
}

// Whether collectives run beside kernels. Not where both are work of the same cores: among CPU devices of one host.
// HLORUN_OVERLAP=0 or 1 says otherwise.
bool MayOverlap(const DeviceContext& device, const collectives::Transport& transport) {
  static const char* const wanted = std::getenv("HLORUN_OVERLAP");
  if (wanted != nullptr && *wanted != '\0') return std::string_view(wanted) != "0";
  return transport.is_network() || device.spec().device_class != DeviceClass::kCpu;
}

std::string NameOf(const Thunk& thunk) {
  return thunk.op_name.empty() ? thunk.label : fmt::format("{} ({})", thunk.label, thunk.op_name);
}

}  // namespace

bool NeedsHost(const Sequence& sequence) { return LaunchCount(sequence) > kInlineLaunches; }

bool SuitsTeam(const Plan& plan) {
  const auto suits = [](const Kernel& kernel) {
    return IsFunction(kernel) && std::all_of(kernel.grids.begin(), kernel.grids.end(),
                                             [](const Grid& grid) { return grid.groups[0] <= Team::kMostGroups; });
  };
  return std::all_of(plan.kernels.begin(), plan.kernels.end(), suits) && TeamMicroseconds(plan.entry) < HUGE_VAL;
}

bool IsBrief(const Plan& plan) { return !NeedsHost(plan.entry) && TeamMicroseconds(plan.entry) <= kBriefMicroseconds; }

ThunkRunner::ThunkRunner(const DeviceContext& device, Lane& lane, Team* team, RunContext& context,
                         const Memories& memories, const Plan& plan, const RunOptions& options)
    : device_(device),
      lane_(lane),
      queue_(lane.queue()()),
      team_(team),
      context_(context),
      memories_(memories),
      plan_(plan),
      options_(options) {
  context.partition_id = static_cast<uint64_t>(options.partition);
  context.replica_id = static_cast<uint64_t>(options.replica);
}

double ThunkRunner::Now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

DeviceMemory ThunkRunner::At(const Slice& slice) const {
  return memories_[static_cast<size_t>(slice.allocation)].Sub(slice.offset, slice.bytes);
}

void ThunkRunner::Run(const StepSequence& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool is_leaf = step.children.empty();
    try {
      if (step.section > 1 && options_.profile == nullptr) {
        const auto section = static_cast<size_t>(step.section);
        RunSection(std::span(steps).subspan(i, section));
        i += section - 1;
        continue;
      }
      const double begin = options_.profile != nullptr ? Now() : 0;
      RunStep(step);
      if (options_.profile != nullptr && is_leaf) {
        Finish();
        options_.profile->push_back({step.thunk, begin, Now(), team_ != nullptr});
      }
    } catch (const Error& e) {
      // The innermost thunk is the one to name.
      if (!is_leaf) throw;
      throw Error(e.code(), NameOf(*step.thunk) + ": " + e.message(), e.location());
    }
  }
}

void ThunkRunner::RunStep(const Step& step) {
  const auto& work = step.thunk->work;
  if (step.launch >= 0 && team_ != nullptr) {
    TeamLaunch* launch = &context_.launch(step.launch).by_team;
    team_->Run({&launch, 1}, ShareOf(step));
  } else if (step.launch >= 0) {
    Launch(context_.launch(step.launch));
  } else if (const auto* copy = std::get_if<CopyThunk>(&work)) {
    Copy(At(copy->from), At(copy->to), copy->to.bytes);
  } else if (const auto* write = std::get_if<WriteThunk>(&work)) {
    Do(*write);
  } else if (const auto* loop = std::get_if<WhileThunk>(&work)) {
    Do(*loop, step);
  } else if (const auto* choice = std::get_if<ConditionalThunk>(&work)) {
    Do(*choice, step);
  } else if (const auto* collective = std::get_if<CollectiveThunk>(&work)) {
    Do(*collective);
  } else if (const auto* await = std::get_if<AwaitThunk>(&work)) {
    Await(*started_[static_cast<size_t>(await->ticket)]);
  } else if (const auto* call = std::get_if<HostCallThunk>(&work)) {
    Do(*call);
  } else if (const auto* product = std::get_if<LibraryThunk>(&work)) {
    Do(*product);
  } else if (const auto* transfer = std::get_if<TransferThunk>(&work)) {
    Do(*transfer);
  }
  // Of a queue's launches nobody waits for the end, but for a team's: what is being sent meanwhile stands still.
  if (team_ != nullptr && !sends_.empty()) options_.communicator->transport().Progress();
}

void ThunkRunner::RunSection(std::span<const Step> steps) {
  if (team_ == nullptr) return timing_queue_ != nullptr ? TimeSection(steps) : RunByTwoQueues(steps);
  std::array<TeamLaunch*, kMostTogether> launches{};
  for (size_t i = 0; i < steps.size(); ++i) launches[i] = &context_.launch(steps[i].launch).by_team;
  team_->Run({launches.data(), steps.size()}, ShareOf(steps.front()));
}

void ThunkRunner::RunByTwoQueues(std::span<const Step> steps) {
  cl_command_queue aside = lane_.second_queue()();
  if (aside != nullptr) BeginBehind(aside, MarkEnd(queue_));
  for (const Step& step : steps) Launch(context_.launch(step.launch), step.aside && aside != nullptr ? aside : queue_);
  if (aside == nullptr) return;
  CheckCl(clFlush(queue_), "flushing the queue");  // both begin now
  BeginBehind(queue_, MarkEnd(aside));
}

void ThunkRunner::TimeSection(std::span<const Step> steps) {
  try {
    BeginBehind(timing_queue_, MarkEnd(queue_));
    for (const Step& step : steps) {
      cl_event launched = nullptr;
      Launch(context_.launch(step.launch), timing_queue_, &launched);
      const cl::Event event(launched);
      cl::Event& kept = launched_[static_cast<size_t>(step.launch)];
      if (kept() == nullptr) kept = event;
    }
    BeginBehind(queue_, MarkEnd(timing_queue_));
  } catch (...) {
    clFinish(timing_queue_);  // nobody else knows of it
    throw;
  }
}

void ThunkRunner::Launch(const PreparedLaunch& launch, cl_command_queue queue, cl_event* launched) {
  if (launch.empty) return;
  CheckCl(clEnqueueNDRangeKernel(queue, launch.kernel(), launch.dimensions, nullptr, launch.global, launch.local, 0,
                                 nullptr, launched),
          "launching a kernel");
  if (++queued_ >= kQueueDepth) Throttle();
}

void ThunkRunner::Throttle() {
  queued_ = 0;
  cl::Event marker = MarkEnd(queue_);
  const cl_event previous = previous_marker_();
  if (previous != nullptr) CheckCl(clWaitForEvents(1, &previous), "waiting for kernels");
  previous_marker_ = std::move(marker);
}

void ThunkRunner::Copy(const DeviceMemory& from, const DeviceMemory& to, int64_t bytes) {
  if (bytes == 0) return;
  const auto size = static_cast<size_t>(bytes);
  if (to.host() != nullptr) {
    if (to.host() == from.host()) return;
    if (team_ != nullptr) return static_cast<void>(std::memcpy(to.host(), from.host(), size));
    CheckCl(clEnqueueSVMMemcpy(queue_, CL_FALSE, to.host(), from.host(), size, 0, nullptr, nullptr), "copying");
    return;
  }
  CheckCl(clEnqueueCopyBuffer(queue_, from.buffer(), to.buffer(), static_cast<size_t>(from.offset()),
                              static_cast<size_t>(to.offset()), size, 0, nullptr, nullptr),
          "copying");
}

void ThunkRunner::Do(const WriteThunk& thunk) {
  const void* source = thunk.bytes.data();
  auto size = static_cast<size_t>(thunk.to.bytes);
  if (thunk.value == WriteThunk::Value::kBytes) size = std::min(size, thunk.bytes.size());
  if (thunk.value == WriteThunk::Value::kPartitionId) source = &context_.partition_id;
  if (thunk.value == WriteThunk::Value::kReplicaId) source = &context_.replica_id;
  if (size == 0) return;
  const DeviceMemory to = At(thunk.to);
  // The source outlives the run: it lies in the plan or in the run context.
  if (team_ != nullptr) {
    std::memcpy(to.host(), source, size);
  } else if (to.host() != nullptr) {
    CheckCl(clEnqueueSVMMemcpy(queue_, CL_FALSE, to.host(), source, size, 0, nullptr, nullptr), "writing bytes");
  } else {
    CheckCl(clEnqueueWriteBuffer(queue_, to.buffer(), CL_FALSE, static_cast<size_t>(to.offset()), size, source, 0,
                                 nullptr, nullptr),
            "writing bytes");
  }
}

bool ThunkRunner::ReadPredicate(const Slice& slice) {
  uint8_t value = 0;
  Finish();
  Read(At(slice), &value, 1);
  return value != 0;
}

void ThunkRunner::Do(const WhileThunk& thunk, const Step& step) {
  const StepSequence& condition = step.children[0];
  const StepSequence& body = step.children[1];
  if (thunk.trip_count >= 0) {
    for (int64_t i = 0; i < thunk.trip_count; ++i) RunTrip(step);
    return;
  }
  if (thunk.ahead > 0 && team_ == nullptr) return RunAhead(thunk, step);
  if (thunk.at_most >= 0 && team_ == nullptr) {
    for (int64_t i = 0; i < thunk.at_most; ++i) {
      Run(condition);
      Run(body);
    }
    return;
  }
  for (Run(condition); ReadPredicate(thunk.predicate); Run(condition)) RunTrip(step);
}

void ThunkRunner::RunTrip(const Step& loop) {
  const StepSequence& body = loop.children[1];
  if (team_ == nullptr || team_->size() == 1 || loop.sharing == nullptr || options_.profile != nullptr)
    return Run(body);
  const SharingChoice::Trip trip = loop.sharing->Next();
  const double begin = trip.counts ? Now() : 0;
  works_alone_ = trip.alone;
  Run(body);
  works_alone_ = false;
  if (trip.counts) loop.sharing->Add(trip, Now() - begin);
}

// After the end the condition gives false again, for nothing has changed, and the body's kernels return at once: what
// is enqueued too much does no harm. The queue holds one batch while the host waits for the predicate behind the other.
void ThunkRunner::RunAhead(const WhileThunk& thunk, const Step& step) {
  cl::Event pending;
  int64_t batch = 1;  // grows: a loop that ends at once leaves little behind
  Run(step.children[0]);
  for (size_t slot = 0;; slot ^= 1) {
    for (int64_t i = 0; i < batch; ++i) {
      Run(step.children[1]);
      Run(step.children[0]);
    }
    cl::Event next = ReadLater(thunk.predicate, slot);
    if (pending() != nullptr) {
      WaitFor(pending());
      if (context_.predicates[slot ^ 1] == 0) return;
    }
    pending = std::move(next);
    batch = std::min(2 * batch, thunk.ahead);
  }
}

cl::Event ThunkRunner::ReadLater(const Slice& slice, size_t slot) {
  const DeviceMemory from = At(slice);
  uint8_t* to = &context_.predicates[slot];
  cl_event event = nullptr;
  if (from.host() != nullptr) {
    CheckCl(clEnqueueSVMMemcpy(queue_, CL_FALSE, to, from.host(), 1, 0, nullptr, &event), "reading a predicate");
  } else {
    CheckCl(clEnqueueReadBuffer(queue_, from.buffer(), CL_FALSE, static_cast<size_t>(from.offset()), 1, to, 0, nullptr,
                                &event),
            "reading a predicate");
  }
  cl::Event read(event);
  CheckCl(clFlush(queue_), "flushing the queue");
  return read;
}

void ThunkRunner::Do(const ConditionalThunk& thunk, const Step& step) {
  const auto count = static_cast<int32_t>(step.children.size());
  int32_t taken = 0;
  if (thunk.is_predicate) {
    taken = ReadPredicate(thunk.selector) ? 0 : 1;
  } else {
    Finish();
    Read(At(thunk.selector), &taken, sizeof(taken));
    if (taken < 0 || taken >= count) taken = count - 1;  // as XLA defines it
  }
  if (taken < count) Run(step.children[static_cast<size_t>(taken)]);
}

void ThunkRunner::Do(const HostCallThunk& thunk) {
  Finish();
  RunHostCall(thunk, *this);
}

void ThunkRunner::Do(const LibraryThunk& thunk) {
  const BufferView lhs(device_, At(thunk.lhs)), rhs(device_, At(thunk.rhs)), out(device_, At(thunk.out));
  EnqueueClblastProduct(thunk, lhs.array(), rhs.array(), out.array(), queue_);
  out.ShowToHost(queue_);
}

void ThunkRunner::Do(const CollectiveThunk& thunk) {
  if (options_.communicator == nullptr) {
    Fail(ErrorCode::kFailedPrecondition,
         "the module exchanges data with {} other devices: run it with mpirun or --devices",
         plan_.replica_count * plan_.num_partitions - 1);
  }
  const bool others_run = last_exchange_ != nullptr && !last_exchange_->is_done();
  // A profile shows how long each takes by itself.
  const bool starts =
      thunk.ticket >= 0 && options_.profile == nullptr && MayOverlap(device_, options_.communicator->transport());
  if (!starts && !others_run) {
    Finish();
    RunCollective(thunk, *this, queue_);
  }
  std::shared_ptr<Exchange> exchange;
  if (starts || others_run) exchange = Start(thunk);
  if (!starts && others_run) Await(*exchange);
  if (thunk.ticket < 0) return;
  if (exchange == nullptr) {
    exchange = std::make_shared<Exchange>();
    exchange->Done();
  }
  started_.resize(std::max(started_.size(), static_cast<size_t>(thunk.ticket) + 1));
  started_[static_cast<size_t>(thunk.ticket)] = std::move(exchange);
}

std::shared_ptr<Exchange> ThunkRunner::Start(const CollectiveThunk& thunk) {
  const cl::Event computed =
      team_ == nullptr ? MarkEnd(queue_) : cl::Event();  // a team has computed what it was told to
  auto started = std::make_shared<Exchange>();
  lane_.PostExchange([this, &thunk, computed, exchange = started] {
    std::exception_ptr error;
    try {
      const cl_event event = computed();
      if (event != nullptr) CheckCl(clWaitForEvents(1, &event), "waiting for the device");
      RunCollective(thunk, *this, device_.transfer_queue()());
    } catch (...) {
      error = std::current_exception();
    }
    exchange->Done(std::move(error));
  });
  last_exchange_ = started;
  return started;
}

void ThunkRunner::Await(const Exchange& exchange) {
  if (!exchange.is_done() && FaultHits(Fault::kAwaitFail))
    Fail(ErrorCode::kInternal, "HLORUN_FAULT=await_fail: this rank fails while it exchanges");
  const std::exception_ptr error = exchange.Wait();
  if (error) std::rethrow_exception(error);
}

void ThunkRunner::AbandonExchanges(const std::string& reason) {
  if (last_exchange_ == nullptr || last_exchange_->is_done()) return;
  options_.communicator->transport().Abort(reason);
  last_exchange_->Wait();
}

void ThunkRunner::Do(const TransferThunk& thunk) {
  Finish();
  // One thread of a device at a time waits for messages.
  if (last_exchange_ != nullptr) Await(*last_exchange_);
  RunTransfer(thunk, *this);
}

void ThunkRunner::SendLater(hlo::Literal value, int to, int64_t tag) {
  PendingSend& send = sends_.emplace_back();
  send.value = std::make_unique<hlo::Literal>(std::move(value));
  const std::span<const std::byte> bytes(send.value->data(), static_cast<size_t>(send.value->ByteSize()));
  send.request = options_.communicator->transport().Send(bytes, to, tag);
}

void ThunkRunner::CompleteSends() {
  if (sends_.empty()) return;
  const collectives::WaitScope scope(options_.communicator->transport());
  collectives::WaitUntil([&] {
    std::erase_if(sends_, [](const PendingSend& send) { return send.request->Test(); });
    if (!sends_.empty()) options_.communicator->transport().Progress();
    return sends_.empty();
  });
}

void ThunkRunner::Finish() {
  queued_ = 0;
  previous_marker_ = cl::Event();
  if (team_ != nullptr) {
    if (options_.communicator != nullptr) options_.communicator->transport().Progress();
    return;
  }
  if (options_.communicator == nullptr) {
    CheckCl(clFinish(queue_), "waiting for the device");
    return;
  }
  const cl::Event done = MarkEnd(queue_);
  WaitFor(done());
}

void ThunkRunner::WaitFor(cl_event event) {
  if (options_.communicator == nullptr) return CheckCl(clWaitForEvents(1, &event), "waiting for the device");
  collectives::WaitUntil([&] {
    options_.communicator->transport().Progress();
    cl_int status = CL_QUEUED;
    CheckCl(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
            "asking for progress");
    if (status < 0) FailCl(status, "waiting for the device");
    return status == CL_COMPLETE;
  });
}

void ThunkRunner::Read(const DeviceMemory& from, void* to, int64_t bytes, cl_command_queue queue) const {
  if (from.host() != nullptr) {
    std::memcpy(to, from.host(), static_cast<size_t>(bytes));
    return;
  }
  CheckCl(clEnqueueReadBuffer(queue, from.buffer(), CL_TRUE, static_cast<size_t>(from.offset()),
                              static_cast<size_t>(bytes), to, 0, nullptr, nullptr),
          "reading from the device");
}

void ThunkRunner::Write(const void* from, const DeviceMemory& to, int64_t bytes, cl_command_queue queue) const {
  if (to.host() != nullptr) {
    std::memcpy(to.host(), from, static_cast<size_t>(bytes));
    return;
  }
  CheckCl(clEnqueueWriteBuffer(queue, to.buffer(), CL_TRUE, static_cast<size_t>(to.offset()),
                               static_cast<size_t>(bytes), from, 0, nullptr, nullptr),
          "writing to the device");
}

DeviceMemory ThunkRunner::Allocate(int64_t bytes) const {
  return device_.pool()->Allocate(bytes, "a collective's scratch");
}

void ThunkRunner::LaunchReducer(int32_t kernel, const DeviceMemory& a, const DeviceMemory& b, const DeviceMemory& out) {
  PreparedLaunch& launch = context_.Reducer(kernel);
  cl_uint number = 0;
  for (const DeviceMemory* memory : {&a, &b, &out}) launch.SetArgument(number++, *memory, 0, memory->bytes());
  if (team_ != nullptr) {
    TeamLaunch* by_team = &launch.by_team;
    return team_->Run({&by_team, 1}, 1);
  }
  Launch(launch);
  CheckCl(clFinish(queue_), "waiting for a reducer");
}

}  // namespace hlorun::opencl
