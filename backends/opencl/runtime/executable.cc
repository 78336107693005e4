#include "backends/opencl/runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/lane.h"
#include "backends/opencl/runtime/loaded_constants.h"
#include "backends/opencl/runtime/plan_check.h"
#include "backends/opencl/runtime/program_build.h"
#include "backends/opencl/runtime/queue_order.h"
#include "backends/opencl/runtime/queue_sharing.h"
#include "backends/opencl/runtime/run_context.h"
#include "backends/opencl/runtime/run_event.h"
#include "backends/opencl/runtime/sections.h"
#include "backends/opencl/runtime/team.h"
#include "backends/opencl/runtime/thunk_runner.h"

namespace hlorun::opencl {
namespace {

using Kind = passes::Allocation::Kind;

// Kernels may load whole vectors from an argument's start.
constexpr uintptr_t kArgumentAlignment = 64;

bool IsAligned(const DeviceMemory& memory) {
  return reinterpret_cast<uintptr_t>(memory.host()) % kArgumentAlignment == 0;
}

// Of the device, and of the form that its programs have there (program_text.h).
std::string FingerprintOf(const DeviceContext& context, bool by_team) {
  const bool calls = by_team && context.device().calls_kernels();
  return context.device().Fingerprint() + (by_team ? ", by a team" : "") + (calls ? " that calls kernels" : "");
}

class PlanExecutable : public Executable {
 public:
  // `team` runs the launches, when the programs are of the team's context; else null.
  PlanExecutable(Plan plan, ProgramSet programs, std::shared_ptr<DeviceContext> context, Team* team)
      : plan_(std::move(plan)),
        programs_(std::move(programs)),
        context_(std::move(context)),
        first_lane_(context_->lane(0)),
        team_(team) {
    of_constants_ = NumberSteps(plan_.of_constants, launches_);
    once_ = NumberSteps(plan_.once, launches_);
    steps_ = NumberSteps(plan_.entry, launches_);
    if (team_ != nullptr) {
      FormSections(plan_, steps_);
    } else {
      queue_sharing_ =
          std::make_unique<QueueSharing>(plan_, std::move(steps_), launches_.size(), context_->quirks().mixes_up_grids);
    }
    needs_host_ = NeedsHost(plan_.entry);
    is_at_once_ = team_ != nullptr && IsBrief(plan_);
    for (const ArrayInfo& result : plan_.results) {
      result_shapes_.push_back(result.shape.WithoutLayout());
      result_names_.push_back(
          fmt::format("result {} ({}) of {}", result.name, result.shape.ToString(false), plan_.module_name));
    }
    for (size_t r = 0; r < plan_.result_slices.size(); ++r) {
      const auto same = [&](const Slice& other) { return other.allocation == plan_.result_slices[r].allocation; };
      const auto here = plan_.result_slices.begin() + static_cast<std::ptrdiff_t>(r);
      is_first_of_allocation_.push_back(std::none_of(plan_.result_slices.begin(), here, same));
    }
    placeholder_ = context_->pool()->Allocate(1, "the runtime");
    MakeConstants();
  }

  // Runs in flight use the plan and the kernels.
  ~PlanExecutable() override {
    for (const auto& event : TakeUnfinished()) event->WaitQuietly();
    delete spare_.load();
  }

  const Plan& plan() const override { return plan_; }
  const CompileStatistics& statistics() const override { return programs_.statistics; }
  SavedPlan Save() override {
    return {plan_, programs_.binaries, programs_.kernels, FingerprintOf(*context_, team_ != nullptr)};
  }
  int64_t resource_creations() const override {
    return context_->pool()->fresh_allocations() + programs_.statistics.kernels_compiled + kernel_objects_;
  }

  // Makes what is made of constants alone, and waits for it: the first lane's first run finds it there. In a lane of
  // its own, so that it waits for nobody's run, and whoever runs or is called back may compile. Programs of several
  // devices make it in the first run on each, those whose arena finds no room where the user asks for a run.
  void MakeOfConstants() {
    if (of_constants_.empty() || plan_.replica_count * plan_.num_partitions > 1) return;
    const std::unique_ptr<Lane> lane = context_->MakeLane();
    try {
      const Borrowed context = Borrow(first_lane_);
      RunMemories& run = context->memories();
      run.memories = constants_;
      context->BindArena(run.memories);
      const RunOptions options;
      ThunkRunner runner(*context_, *lane, team_, *context, run.memories, plan_, options);
      runner.Run(of_constants_);
      runner.Finish();
      context->has_constants = true;
    } catch (const Error& error) {
      lane->Drain();
      if (error.code() != ErrorCode::kResourceExhausted) throw;
    }
  }

