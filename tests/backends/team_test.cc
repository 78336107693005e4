// Runs by a team: every group runs exactly once, whichever member takes it; order with the queue's runs is kept.
#include <gmock/gmock.h>
#include <sched.h>

#include <filesystem>
#include <string>
#include <thread>

#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/kernel_text.h"
#include "backends/opencl/runtime/sections.h"
#include "backends/opencl/runtime/team.h"
#include "backends/opencl/runtime/thunk_runner.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

// y[g] += x[g], so that a group that runs twice, or never, shows. `work`: what the launch is said to cost.
Plan CountingPlan(int64_t n, double bytes) {
  PlanMaker m;
  const int32_t x = m.Parameter(n), y = m.Result(n);
  const int32_t zero = m.Kernel2("zero", "*y = 0 * *x;", n), add = m.Kernel2("add", "*y += *x;", n);
  for (const int32_t kernel : {zero, add, add}) {
    Thunk launch = m.Launch(kernel, m.Floats(x, n), m.Floats(y, n));
    launch.bytes = bytes;
    m.Add(launch);
  }
  return m.Take();
}

TEST(Team, RunsEveryGroupOnce) {
  for (const double bytes : {0.0, 1e6}) {  // alone; with helpers
    for (const int64_t n : {1, 2, 3, 17, 1000}) {
      const auto executable = Build(CountingPlan(n, bytes));
      const DeviceArray x = Upload(Iota(n, 1));
      std::vector<float> twice = Iota(n, 1);
      for (float& v : twice) v *= 2;
      for (int i = 0; i < 50; ++i)
        ASSERT_EQ(Download(executable->Run({{x}}, {}).at(0)), twice) << n << " groups, run " << i;
    }
  }
}

// Runs whose helpers have fallen asleep since the one before.
void RunFromSleep() {
  const auto executable = Build(CountingPlan(64, 1e6));
  const DeviceArray x = Upload(Iota(64, 1));
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(Download(executable->Run({{x}}, {}).at(0))[63], 128);
  }
}

TEST(Team, SleepingHelpersWake) { RunFromSleep(); }

// Threads of this process that may not run on the same cores as the calling one.
int ConfinedThreads() {
  cpu_set_t own, other;
  EXPECT_EQ(sched_getaffinity(0, sizeof(own), &own), 0);
  int confined = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    confined += sched_getaffinity(thread, sizeof(other), &other) != 0 || !CPU_EQUAL(&own, &other);
  }
  return confined;
}

// A helper is sent to a core for as long as it takes to wake up there.
TEST(Team, HelpersAreNotConfined) {
  RunFromSleep();
  for (int i = 0; i < 1000 && ConfinedThreads() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ConfinedThreads(), 0);
}

