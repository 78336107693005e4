// Runs of hand-made plans: order, decisions of the host, donation, sharing, errors, concurrency, steady state.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/lane.h"
#include "tests/backends/runtime_plans.h"

namespace hlorun::opencl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Run, ComputesIntoAResultOfItsOwn) {
  const auto executable = Build(SquarePlan(4));
  const DeviceArray x = Upload({1, 2, 3, 4});
  const auto results = executable->Run({{x}}, {});
  EXPECT_THAT(Download(results.at(0)), ElementsAre(1, 4, 9, 16));
  EXPECT_THAT(Download(x), ElementsAre(1, 2, 3, 4));
}

TEST(Run, ChainsWithoutWaiting) {
  const auto executable = Build(SquarePlan(3));
  DeviceArray x = Upload({1, 2, 3});
  for (int i = 0; i < 3; ++i) x = executable->Run({{x}}, {}).at(0);
  EXPECT_THAT(Download(x), ElementsAre(1, 256, 6561));
}

TEST(Run, UsesArenaConstantsCopiesAndWrites) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), c = m.Constant({10, 20, 30, 40}), arena = m.Arena(4096), y = m.Result(4),
                z = m.Result(4);
  const int32_t add_to = m.Kernel2("add_to", "*y += *x;", 4);
  const auto temporary = m.Bytes(arena, 1024, 16);
  m.Add(m.Make(CopyThunk{m.Floats(x, 4), temporary}, "copy"));
  m.Add(m.Launch(add_to, m.Floats(c, 4), temporary));
  m.Add(m.Make(CopyThunk{temporary, m.Floats(y, 4)}, "copy.1"));
  const float written[] = {7, 8, 9, 10};
  m.Add(m.Make(
      WriteThunk{WriteThunk::Value::kBytes, std::string(reinterpret_cast<const char*>(written), 16), m.Floats(z, 4)},
      "w"));
  const auto executable = Build(m.Take());
  const auto results = executable->Run({{Upload({1, 2, 3, 4})}}, {});
  EXPECT_THAT(Download(results.at(0)), ElementsAre(11, 22, 33, 44));
  EXPECT_THAT(Download(results.at(1)), ElementsAre(7, 8, 9, 10));
}

// x <- 2 x, `trips` times or while x[0] < 100.
Plan DoublingPlan(int64_t trips) {
  PlanMaker m;
  const int32_t x = m.Parameter(2), arena = m.Arena(128), y = m.Result(2);
  const int32_t twice = m.Kernel2("twice", "*y = 2 * *y;", 2);
  const int32_t below = m.Kernel2("below", "*(__global uchar*)y = *x < 100;", 1);
  const Slice predicate = m.Bytes(arena, 0, 4);
  m.Add(m.Make(CopyThunk{m.Floats(x, 2), m.Floats(y, 2)}, "copy"));
  WhileThunk loop;
  loop.condition = m.Seq({m.Launch(below, m.Floats(y, 2), predicate)});
  loop.body = m.Seq({m.Launch(twice, m.Floats(y, 2), m.Floats(y, 2))});
  loop.predicate = predicate;
  loop.trip_count = trips;
  m.Add(m.Make(loop, "while.1"));
  return m.Take();
}

TEST(While, KnownTripCount) {
  const auto executable = Build(DoublingPlan(5));
  EXPECT_THAT(RunOne(*executable, {1, 3}), ElementsAre(32, 96));
}

TEST(While, ManyTripsAreThrottledNotLost) {
  PlanMaker m;
  const int32_t x = m.Parameter(1), y = m.Result(1);
  const int32_t increment = m.Kernel2("increment", "*y = *y + 1;", 1);
  m.Add(m.Make(CopyThunk{m.Floats(x, 1), m.Floats(y, 1)}, "copy"));
  WhileThunk loop;
  loop.condition = m.Seq({});
  loop.body = m.Seq({m.Launch(increment, m.Floats(y, 1), m.Floats(y, 1))});
  loop.predicate = m.Floats(y, 1);
  loop.trip_count = 10000;
  m.Add(m.Make(loop, "while.1"));
  EXPECT_THAT(RunOne(*Build(m.Take()), {5}), ElementsAre(10005));
}

