// Launches that two queues share: which, and that they give what one queue gives.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/queue_sharing.h"
#include "backends/opencl/runtime/sections.h"
#include "backends/opencl/runtime/thunk_runner.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

// What queues run, and no team.
void MakeForeign(Plan& plan) {
  for (Kernel& kernel : plan.kernels) kernel.source += "// barrier(";
}

// `chains` of two launches each, through an arena: y = (c x)^2 with c = 1, 2, ..., over `n` groups.
Plan Chains(int64_t chains, int64_t n) {
  constexpr int64_t kApart = 256;  // floats: sub-buffers begin at multiples of some hundred bytes
  PlanMaker m;
  m.plan().device.compute_units = 4;
  m.plan().device.SetCost("queues_meet_us", 1e-6);  // always worth it
  const int32_t x = m.Parameter(n), arena = m.Arena(4 * kApart * chains);
  const int32_t square = m.Kernel2("square", "*y = *x * *x;", n);
  for (int64_t c = 0; c < chains; ++c) {
    const auto times = std::to_string(c + 1);
    const int32_t multiply = m.Kernel2("times" + times, "*y = " + times + " * *x;", n);
    const Slice product = m.Floats(arena, n, kApart * c);
    m.Add(m.Launch(multiply, m.Floats(x, n), product));
    m.Add(m.Launch(square, product, m.Floats(m.Result(n), n)));
  }
  return m.Take();
}

// Labels of the steps, those of a section in brackets, those of the second queue in front of a bar, where a launch
// takes as long as `microseconds` says, by its number, and queues meet in ten.
std::string Sections(const Plan& plan, const std::vector<double>& microseconds, bool by_grid = false) {
  std::vector<const LaunchThunk*> launches;
  StepSequence steps = NumberSteps(plan.entry, launches);
  FormSectionsOfQueues(plan, steps);
  PartSections(microseconds, 10, by_grid, steps);
  std::string text;
  for (size_t i = 0; i < steps.size();) {
    const auto section = static_cast<size_t>(steps[i].section);
    text += section > 1 ? "[" : "";
    for (size_t j = 0; j < section; ++j) {
      if (j > 0) text += steps[i + j].aside == steps[i + j - 1].aside ? " " : " | ";
      text += steps[i + j].thunk->label.substr(7);
    }
    text += section > 1 ? "]" : " ";
    i += section;
  }
  return text;
}

TEST(TwoQueues, ShareWhatLeavesUnitsIdle) {
  EXPECT_EQ(Sections(Chains(2, 1), std::vector<double>(4, 100)), "[times2 | times1][square | square]");
  EXPECT_EQ(Sections(Chains(3, 3), std::vector<double>(6, 100)), "[times2 | times1 times3][square | square square]");
}

TEST(TwoQueues, LeaveAloneWhatFillsTheDevice) {
  EXPECT_EQ(Sections(Chains(2, 4), std::vector<double>(4, 100)), "times1 square times2 square ");
}

TEST(TwoQueues, AreNotWorthWhatIsShort) {
  EXPECT_EQ(Sections(Chains(2, 1), {30, 100, 19, 100}), "times1 times2 [square | square]");
}

TEST(TwoQueues, BalanceTheirWork) {
  EXPECT_EQ(Sections(Chains(3, 1), {100, 50, 200, 50, 100, 50}), "[times1 times3 | times2][square | square square]");
}

TEST(TwoQueues, RunOneGridAtATimeWhereThePlatformMixesThemUp) {
  Plan plan = Chains(2, 2);
  std::get<LaunchThunk>(plan.entry.thunks[3].work).grid.groups[0] = 1;
  EXPECT_EQ(Sections(plan, std::vector<double>(4, 100), /*by_grid=*/true), "[times2 | times1]square square ");
  EXPECT_EQ(Sections(plan, std::vector<double>(4, 100)), "[times2 | times1][square | square]");
}