TEST(Team, ThreadsTakeTurns) {
  const auto executable = Build(CountingPlan(100, 1e6));
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const DeviceArray x = Upload(Iota(100, static_cast<float>(t)));
      for (int i = 0; i < 100; ++i)
        wrong += Download(executable->Run({{x}}, {}).at(0))[99] != 2.0F * static_cast<float>(t + 99);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A run that a team cannot do goes through the queue, one that reads its result through the team.
TEST(Team, ComesAfterWhatTheQueueHolds) {
  Plan foreign = SquarePlan(1 << 16);
  MakeForeign(foreign);
  ASSERT_FALSE(SuitsTeam(foreign));
  const auto slow = Build(std::move(foreign)), quick = Build(CountingPlan(1 << 16, 1e6));
  const DeviceArray x = Upload(std::vector<float>(1 << 16, 3));
  for (int i = 0; i < 20; ++i) {
    const DeviceArray squares = slow->Run({{x}}, {}).at(0);
    const DeviceArray sums = quick->Run({{squares}}, {}).at(0);
    const std::vector<float> fourth = Download(slow->Run({{sums}}, {}).at(0));
    ASSERT_EQ(fourth, std::vector<float>(1 << 16, 324));
  }
}

// A long one leaves the calling thread free.
TEST(Team, LedByAnotherThreadEndsInOrder) {
  Plan longer = SquarePlan(1 << 16);
  longer.entry.thunks[0].flops = 1e12;
  ASSERT_TRUE(SuitsTeam(longer));
  ASSERT_FALSE(IsBrief(longer));
  ASSERT_TRUE(IsBrief(SquarePlan(1 << 16)));
  const auto slow = Build(std::move(longer)), quick = Build(SquarePlan(1 << 16));
  const DeviceArray x = Upload(std::vector<float>(1 << 16, 3));
  for (int i = 0; i < 20; ++i) {
    const DeviceArray squares = slow->Run({{x}}, {}).at(0);
    const DeviceArray fourth = quick->Run({{squares}}, {}).at(0);
    ASSERT_EQ(Download(slow->Run({{fourth}}, {}).at(0)), std::vector<float>(1 << 16, 6561));
  }
}

TEST(Team, TakesRunsOfPlainLaunchesOnly) {
  EXPECT_TRUE(SuitsTeam(SquarePlan(4)));
  Plan plan = SquarePlan(4);
  plan.entry.thunks[0].bytes = 1e12;
  EXPECT_TRUE(SuitsTeam(plan));
  plan.kernels[0].grids[0].local[0] = 64;
  EXPECT_FALSE(SuitsTeam(plan));
  plan = SquarePlan(4);
  plan.kernels[0].foreign = true;
  EXPECT_FALSE(SuitsTeam(plan));
  plan = SquarePlan(4);
  plan.kernels[0].source += "// barrier(";
  EXPECT_FALSE(SuitsTeam(plan));
  plan = SquarePlan(4);
  plan.kernels[0].grids[0].groups[0] = Team::kMostGroups + 1;
  EXPECT_FALSE(SuitsTeam(plan));
}

// Two chains of two launches through an arena, of `n` groups and of one: y = (2 x)^2, z = (x + 1)^2 of x's first
// element.
Plan TwoChains(int64_t n) {
  PlanMaker m;
  const int32_t x = m.Parameter(n), y = m.Result(n), z = m.Result(1), arena = m.Arena(4 * (n + 1));
  const int32_t twice = m.Kernel2("twice", "*y = 2 * *x;", n), square = m.Kernel2("square", "*y = *x * *x;", n);
  const int32_t next = m.Kernel2("next", "*y = *x + 1;", 1), square_one = m.Kernel2("square_one", "*y = *x * *x;", 1);
  const Slice many = m.Floats(arena, n), one = m.Floats(arena, 1, n);
  for (Thunk launch : {m.Launch(twice, m.Floats(x, n), many), m.Launch(square, many, m.Floats(y, n)),
                       m.Launch(next, m.Floats(x, 1), one), m.Launch(square_one, one, m.Floats(z, 1))}) {
    launch.bytes = 1e6;
    m.Add(launch);
  }
  return m.Take();
}

std::string Sections(const Plan& plan) {
  std::vector<const LaunchThunk*> launches;
  StepSequence steps = NumberSteps(plan.entry, launches);
  FormSections(plan, steps);
  return TextOf(steps);
}

TEST(Team, LaunchesThatDoNotDependOnEachOtherAreSections) {
  EXPECT_EQ(Sections(TwoChains(8)), "[twice next][square square_one]");
  EXPECT_EQ(Sections(SquarePlan(4)), "square ");
  EXPECT_EQ(Sections(CountingPlan(4, 0)), "zero add add ");
}

// What a long launch of many groups reads would leave the caches; a long one of a single group leaves cores to others.
TEST(Team, LongLaunchesKeepToThemselves) {
  Plan plan = TwoChains(8);
  for (Thunk& thunk : plan.entry.thunks) thunk.bytes = 1e8;
  EXPECT_EQ(Sections(plan), "twice square next square_one ");
  plan.entry.thunks[0].bytes = 1e6;
  EXPECT_EQ(Sections(plan), "[twice next]square square_one ");
}

// An instruction's cost stands at its last launch; those before it, a copy of a large array say, are no less work.
TEST(Team, HelpersAreWokenForLaunchesOfUnknownCost) {
  for (const int64_t n : {16, 1 << 16}) {
    Plan plan = SquarePlan(n);
    ASSERT_EQ(plan.entry.thunks[0].bytes, 0);
    std::vector<const LaunchThunk*> launches;
    EXPECT_EQ(NumberSteps(plan.entry, launches)[0].share, n == 16 ? 16 : n / 8);
  }
}

// A result that takes over a donated argument is the same memory under another number.
TEST(Team, DonatedMemoryIsOnePlace) {
  for (const bool donated : {false, true}) {
    PlanMaker m;
    const int32_t x = m.Parameter(4, donated), y = m.Result(4, donated ? 0 : -1), z = m.Result(4);
    const int32_t twice = m.Kernel2("twice", "*y = 2 * *x;", 4), one = m.Kernel2("one", "*y = 1 + 0 * *x;", 4);
    m.Add(m.Launch(twice, m.Floats(x, 4), m.Floats(z, 4)));
    m.Add(m.Launch(one, m.Floats(y, 4), m.Floats(y, 4)));
    EXPECT_EQ(Sections(m.Take()), donated ? "twice one " : "[twice one]");
  }
}

TEST(Team, SectionsGiveWhatTheirLaunchesGive) {
  for (const int64_t n : {1, 2, 5, 300}) {
    const auto executable = Build(TwoChains(n));
    const DeviceArray x = Upload(Iota(n, 1));
    std::vector<float> squares = Iota(n, 1);
    for (float& v : squares) v = 4 * v * v;
    for (int i = 0; i < 200; ++i) {
      const std::vector<DeviceArray> results = executable->Run({{x}}, {});
      ASSERT_EQ(Download(results.at(0)), squares) << n << " groups, run " << i;
      ASSERT_EQ(Download(results.at(1)), std::vector<float>{4}) << n << " groups, run " << i;
    }
  }
}

TEST(Team, OneGroupDoesTheWorkOfMany) {
  const std::string source = "__kernel void f(__global int* x) { x[get_group_id(0)] = get_group_id(0); }";
  EXPECT_EQ(WithGroupLoop(source, "f"),
            "__kernel void f(__global int* x, int hl_first, int hl_end) {"
            " for (int hl_group = hl_first; hl_group < hl_end; ++hl_group) { x[hl_group] = hl_group; }}");
}

}  // namespace
}  // namespace hlorun::opencl