  EventRef Run(std::span<const RunArgument> arguments, const RunOptions& options,
               std::span<DeviceArray> results) override {
    CheckArguments(arguments);
    HLORUN_CHECK(results.size() == plan_.result_slices.size());
    Lane& lane = options.communicator == nullptr ? first_lane_ : context_->lane(options.communicator->device());
    if (is_at_once_ && options.profile == nullptr && AreReady(arguments)) {
      EventRef failed;
      if (lane.RunAlone([&] { failed = RunAtOnce(lane, arguments, options, results); })) return failed;
    }
    lane.Reap();
    auto event = std::make_shared<RunEvent>(lane, failures_);
    auto run = std::make_shared<RunMemories>();
    Prepare(lane, arguments, *run);
    FillResults(*run, arguments, event, results);
    std::vector<EventRef> foreign;  // arrays of other lanes, which no order protects
    for (const RunArgument& argument : arguments) {
      if (argument.value.ready == nullptr) continue;
      const auto* own = dynamic_cast<const RunEvent*>(argument.value.ready.get());
      if (own == nullptr || own->lane() != &lane) foreign.push_back(argument.value.ready);
      event->DependOn(argument.value.ready);
    }
    for (const DeviceMemory& memory : run->memories) event->Retain(memory);
    for (const auto& copy : run->copies) event->Retain(copy.from);
    Remember(event);
    lane.Admit(event);
    const bool wait_first = std::any_of(foreign.begin(), foreign.end(), [](const EventRef& e) { return !e->Ready(); });
    if (team_ == nullptr && !needs_host_ && !wait_first && options.profile == nullptr) {
      if (lane.RunInline([&] { Enqueue(lane, *run, options, *event); })) return event;
    }
    try {
      lane.Post([this, &lane, run = std::move(run), options, event, foreign = std::move(foreign)]() mutable {
        for (const EventRef& e : foreign) WaitFor(*e);
        Drive(lane, std::move(run), options, *event);
      });
    } catch (...) {
      event->Finish(std::current_exception());  // those behind it in the lane wait for it
      throw;
    }
    return event;
  }

 private:
  static bool AreReady(std::span<const RunArgument> arguments) {
    return std::all_of(arguments.begin(), arguments.end(), [](const RunArgument& argument) {
      return argument.value.ready == nullptr || argument.value.ready->Ready();
    });
  }

  // By the team, in the calling thread: the results are there when it returns, so they need no event; unless it failed.
  EventRef RunAtOnce(Lane& lane, std::span<const RunArgument> arguments, const RunOptions& options,
                     std::span<DeviceArray> results) {
    const Borrowed context = Borrow(lane);
    RunMemories& run = context->memories();
    Prepare(lane, arguments, run);
    FillResults(run, arguments, nullptr, results);
    try {
      for (const RunArgument& argument : arguments) {
        if (argument.value.ready != nullptr) argument.value.ready->Wait();
      }
      Play(lane, *context, run, options, nullptr);
      return nullptr;
    } catch (...) {
      // Whoever waits for the results learns of it, as of a run that takes its time.
      const auto failed = std::make_shared<RunEvent>(lane);
      failed->Finish(std::current_exception());
      for (DeviceArray& result : results) result.ready = failed;
      return failed;
    }
  }

  void MakeConstants() {
    constants_.resize(plan_.allocations.size());
    size_t next = 0;
    for (size_t a = 0; a < plan_.allocations.size(); ++a) {
      if (plan_.allocations[a].kind != Kind::kConstant) continue;
      HLORUN_CHECK(next < plan_.constants.size());
      const auto literal = std::make_shared<hlo::Literal>(plan_.constants[next++]);
      const int64_t bytes = plan_.allocations[a].bytes;
      auto* data = const_cast<std::byte*>(literal->data());
      DeviceMemory memory;
      if (context_->raw_pointers() && reinterpret_cast<uintptr_t>(data) % kArgumentAlignment == 0 &&
          literal->ByteSize() == bytes) {
        memory = DeviceMemory::Wrap(data, bytes, literal);
      } else {
        memory = context_->pool()->Allocate(bytes, fmt::format("constant {} of {}", next - 1, plan_.module_name));
        CopyToDevice(context_, data, memory, std::min(bytes, literal->ByteSize()));
      }
      // Results may share it, so it is never taken over by a donation.
      memory.MarkShared();
      constants_[a] = memory.bytes() > 0 ? memory : placeholder_;
    }
  }