TEST(While, UnknownTripCountReadsThePredicate) {
  const auto executable = Build(DoublingPlan(-1));
  EXPECT_THAT(RunOne(*executable, {1, 3}), ElementsAre(128, 384));
  EXPECT_THAT(RunOne(*executable, {200, 3}), ElementsAre(200, 3));  // no trip
  // Overlapping runs, the second fed by the first.
  DeviceArray first = executable->Run({{Upload({1, 1})}}, {}).at(0);
  DeviceArray other = executable->Run({{Upload({7, 1})}}, {}).at(0);
  DeviceArray second = executable->Run({{first}}, {}).at(0);
  EXPECT_THAT(Download(second), ElementsAre(128, 128));
  EXPECT_THAT(Download(other), ElementsAre(112, 16));
}

TEST(Conditional, TakesTheBranchOfPredicateAndIndex) {
  PlanMaker m;
  const int32_t x = m.Parameter(1), selector = m.Parameter(1), y = m.Result(1), z = m.Result(1);
  std::vector<int32_t> add;
  for (int i = 1; i <= 3; ++i) {
    add.push_back(m.Kernel2("add" + std::to_string(i), "*y = *x + " + std::to_string(i) + ";", 1));
  }
  const auto branch = [&](int i, int32_t to) {
    return m.Seq({m.Launch(add[static_cast<size_t>(i)], m.Floats(x, 1), m.Floats(to, 1))});
  };
  m.Add(m.Make(ConditionalThunk{m.Floats(selector, 1), true, {branch(0, y), branch(1, y)}}, "cond"));
  m.Add(m.Make(ConditionalThunk{m.Floats(selector, 1), false, {branch(0, z), branch(1, z), branch(2, z)}}, "switch"));
  const auto executable = Build(m.Take());
  const auto run = [&](int32_t index) {
    float as_float;
    std::memcpy(&as_float, &index, 4);
    const auto results = executable->Run({{Upload({10})}, {Upload({as_float})}}, {});
    return std::vector<float>{Download(results[0])[0], Download(results[1])[0]};
  };
  EXPECT_THAT(run(0), ElementsAre(12, 11));
  EXPECT_THAT(run(1), ElementsAre(11, 12));
  EXPECT_THAT(run(2), ElementsAre(11, 13));
  EXPECT_THAT(run(77), ElementsAre(11, 13));  // out of range: the last branch
  EXPECT_THAT(run(-1), ElementsAre(11, 13));
}

// result = x + 1, in place of x when x is donated.
Plan InPlacePlan() {
  PlanMaker m;
  m.Parameter(4, true);
  const int32_t y = m.Result(4, 0);
  const int32_t increment = m.Kernel2("increment", "*y = *y + 1;", 4);
  m.Add(m.Launch(increment, m.Floats(y, 4), m.Floats(y, 4)));
  return m.Take();
}