TEST(TwoQueues, GiveWhatOneGives) {
  for (const int64_t n : {1, 3}) {
    Plan plan = Chains(5, n);
    MakeForeign(plan);
    ASSERT_FALSE(SuitsTeam(plan));
    const auto executable = Build(std::move(plan));
    for (int i = 0; i < 200; ++i) {
      const auto start = static_cast<float>(i);
      const std::vector<DeviceArray> results = executable->Run({{Upload(Iota(n, start))}}, {});
      for (size_t c = 0; c < 5; ++c) {
        std::vector<float> squares = Iota(n, start);
        for (float& v : squares) v = static_cast<float>(c + 1) * static_cast<float>(c + 1) * v * v;
        ASSERT_EQ(Download(results.at(c)), squares) << n << " groups, run " << i << ", chain " << c;
      }
    }
  }
}

// What comes behind a section waits for both queues, as the next run does: into an array that the last one reads.
TEST(TwoQueues, KeepTheLanesOrder) {
  PlanMaker m;
  m.plan().device.SetCost("queues_meet_us", 1e-6);
  constexpr int64_t kFloats = 1 << 16;
  const int32_t x = m.Parameter(kFloats), y = m.Result(kFloats), arena = m.Arena(8 * kFloats);
  const std::string all = "for (int i = 0; i < 65536; ++i) y[i] = ";
  const int32_t twice = m.Kernel2("twice", all + "2 * x[i];", 1), next = m.Kernel2("next", all + "x[i] + 1;", 1);
  const int32_t both = m.Kernel2("both", all + "x[i] * x[65536 + i];", 1);
  const Slice first = m.Floats(arena, kFloats), second = m.Floats(arena, kFloats, kFloats);
  for (const Thunk& launch :
       {m.Launch(twice, m.Floats(x, kFloats), first), m.Launch(next, m.Floats(x, kFloats), second),
        m.Launch(both, m.Floats(arena, 2 * kFloats), m.Floats(y, kFloats))})
    m.Add(launch);
  Plan plan = m.Take();
  MakeForeign(plan);
  ASSERT_EQ(Sections(plan, {100, 100, 100}), "[next | twice]both ");
  const auto executable = Build(std::move(plan));
  std::vector<DeviceArray> results;
  for (int i = 0; i < 40; ++i)
    results.push_back(executable->Run({{Upload(std::vector<float>(kFloats, static_cast<float>(i)))}}, {}).at(0));
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(Download(results[static_cast<size_t>(i)]),
              std::vector<float>(kFloats, static_cast<float>(2 * i * (i + 1))));
}

// Only what has been timed, and is worth it; the second run alone is timed.
TEST(TwoQueues, AreChosenByWhatLaunchesTook) {
  Plan plan = Chains(2, 1);
  for (const double meeting : {1e6, 1e-6}) {
    plan.device.SetCost("queues_meet_us", meeting);
    std::vector<const LaunchThunk*> launches;
    StepSequence steps = NumberSteps(plan.entry, launches);
    QueueSharing sharing(plan, std::move(steps), launches.size(), /*by_grid=*/true);
    const auto sections = [](const QueueSharing::Turn& turn) {
      return std::count_if(turn.steps->begin(), turn.steps->end(), [](const Step& step) { return step.section > 1; });
    };
    EXPECT_EQ(sections(sharing.Next()), 0);
    EXPECT_EQ(sections(sharing.Next(/*may_time=*/false)), 0);
    QueueSharing::Turn timed = sharing.Next();
    EXPECT_EQ(sections(timed), 2);
    ASSERT_EQ(timed.launched.size(), 4U);
    EXPECT_EQ(sections(sharing.Next()), 0);  // not known yet
    const cl::CommandQueue queue(TestContext()->context(), TestContext()->device().device(), CL_QUEUE_PROFILING_ENABLE);
    const cl::Program program(
        TestContext()->context(),
        "__kernel void f(__global int* x) { for (int i = 1; i < 99999; ++i) x[i % 7] += x[i / 7 % 7]; }", true);
    cl::Kernel kernel(program, "f");
    const cl::Buffer x(TestContext()->context(), CL_MEM_READ_WRITE, 28);
    kernel.setArg(0, x);
    for (cl::Event& launched : timed.launched)
      queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NDRange(1), nullptr, &launched);
    queue.finish();
    sharing.GiveBack(std::move(timed.launched));
    EXPECT_EQ(sections(sharing.Next()), meeting < 1 ? 2 : 0);
    EXPECT_TRUE(sharing.Next().launched.empty());
  }
}

}  // namespace
}  // namespace hlorun::opencl