  void CheckArguments(std::span<const RunArgument> arguments) const {
    if (arguments.size() != plan_.parameters.size()) {
      Invalid("{} takes {} arrays, {} are given", plan_.module_name, plan_.parameters.size(), arguments.size());
    }
    for (const passes::Allocation& allocation : plan_.allocations) {
      if (allocation.kind != Kind::kArgument) continue;
      const auto i = static_cast<size_t>(allocation.index);
      if (arguments[i].value.memory.bytes() < allocation.bytes) {
        Invalid("argument {} ({} {}) has {} bytes, {} are needed", i, plan_.parameters[i].name,
                plan_.parameters[i].shape.ToString(false), arguments[i].value.memory.bytes(), allocation.bytes);
      }
    }
  }

  // `run` is new, or had its last run forgotten.
  void Prepare(const Lane& lane, std::span<const RunArgument> arguments, RunMemories& run) {
    if (run.memories.empty()) run.memories = constants_;
    for (const RunArgument& argument : arguments) argument.value.memory.UsedIn(&lane);
    if (!once_.empty()) {
      for (const int64_t leaf : plan_.constant_parameters) {
        run.constant.push_back(arguments[static_cast<size_t>(leaf)].value.memory);
        // Donated to another program, it would hold other values where it is known by its place.
        run.constant.back().MarkShared();
      }
    }
    for (size_t a = 0; a < plan_.allocations.size(); ++a) {
      const passes::Allocation& allocation = plan_.allocations[a];
      const auto i = static_cast<size_t>(allocation.index);
      if (allocation.kind == Kind::kArgument) {
        run.memories[a] = arguments[i].value.memory;
        if (run.memories[a].host() != nullptr && !IsAligned(run.memories[a])) {
          const DeviceMemory aligned =
              context_->pool()->Allocate(allocation.bytes, "an aligned copy of " + plan_.parameters[i].name);
          run.copies.push_back({run.memories[a], aligned, allocation.bytes});
          run.memories[a] = aligned;
        }
      } else if (allocation.kind == Kind::kResult) {
        run.memories[a] = ResultMemory(lane, allocation, arguments, run);
      }
    }
  }

  DeviceMemory ResultMemory(const Lane& lane, const passes::Allocation& allocation,
                            std::span<const RunArgument> arguments, RunMemories& run) {
    const int64_t alias = allocation.aliased_argument;
    if (alias >= 0 && MayTakeOver(lane, static_cast<size_t>(alias), allocation, arguments)) {
      return arguments[static_cast<size_t>(alias)].value.memory;
    }
    const auto i = static_cast<size_t>(allocation.index);
    DeviceMemory memory = context_->pool()->Allocate(allocation.bytes, result_names_[i]);
    if (alias >= 0) {
      const DeviceMemory& from = arguments[static_cast<size_t>(alias)].value.memory;
      run.copies.push_back({from, memory, std::min(allocation.bytes, from.bytes())});
    }
    return memory;
  }

  // A donated argument's memory becomes a result's when nothing else can see it. What was an argument in another lane
  // may still be read there: only within a lane do runs go one after another.
  bool MayTakeOver(const Lane& lane, size_t argument, const passes::Allocation& allocation,
                   std::span<const RunArgument> arguments) const {
    const RunArgument& given = arguments[argument];
    if (!given.donate || given.value.memory.shared() || given.value.memory.bytes() < allocation.bytes) return false;
    if (!given.value.memory.IsUsedOnlyIn(&lane)) return false;
    if (given.value.memory.host() != nullptr && !IsAligned(given.value.memory)) return false;
    for (size_t other = 0; other < arguments.size(); ++other) {
      if (other != argument && arguments[other].value.memory.Overlaps(given.value.memory)) return false;
    }
    for (const Slice& slice : plan_.result_slices) {
      const passes::Allocation& of_result = plan_.allocations[static_cast<size_t>(slice.allocation)];
      if (of_result.kind == Kind::kArgument && of_result.index == static_cast<int64_t>(argument)) return false;
    }
    return true;
  }