TEST(Donation, TakesOverMemoryOnlyWhenDonated) {
  const auto executable = Build(InPlacePlan());
  const DeviceArray x = Upload({1, 2, 3, 4});
  const auto kept = executable->Run({{x}}, {});
  EXPECT_THAT(Download(kept.at(0)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Download(x), ElementsAre(1, 2, 3, 4));
  const auto donated = executable->Run({{x, true}}, {});
  EXPECT_THAT(Download(donated.at(0)), ElementsAre(2, 3, 4, 5));
  EXPECT_TRUE(donated[0].memory.Overlaps(x.memory));
}

TEST(Donation, NeverWritesTheCallersOwnMemory) {
  if (!TestContext()) GTEST_SKIP();
  if (Upload({1}).memory.host() == nullptr) GTEST_SKIP() << "plain pointers only";
  const auto executable = Build(InPlacePlan());
  alignas(64) float mine[4] = {1, 2, 3, 4};
  const DeviceArray x{F32(4), DeviceMemory::Wrap(mine, 16, nullptr), nullptr};
  EXPECT_THAT(Download(executable->Run({{x, true}}, {}).at(0)), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(mine[0], 1);
}

TEST(Run, CopiesCallersMemoryThatIsNotAligned) {
  if (Upload({1}).memory.host() == nullptr) GTEST_SKIP() << "plain pointers only";
  const auto executable = Build(SquarePlan(4));
  alignas(64) float mine[5] = {0, 1, 2, 3, 4};
  const DeviceArray x{F32(4), DeviceMemory::Wrap(mine + 1, 16, nullptr), nullptr};
  EXPECT_THAT(Download(executable->Run({{x}}, {}).at(0)), ElementsAre(1, 4, 9, 16));
}

TEST(Results, ThatAreArgumentsOrConstantsShareThemAndStaySafe) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), c = m.Constant({5, 6, 7, 8});
  m.ResultIn(x, 4);
  m.ResultIn(c, 4);
  const auto pass = Build(m.Take());
  const auto in_place = Build(InPlacePlan());
  const DeviceArray given = Upload({1, 2, 3, 4});
  const auto passed = pass->Run({{given}}, {});
  EXPECT_TRUE(passed[0].memory.Overlaps(given.memory));
  // Donating what others still see must not change it.
  EXPECT_THAT(Download(in_place->Run({{passed[0], true}}, {}).at(0)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Download(in_place->Run({{passed[1], true}}, {}).at(0)), ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(Download(given), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Download(pass->Run({{given}}, {}).at(1)), ElementsAre(5, 6, 7, 8));
}

TEST(Errors, WrongArgumentsAreNamed) {
  const auto executable = Build(SquarePlan(4));
  EXPECT_THROW(executable->Run({}, {}), Error);
  try {
    executable->Run({{Upload({1, 2})}}, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("argument 0 (p0 f32[4]) has 8 bytes, 16 are needed"));
  }
}

TEST(Errors, SurfaceWhereTheResultIsAwaitedWithTheThunksName) {
  PlanMaker m;
  const int32_t x = m.Parameter(1), y = m.Result(1);
  m.Add(m.Make(HostCallThunk{"no_such_target", "", {m.Floats(x, 1)}, {m.Floats(y, 1)}, {F32(1)}, {F32(1)}},
               "custom-call.7"));
  const auto failing = Build(m.Take());
  const auto square = Build(SquarePlan(1));
  const auto failed = failing->Run({{Upload({1})}}, {});
  const auto later = square->Run({{failed[0]}}, {});  // an error travels with the array
  for (const DeviceArray& array : {failed[0], later[0]}) {
    try {
      array.ready->Wait();
      FAIL();
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("custom-call.7"));
      EXPECT_THAT(e.what(), HasSubstr("no_such_target"));
    }
  }
  EXPECT_THAT(RunOne(*square, {3}), ElementsAre(9));  // the device works on
}

TEST(Errors, ArrayBeyondTheDeviceIsNamedWithItsBytes) {
  DeviceSpec spec = FindDevice("")->spec();
  spec.raw_pointers = false;
  spec.global_memory_bytes = 1 << 20;
  spec.max_allocation_bytes = 1 << 19;
  const auto small = OpenDevice(FindDevice(""), spec);
  try {
    PoolOf(small)->Allocate(1 << 20, "parameter w");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted);
    EXPECT_THAT(e.what(), HasSubstr("parameter w needs 1048576 bytes"));
  }
  const DeviceMemory a = PoolOf(small)->Allocate(1 << 19, "a"), b = PoolOf(small)->Allocate(1 << 18, "b");
  EXPECT_THROW(PoolOf(small)->Allocate(1 << 19, "c"), Error);
}

TEST(HostCalls, ComputeOnHostMemory) {
  PlanMaker m;
  const int32_t x = m.Parameter(2), y = m.Result(2);
  m.Add(m.Make(HostCallThunk{"negate", "", {m.Floats(x, 2)}, {m.Floats(y, 2)}, {F32(2)}, {F32(2)}}, "custom-call.1"));
  const auto executable = Build(m.Take());
  const auto registry = std::make_shared<hlo::CustomCallRegistry>();
  const auto negate = [](const hlo::HostCall& call) {
    const auto* in = reinterpret_cast<const float*>(call.operands[0].data);
    for (int i = 0; i < 2; ++i) reinterpret_cast<float*>(call.results[0].data)[i] = -in[i];
  };
  registry->Add({"negate", hlo::Signature({"f32[n]"}, {"f32[n]"}), negate, {}});
  RunOptions options;
  options.custom_calls = registry;
  EXPECT_THAT(Download(executable->Run({{Upload({1, 2})}}, options).at(0)), ElementsAre(-1, -2));
}

// Any exception is the run's error, and that of the runs that take its results.
TEST(HostCalls, MayThrowWhatTheyLike) {
  PlanMaker m;
  const int32_t x = m.Parameter(2), y = m.Result(2);
  m.Add(m.Make(HostCallThunk{"pump", "", {m.Floats(x, 2)}, {m.Floats(y, 2)}, {F32(2)}, {F32(2)}}, "custom-call.1"));
  const auto executable = Build(m.Take()), after = Build(DoublingPlan(-1));
  const auto registry = std::make_shared<hlo::CustomCallRegistry>();
  registry->Add({"pump",
                 hlo::Signature({"f32[n]"}, {"f32[n]"}),
                 [](const hlo::HostCall&) { throw std::runtime_error("the pump is dry"); },
                 {}});
  RunOptions options;
  options.custom_calls = registry;
  const DeviceArray failed = executable->Run({{Upload({1, 2})}}, options).at(0);
  const DeviceArray later = after->Run({{failed}}, {}).at(0);
  for (const DeviceArray& array : {failed, later}) {
    try {
      Wait(array);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kAborted);
      EXPECT_THAT(error.what(), HasSubstr("\"pump\" failed: the pump is dry"));
    }
  }
  EXPECT_THAT(RunOne(*after, {60, 1}), ElementsAre(120, 2));
}

