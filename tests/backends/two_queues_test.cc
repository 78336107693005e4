// Launches that two queues share: which, and that they give what one queue gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/lane.h"
#include "backends/opencl/runtime/queue_sharing.h"
#include "backends/opencl/runtime/sections.h"
#include "backends/opencl/runtime/thunk_runner.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

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

// Where a launch takes as long as `microseconds` says, by its number, and queues meet in ten.
std::string Sections(const Plan& plan, const std::vector<double>& microseconds, bool by_grid = false) {
  std::vector<const LaunchThunk*> launches;
  StepSequence steps = NumberSteps(plan.entry, launches);
  FormSectionsOfQueues(plan, by_grid, steps);
  PartSections(microseconds, 10, steps);
  return TextOf(steps);
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

// A custom-call that says so runs in the program's order with all others.
TEST(TwoQueues, KeepEffectsInOrder) {
  Plan plan = Chains(3, 1);
  std::get<LaunchThunk>(plan.entry.thunks[2].work).has_effect = true;
  EXPECT_EQ(Sections(plan, std::vector<double>(6, 100)), "times1 square times2 [times3 | square]square ");
}

// Two kernels that wait for each other, though not for ever: one behind the other, the first never meets the second.
TEST(TwoQueues, RunSideBySide) {
  if (TestContext()->spec().compute_units < 2) GTEST_SKIP() << "the device has one unit";
  const auto meets = [](const std::string& name, int own, int other) {
    return "__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void " + name +
           fmt::format(
               "(__global volatile int* here, __global float* met) {{\n  here[{}] = 1;\n"
               "  for (int i = 0; i < 20000000 && here[{}] == 0; ++i) ;\n"
               "  met[0] = here[{}];\n}}  // barrier(\n",
               16 * own, 16 * other, 16 * other);
  };
  PlanMaker m;
  m.plan().device.SetCost("queues_meet_us", 1e-6);
  const int32_t here = m.Parameter(32);
  for (const bool is_second : {false, true}) {
    const std::string name = is_second ? "second" : "first";
    const int32_t kernel = m.WholeKernel(name, 2, meets(name, is_second ? 1 : 0, is_second ? 0 : 1), Grid{});
    m.Add(m.Launch(kernel, m.Floats(here, 32), m.Floats(m.Result(1), 1)));
  }
  const auto executable = Build(m.Take());
  bool both_met = false;
  for (int i = 0; i < 30 && !both_met; ++i) {  // of the first two runs no section is parted
    const std::vector<DeviceArray> results = executable->Run({{Upload(std::vector<float>(32))}}, {});
    both_met = Download(results.at(0))[0] == 1 && Download(results.at(1))[0] == 1;
  }
  EXPECT_TRUE(both_met);
}

// Each trip begins behind both halves of the one before.
TEST(TwoQueues, RunTripsOfALoop) {
  PlanMaker m;
  m.plan().device.SetCost("queues_meet_us", 1e-6);
  constexpr int64_t kFloats = 4096, kTrips = 25;
  const int32_t x = m.Parameter(kFloats), y = m.Result(kFloats), z = m.Result(kFloats), arena = m.Arena(8 * kFloats);
  const std::string all = "for (int i = 0; i < 4096; ++i) y[i] = ";
  const int32_t sum = m.Kernel2("sum", all + "x[i] + x[4096 + i];", 1), plus = m.Kernel2("plus", all + "x[i] + 1;", 1);
  const int32_t copy = m.Kernel2("copy", all + "x[i];", 1);
  const Slice a = m.Floats(arena, kFloats), b = m.Floats(arena, kFloats, kFloats), both = m.Floats(arena, 2 * kFloats);
  m.Add(m.Launch(copy, m.Floats(x, kFloats), a));
  m.Add(m.Launch(copy, m.Floats(x, kFloats), b));
  WhileThunk loop;
  loop.condition = m.Seq({});
  loop.body = m.Seq({m.Launch(sum, both, m.Floats(y, kFloats)), m.Launch(plus, b, m.Floats(z, kFloats)),
                     m.Launch(copy, m.Floats(y, kFloats), a), m.Launch(copy, m.Floats(z, kFloats), b)});
  loop.predicate = m.Bytes(arena, 0, 1);
  loop.trip_count = kTrips;
  m.Add(m.Make(std::move(loop), "loop"));
  Plan plan = m.Take();
  MakeForeign(plan);
  const auto executable = Build(std::move(plan));
  for (int run = 0; run < 10; ++run) {
    float expected_a = static_cast<float>(run), expected_b = expected_a;
    for (int64_t i = 0; i < kTrips; ++i) {
      expected_a += expected_b;
      expected_b += 1;
    }
    const DeviceArray given = Upload(std::vector<float>(kFloats, static_cast<float>(run)));
    const std::vector<DeviceArray> results = executable->Run({{given}}, {});
    ASSERT_EQ(Download(results.at(0)), std::vector<float>(kFloats, expected_a)) << run;
    ASSERT_EQ(Download(results.at(1)), std::vector<float>(kFloats, expected_b)) << run;
  }
}

// What has been timed, and is worth it; the second run of the first lane alone is timed.
TEST(TwoQueues, AreChosenByWhatLaunchesTook) {
  const cl::Context& context = TestContext()->context();
  const cl::Program program(
      context, "__kernel void f(__global int* x) { for (int i = 1; i < 99999; ++i) x[i % 7] += x[i / 7 % 7]; }", true);
  cl::Kernel kernel(program, "f");
  const cl::Buffer numbers(context, CL_MEM_READ_WRITE, 28);
  kernel.setArg(0, numbers);
  const Lane lane(cl::CommandQueue(context, TestContext()->device().device()));
  const Lane other(cl::CommandQueue(context, TestContext()->device().device()));
  Plan plan = Chains(2, 1);
  for (const double meeting : {1e6, 1e-6}) {
    plan.device.SetCost("queues_meet_us", meeting);
    std::vector<const LaunchThunk*> launches;
    StepSequence steps = NumberSteps(plan.entry, launches);
    QueueSharing sharing(plan, std::move(steps), launches.size(), /*by_grid=*/true);
    const auto sections = [](const QueueSharing::Turn& turn) {
      return std::count_if(turn.steps->begin(), turn.steps->end(), [](const Step& step) { return step.section > 1; });
    };
    EXPECT_EQ(sections(sharing.Next(lane)), 0);
    EXPECT_EQ(sections(sharing.Next(other)), 0);
    EXPECT_EQ(sections(sharing.Next(lane, /*may_time=*/false)), 0);
    QueueSharing::Turn timed = sharing.Next(lane);
    EXPECT_EQ(sections(timed), 2);
    ASSERT_EQ(timed.launched.size(), 4U);
    EXPECT_EQ(sections(sharing.Next(lane)), 0);  // not known yet
    for (cl::Event& launched : timed.launched)
      timed.timing.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NDRange(1), nullptr, &launched);
    timed.timing.finish();
    sharing.GiveBack(std::move(timed));
    EXPECT_EQ(sections(sharing.Next(other)), meeting < 1 ? 2 : 0);
    EXPECT_TRUE(sharing.Next(lane).launched.empty());
  }
}

}  // namespace
}  // namespace hlorun::opencl