  void FillResults(const RunMemories& run, std::span<const RunArgument> arguments,
                   const std::shared_ptr<RunEvent>& event, std::span<DeviceArray> results) const {
    for (size_t r = 0; r < plan_.result_slices.size(); ++r) {
      const Slice& slice = plan_.result_slices[r];
      const auto a = static_cast<size_t>(slice.allocation);
      const passes::Allocation& allocation = plan_.allocations[a];
      if (allocation.kind == Kind::kArena) {
        HLORUN_CHECK(slice.bytes == 0);  // a token, which is nowhere
        results[r] = {result_shapes_[r], placeholder_.Sub(0, 0), event};
        continue;
      }
      const bool passed_on =
          allocation.kind == Kind::kArgument && arguments[static_cast<size_t>(allocation.index)].donate;
      if (allocation.kind != Kind::kResult && (!passed_on || !is_first_of_allocation_[r])) run.memories[a].MarkShared();
      results[r] = {result_shapes_[r], run.memories[a].Sub(slice.offset, slice.bytes), event};
    }
  }

  static void WaitFor(Event& event) {
    try {
      event.Wait();
    } catch (...) {
      // Reported by the run that depends on it, when it is waited for.
    }
  }

  // In the caller's thread: everything into the queue, nothing waited for.
  void Enqueue(Lane& lane, RunMemories& run, const RunOptions& options, RunEvent& event) {
    try {
      const Borrowed context = Borrow(lane);
      Play(lane, *context, run, options, nullptr);
      event.SetMarker(MarkEnd(lane.queue()()), plan_.module_name);
    } catch (...) {
      lane.Drain();
      event.Finish(std::current_exception());
    }
  }

  // In the lane's thread: steps and host decisions in turn, to the end. The run's hold on its memory ends before the
  // run is announced as done, so that whoever waited for it finds that memory free for the next one.
  void Drive(Lane& lane, std::shared_ptr<RunMemories> run, const RunOptions& options, RunEvent& event) {
    std::exception_ptr error;
    try {
      const Borrowed context = Borrow(lane);
      if (team_ != nullptr) CheckCl(clFinish(lane.queue()()), "waiting for earlier runs");
      Play(lane, *context, *run, options, &event);
    } catch (...) {
      lane.Drain();
      error = std::current_exception();
    }
    run.reset();
    event.Finish(error);
  }

  // `driven`: the run's event where the host stays with it to its end; else null.
  void Play(Lane& lane, RunContext& context, RunMemories& run, const RunOptions& options, const RunEvent* driven) {
    try {
      PlayOrThrow(lane, context, run, options, driven);
    } catch (...) {
      context.ForgetMade();
      throw;
    }
  }

  // What lasts from run to run, where it is not there yet.
  void MakeKept(ThunkRunner& runner, RunContext& context, const RunMemories& run) {
    // A queue tells late that a run failed, and what it made with it.
    if (context.failures != *failures_) context.ForgetMade();
    context.failures = *failures_;
    if (!of_constants_.empty() && !context.has_constants) {
      runner.Run(of_constants_);
      context.has_constants = true;
    }
    if (!once_.empty() && !context.Keeps(run.constant)) {
      context.ForgetKept();
      runner.Run(once_);
      context.Keep(run.constant);
    }
  }

  void PlayOrThrow(Lane& lane, RunContext& context, RunMemories& run, const RunOptions& options,
                   const RunEvent* driven) {
    context.Bind(run.memories);
    QueueSharing::Turn turn;
    if (queue_sharing_ != nullptr) turn = queue_sharing_->Next(lane, options.profile == nullptr);
    ThunkRunner runner(*context_, lane, team_, context, run.memories, plan_, options);
    runner.TimeSections(turn.timing(), turn.launched);
    for (const auto& copy : run.copies) runner.Copy(copy.from, copy.to, copy.bytes);
    try {
      // A loop over what was never made may have no end.
      if (driven != nullptr) driven->ThrowIfOneFailed();
      MakeKept(runner, context, run);
      runner.Run(turn.steps != nullptr ? *turn.steps : steps_);
      if (!turn.launched.empty()) queue_sharing_->GiveBack(std::move(turn));
    } catch (const std::exception& error) {
      runner.AbandonExchanges(error.what());
      throw;
    }
    runner.CompleteSends();
    if (driven != nullptr) runner.Finish();
    // A queue may still be at work when this one of the first runs ends.
    if (runs_that_load_ > 0 && runs_that_load_-- > 0) TouchLoadedConstants();
  }