// As a file could say, whose checksums are right.
TEST(Errors, PlansThatNameWhatTheyHaveNot) {
  const auto is_refused = [](const std::function<void(Plan&)>& change) {
    Plan plan = SquarePlan(4);
    change(plan);
    try {
      Build(std::move(plan));
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInternal;
    }
    return false;
  };
  const auto launch = [](Plan& plan) -> LaunchThunk& { return std::get<LaunchThunk>(plan.entry.thunks[0].work); };
  EXPECT_FALSE(is_refused([](Plan&) {}));
  EXPECT_TRUE(is_refused([&](Plan& plan) { launch(plan).kernel = 1; }));
  EXPECT_TRUE(is_refused([&](Plan& plan) { launch(plan).arguments.push_back(launch(plan).arguments[0]); }));
  EXPECT_TRUE(is_refused([&](Plan& plan) { launch(plan).written.pop_back(); }));
  EXPECT_TRUE(is_refused([&](Plan& plan) { launch(plan).arguments[1].offset = 4; }));
  EXPECT_TRUE(is_refused([](Plan& plan) { plan.allocations[1].index = 1; }));
  EXPECT_TRUE(is_refused([](Plan& plan) { plan.result_slices[0].allocation = 7; }));
  EXPECT_TRUE(is_refused([](Plan& plan) { plan.constant_parameters = {1}; }));
  EXPECT_TRUE(is_refused([](Plan& plan) {
    Thunk await;
    await.work = AwaitThunk{0};
    plan.entry.thunks.push_back(await);
  }));
}

TEST(Events, ShortRunsNeedNone) {
  if (TestContext()->team_context() == nullptr) GTEST_SKIP() << "no team";
  const auto executable = Build(SquarePlan(4));
  const auto results = executable->Run({{Upload({1, 2, 3, 4})}}, {});
  EXPECT_EQ(results[0].ready, nullptr);
  EXPECT_THAT(Download(results[0]), ElementsAre(1, 4, 9, 16));
  // What is still under way comes first.
  const auto doubling = Build(DoublingPlan(-1));
  const auto longer = doubling->Run({{Upload({60, 1})}}, {});
  const auto later = Build(SquarePlan(2))->Run({{longer[0]}}, {});
  EXPECT_THAT(Download(later[0]), ElementsAre(14400, 4));
}