  // Goes back to the lane's idle contexts when dropped: the lane's order protects what the queue still uses of it.
  struct GiveBack {
    PlanExecutable* executable;
    const Lane* lane;
    void operator()(RunContext* context) const {
      context->ForgetRun();
      RunContext* none = nullptr;
      if (lane == &executable->first_lane_ && executable->spare_.compare_exchange_strong(none, context)) return;
      std::lock_guard lock(executable->mutex_);
      executable->idle_[lane].emplace_back(context);
    }
  };
  using Borrowed = std::unique_ptr<RunContext, GiveBack>;
  Borrowed Borrow(const Lane& lane) {
    const GiveBack give_back{this, &lane};
    if (&lane == &first_lane_) {
      if (RunContext* context = spare_.exchange(nullptr)) return {context, give_back};
    }
    {
      std::lock_guard lock(mutex_);
      auto& idle = idle_[&lane];
      if (!idle.empty()) {
        Borrowed context(idle.back().release(), give_back);
        idle.pop_back();
        return context;
      }
    }
    Borrowed made(new RunContext(plan_, programs_, launches_, constants_, *context_->pool(), placeholder_,
                                 team_ != nullptr ? team_->size() : 0),
                  give_back);
    kernel_objects_ += made->creations();
    return made;
  }

  void Remember(const std::shared_ptr<RunEvent>& event) {
    std::lock_guard lock(mutex_);
    std::erase_if(unfinished_, [](const std::weak_ptr<RunEvent>& e) { return e.expired(); });
    unfinished_.push_back(event);
  }

  std::vector<std::shared_ptr<RunEvent>> TakeUnfinished() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<RunEvent>> events;
    for (const auto& weak : unfinished_) {
      if (auto event = weak.lock()) events.push_back(std::move(event));
    }
    return events;
  }

  Plan plan_;
  ProgramSet programs_;
  std::shared_ptr<DeviceContext> context_;
  Lane& first_lane_;
  Team* team_;
  StepSequence of_constants_, once_, steps_;     // steps_: by the team
  std::unique_ptr<QueueSharing> queue_sharing_;  // by the queue
  std::vector<const LaunchThunk*> launches_;
  bool needs_host_ = false;
  bool is_at_once_ = false;  // by the team, in the calling thread
  std::vector<SharedShape> result_shapes_;
  std::vector<bool> is_first_of_allocation_;  // of the results that lie there
  std::vector<std::string> result_names_;     // for errors: a short run has no time to write them
  DeviceMemory placeholder_;
  Memories constants_;  // by allocation, empty elsewhere
  std::atomic<int64_t> kernel_objects_{0};
  std::shared_ptr<std::atomic<int64_t>> failures_ = std::make_shared<std::atomic<int64_t>>(0);  // RunEvent counts them
  std::atomic<int> runs_that_load_{2};  // the first ones, in which the platform loads kernels
  std::mutex mutex_;
  std::vector<std::weak_ptr<RunEvent>> unfinished_;
  std::map<const Lane*, std::vector<std::unique_ptr<RunContext>>> idle_;
  std::atomic<RunContext*> spare_ = nullptr;  // an idle one of the first lane, without a lock; owned
};

// The context of the team that runs `plan`, or null for the device's queue.
DeviceContext* TeamFor(const Plan& plan, DeviceContext& context) {
  return SuitsTeam(plan) ? context.team_context() : nullptr;
}

std::unique_ptr<Executable> Make(Plan plan, ProgramSet programs, const std::shared_ptr<DeviceContext>& context,
                                 DeviceContext* team) {
  auto executable = std::make_unique<PlanExecutable>(std::move(plan), std::move(programs), context,
                                                     team != nullptr ? team->team() : nullptr);
  executable->MakeOfConstants();
  return executable;
}

}  // namespace

std::unique_ptr<Executable> BuildExecutable(Plan plan, const std::shared_ptr<DeviceContext>& context,
                                            const BuildOptions& options) {
  CheckPlan(plan);
  DeviceContext* team = TeamFor(plan, *context);
  ProgramSet programs = BuildPrograms(plan, team != nullptr ? *team : *context, options);
  return Make(std::move(plan), std::move(programs), context, team);
}

std::unique_ptr<Executable> BuildExecutable(SavedPlan saved, const std::shared_ptr<DeviceContext>& context,
                                            const BuildOptions&) {
  CheckPlan(saved.plan);
  DeviceContext* team = TeamFor(saved.plan, *context);
  const std::string fingerprint = FingerprintOf(*context, team != nullptr);
  if (saved.fingerprint != fingerprint) {
    Fail(
        ErrorCode::kFailedPrecondition,
        "the plan of {} was made for another device or driver: it wants \"{}\", this is \"{}\"; rebuild it from the module",
        saved.plan.module_name, saved.fingerprint, fingerprint);
  }
  ProgramSet programs = LoadPrograms(saved, team != nullptr ? *team : *context);
  return Make(std::move(saved.plan), std::move(programs), context, team);
}

}  // namespace hlorun::opencl