TEST(Events, CallBackAndReady) {
  const auto executable = Build(DoublingPlan(-1));
  const auto results = executable->Run({{Upload({60, 1})}}, {});
  std::atomic<int> called{0};
  results[0].ready->OnReady([&] { ++called; });
  results[0].ready->Wait();
  EXPECT_TRUE(results[0].ready->Ready());
  results[0].ready->OnReady([&] { ++called; });
  for (int i = 0; i < 2000 && called < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(called, 2);
}

// More runs in flight than a lane admits, each of which starts others when it ends: by the host's thread for a lane,
// through the queue, and at once.
TEST(Events, CallbacksRunOtherPrograms) {
  Plan through_queue = SquarePlan(2);
  MakeForeign(through_queue);
  const std::shared_ptr<Executable> driven = Build(DoublingPlan(-1)), queued = Build(std::move(through_queue));
  constexpr int kRuns = 8;
  std::atomic<int> called{0}, wrong{0};
  std::promise<void> all;
  for (int i = 0; i < kRuns; ++i) {
    const DeviceArray result = (i % 2 == 0 ? driven : queued)->Run({{Upload({60, 1})}}, {}).at(0);
    const auto callback = [&, i] {
      const auto next = (i % 2 == 0 ? queued : driven)->Run({{Upload({50, 3})}}, {}).at(0);
      if (Download(next) != (i % 2 == 0 ? std::vector<float>{2500, 9} : std::vector<float>{100, 6})) ++wrong;
      if (++called == kRuns) all.set_value();
    };
    if (result.ready == nullptr) {
      callback();
    } else {
      result.ready->OnReady(callback);
    }
  }
  ASSERT_EQ(all.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready) << "a lane stands still";
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, ThreadsShareAnExecutable) {
  const auto square = Build(SquarePlan(256));
  const auto doubling = Build(DoublingPlan(-1));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto start = static_cast<float>(t * 1000 + i);
        const auto x = Iota(256, start);
        const auto y = Download(square->Run({{Upload(x)}}, {}).at(0));
        for (size_t k = 0; k < 256; ++k) wrong += y[k] != x[k] * x[k];
        const auto z = Download(doubling->Run({{Upload({60, start})}}, {}).at(0));
        wrong += z[0] != 120 || z[1] != 2 * start;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SteadyState, CreatesNothing) {
  for (const int64_t trips : {3, -1}) {
    const auto executable = Build(DoublingPlan(trips));
    const DeviceArray x = Upload({1, 2});
    int64_t after_second = 0;
    for (int i = 0; i < 6; ++i) {
      auto results = executable->Run({{x}}, {});
      Wait(results[0]);
      if (i == 1) after_second = executable->resource_creations();
    }
    EXPECT_EQ(executable->resource_creations(), after_second);
  }
}

TEST(Profile, TimesEveryStep) {
  const auto executable = Build(DoublingPlan(2));
  std::vector<ThunkTime> times;
  RunOptions options;
  options.profile = &times;
  Wait(executable->Run({{Upload({1, 2})}}, options).at(0));
  ASSERT_EQ(times.size(), 3u);  // the copy and two bodies
  EXPECT_EQ(times[1].thunk->label, "launch.twice");
  EXPECT_LE(times[1].end_us, times[2].start_us);
}

// A first run finds there what is made of constants; what is made of constant parameters is its own work.
TEST(ConstantWork, IsDoneWithTheExecutable) {
  PlanMaker m;
  const int32_t x = m.Parameter(4), c = m.Constant({1, 2, 3, 4}), arena = m.Arena(4096), y = m.Result(4);
  const int32_t square = m.Kernel2("square", "*y = *x * *x;", 4), add_to = m.Kernel2("add_to", "*y += *x;", 4);
  const Slice squares = m.Bytes(arena, 0, 16), fourth_powers = m.Bytes(arena, 1024, 16);
  m.Add(m.Make(CopyThunk{m.Floats(x, 4), m.Floats(y, 4)}, "copy"));
  m.Add(m.Launch(add_to, fourth_powers, m.Floats(y, 4)));
  m.plan().of_constants.thunks = {m.Launch(square, m.Floats(c, 4), squares), m.Launch(square, squares, fourth_powers)};
  const auto executable = Build(m.Take());
  for (int run = 0; run < 3; ++run) {
    std::vector<ThunkTime> times;
    RunOptions options;
    options.profile = &times;
    const auto results = executable->Run({{Upload({10, 20, 30, 40})}}, options);
    EXPECT_THAT(Download(results.at(0)), ElementsAre(11, 36, 111, 296));
    EXPECT_EQ(times.size(), 2u);
  }
}

// Whoever waits for a run may compile meanwhile: it needs nothing of the lane that the run is in.
TEST(ConstantWork, WaitsForNobodysRun) {
  PlanMaker m;
  const int32_t c = m.Constant({3}), arena = m.Arena(4096), y = m.Result(1);
  const int32_t square = m.Kernel2("square", "*y = *x * *x;", 1);
  const Slice kept = m.Bytes(arena, 0, 4);
  m.Add(m.Make(CopyThunk{kept, m.Floats(y, 1)}, "copy"));
  m.plan().of_constants.thunks = {m.Launch(square, m.Floats(c, 1), kept)};

  std::promise<void> built;
  const std::shared_future<void> is_built = built.get_future().share();
  TestContext()->lane(0).Post([is_built] { is_built.wait(); });
  const auto executable = Build(m.Take());
  built.set_value();
  EXPECT_THAT(Download(executable->Run(std::vector<RunArgument>{}, {}).at(0)), ElementsAre(9));
}

TEST(Executable, WaitsForItsRunsWhenDropped) {
  DeviceArray result;
  {
    const auto executable = Build(DoublingPlan(-1));
    result = executable->Run({{Upload({1, 3})}}, {}).at(0);
  }
  EXPECT_THAT(Download(result), ElementsAre(128, 384));
}

}  // namespace
}  // namespace hlorun::opencl
