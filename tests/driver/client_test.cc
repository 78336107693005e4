// What callers of the C++ API may do beside running a program for its results, and what they may get wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "hlorun/hlorun.h"
#include "tests/driver/failure_of.h"

namespace hlorun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Array Upload(Client& client, const std::vector<float>& values) {
  return client.FromHost(Shape(ElementType::kF32, {static_cast<int64_t>(values.size())}), values.data());
}

std::shared_ptr<Client> OfDevices(int64_t devices) {
  ClientOptions options;
  options.devices = devices;
  return Client::Create(options);
}

// One host function, of an array for an array like it.
CompileOptions With(const std::string& target, hlo::HostFunction function) {
  const auto registry = std::make_shared<CustomCallRegistry>();
  registry->Add({target, hlo::Signature({"f32[n]"}, {"f32[n]"}), std::move(function), {}});
  CompileOptions options;
  options.custom_calls = registry;
  return options;
}

// test::fail fails, test::throw throws what is no exception, test::wait copies after a tenth of a second.
CompileOptions WithHostFunctions() {
  const auto registry = std::make_shared<CustomCallRegistry>();
  const hlo::Signature same({"f32[n]"}, {"f32[n]"});
  registry->Add({"test::fail", same, [](const hlo::HostCall&) { Invalid("the pump is dry"); }, {}});
  registry->Add({"test::throw", same, [](const hlo::HostCall&) { throw 7; }, {}});
  const auto wait = [](const hlo::HostCall& call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::copy_n(call.operands[0].data, call.operands[0].shape.ByteSize(), call.results[0].data);
  };
  registry->Add({"test::wait", same, wait, {}});
  CompileOptions options;
  options.custom_calls = registry;
  return options;
}

std::shared_ptr<Executable> Calling(Client& client, const std::string& target, const std::string& rest) {
  const std::string text = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  c = f32[2] custom-call(x), " +
                           ("custom_call_target=\"" + target + "\", custom_call_has_side_effect=true\n  ") + rest +
                           "\n}\n";
  return client.Compile(Module::FromText(text), WithHostFunctions());
}

// Nobody waits for a result there.
TEST(ProgramsWithoutResults, TellTheirErrors) {
  const auto client = Client::Create({});
  const auto fails = Calling(*client, "test::fail", "ROOT r = () tuple()");
  EXPECT_THAT(FailureOf([&] { fails->Run({Upload(*client, {1, 2})}); }), HasSubstr("the pump is dry"));
  const auto throws = Calling(*client, "test::throw", "ROOT r = () tuple()");
  EXPECT_THAT(FailureOf([&] { throws->Run({Upload(*client, {1, 2})}); }), HasSubstr("test::throw"));
  const auto waits = Calling(*client, "test::wait", "ROOT r = () tuple()");
  std::vector<StepTime> steps;
  RunFlags flags;
  flags.profile = &steps;
  EXPECT_TRUE(waits->Run({Upload(*client, {1, 2})}, flags).empty());
  ASSERT_FALSE(steps.empty());
  EXPECT_GT(steps.back().end_us - steps.front().start_us, 50e3);
}

// Run returns before they come.
TEST(ProgramsWithoutResults, TakeWhatTheirCallerSendsLater) {
  const auto client = Client::Create({});
  const auto executable = client->Compile(Module::FromText(R"(HloModule m
ENTRY e {
  t = token[] after-all()
  i = (f32[2], token[]) infeed(t), infeed_config="x"
  x = f32[2] get-tuple-element(i), index=0
  u = token[] get-tuple-element(i), index=1
  y = f32[2] add(x, x)
  o = token[] outfeed(y, u), outfeed_shape=f32[2]
  ROOT r = () tuple()
})"),
                                          {});
  RunFlags flags;
  flags.channels = std::make_shared<HostChannels>();
  EXPECT_TRUE(executable->Run({}, flags).empty());
  hlo::Literal value(Shape(ElementType::kF32, {2}));
  value.mutable_values<float>()[1] = 5;
  flags.channels->Send(0, HostChannels::kFeed, {value});
  EXPECT_EQ(flags.channels->Receive(0, HostChannels::kFeed)[0].GetDouble(1), 10);
}

TEST(Tokens, AreResultsOfNoBytes) {
  const auto client = Client::Create({});
  const char* const kAlone = R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  ROOT o = token[] outfeed(x, t), outfeed_shape=f32[2]
})";
  const char* const kBeside = R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  o = token[] outfeed(x, t), outfeed_shape=f32[2]
  y = f32[2] add(x, x)
  ROOT r = (token[], f32[2], token[]) tuple(o, y, t)
})";
  for (const char* text : {kAlone, kBeside}) {
    RunFlags flags;
    flags.channels = std::make_shared<HostChannels>();
    const auto results = client->Compile(Module::FromText(text), {})->Run({Upload(*client, {3, 4})}, flags);
    EXPECT_EQ(results.front().shape().element_type(), ElementType::kToken);
    EXPECT_EQ(results.front().byte_size(), 0);
    for (const Array& result : results) result.Wait();
    if (results.size() == 3) {
      EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(6, 8));
    }
    EXPECT_EQ(flags.channels->Receive(0, HostChannels::kFeed)[0].GetDouble(1), 4);
  }
}

// Their messages have the same numbers and sizes.
TEST(Threads, RunProgramsOfSeveralDevicesAtOnce) {
  const auto client = OfDevices(2);
  const auto sums = [&](const std::string& factor) {
    return client->Compile(Module::FromText(R"(HloModule m, replica_count=2
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)
  f = f32[] constant()" + factor + R"()
  g = f32[64] broadcast(f), dimensions={}
  y = f32[64] multiply(x, g)
  s = f32[64] all-reduce(y), replica_groups={{0,1}}, to_apply=sum
  t = f32[64] sine(s)
  u = f32[64] add(t, s)
  ROOT v = f32[64] all-reduce(u), replica_groups={{0,1}}, to_apply=sum
})"),
                           {});
  };
  const std::vector<std::shared_ptr<Executable>> executables = {sums("1"), sums("-3")};
  std::vector<std::vector<std::vector<Array>>> arguments(2);
  std::vector<std::vector<float>> expected;
  for (size_t e = 0; e < 2; ++e) {
    for (const float value : {1.F, 2.F}) arguments[e].push_back({Upload(*client, std::vector<float>(64, value))});
    expected.push_back(executables[e]->RunSharded(arguments[e])[0][0].ToVector<float>());
  }
  ASSERT_NE(expected[0], expected[1]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t e = 0; e < 2; ++e) {
    threads.emplace_back([&, e] {
      for (int i = 0; i < 200; ++i) {
        const std::string failure = FailureOf([&] {
          for (const auto& results : executables[e]->RunSharded(arguments[e]))
            wrong += results[0].ToVector<float>() == expected[e] ? 0 : 1;
        });
        if (failure != "no error") ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Beside the run that waits for what the host function makes.
TEST(ShardedArrays, AreGatheredByHostFunctions) {
  const auto client = OfDevices(2);
  const std::vector<float> whole = {1, 2, 3, 4};
  const Array shards = client->FromHost(Shape(ElementType::kF32, {4}), whole.data(), "{devices=[2]<=[2]}");
  const CompileOptions options = With("test::gather", [shards](const hlo::HostCall& call) {
    const std::vector<float> values = shards.ToVector<float>();
    std::memcpy(call.results[0].data, values.data(), values.size() * sizeof(float));
  });
  const auto executable = client->Compile(Module::FromText(R"(HloModule m, replica_count=2
ENTRY e {
  x = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(x), custom_call_target="test::gather", custom_call_has_side_effect=true
})"),
                                          options);
  auto run = std::async(std::launch::async, [&] {
    return executable->RunSharded({{Upload(*client, {0, 0, 0, 0})}, {Upload(*client, {0, 0, 0, 0})}});
  });
  ASSERT_EQ(run.wait_for(std::chrono::seconds(30)), std::future_status::ready) << "it waits for its own run";
  EXPECT_THAT(run.get()[1][0].ToVector<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(HostFunctions, DoNotStartRunsThatWaitForThem) {
  const auto client = OfDevices(2);
  const auto inner = client->Compile(Module::FromText(R"(HloModule m, replica_count=2
ENTRY e {
  x = f32[2] parameter(0)
  ROOT r = f32[2] negate(x)
})"),
                                     {});
  const std::vector<std::vector<Array>> arguments = {{Upload(*client, {1, 2})}, {Upload(*client, {3, 4})}};
  const CompileOptions options = With("test::nested", [&](const hlo::HostCall&) { inner->RunSharded(arguments); });
  const auto outer = client->Compile(Module::FromText(R"(HloModule m, replica_count=2
ENTRY e {
  x = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(x), custom_call_target="test::nested", custom_call_has_side_effect=true
})"),
                                     options);
  EXPECT_THAT(FailureOf([&] { outer->RunSharded(arguments); }),
              HasSubstr("a host function starts what runs on several"));
  EXPECT_THAT(inner->RunSharded(arguments)[1][0].ToVector<float>(), ElementsAre(-3, -4));
}

TEST(Buckets, OutliveTheirClient) {
  const char* const kModule = "HloModule m\nENTRY e {\n  x = f32[16] parameter(0)\n  ROOT r = f32[16] add(x, x)\n}\n";
  std::shared_ptr<Client> client = Client::Create({});
  const auto executable = client->CompileBuckets(Module::FromText(kModule), {.bounds = {"0:0=16"}}, {});
  const Array x = Upload(*client, {1, 2, 3});
  client.reset();
  EXPECT_THAT(executable->Run({x})[0].ToVector<float>(), ElementsAre(2, 4, 6));
}

// Of memory, and of the executable whose run has the last hold on it.
struct Session {
  ~Session() {
    executable.reset();
    std::free(data);
    if (ended != nullptr) ended->set_value();
  }
  std::shared_ptr<Executable> executable;
  float* data = static_cast<float*>(std::aligned_alloc(4096, 4096));
  std::promise<void>* ended = nullptr;
};

TEST(WrappedMemory, MayEndWhatRunsOnIt) {
  const auto client = Client::Create({});
  if (!client->device().spec.raw_pointers) GTEST_SKIP() << "memory is copied";
  std::promise<void> ended;
  {
    auto session = std::make_shared<Session>();
    session->ended = &ended;
    std::fill_n(session->data, 2, 5.F);
    session->executable = Calling(*client, "test::wait", "ROOT r = f32[2] add(c, x)");
    const Array x = client->Wrap(Shape(ElementType::kF32, {2}), session->data, session);
    ASSERT_EQ(x.HostPointer(), session->data);
    session->executable->Run({x});
  }
  ASSERT_EQ(ended.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready) << "it waits for itself";
  const auto next = Calling(*client, "test::wait", "ROOT r = f32[2] add(c, x)");
  EXPECT_THAT(next->Run({Upload(*client, {1, 2})})[0].ToVector<float>(), ElementsAre(2, 4));
}

// The devices of one process run independently of each other.
TEST(Donation, WaitsForReadersOnOtherDevices) {
  const auto client = OfDevices(2);
  const auto reader = Calling(*client, "test::wait", "ROOT r = f32[2] add(c, x)");
  const auto writer =
      client->Compile(Module::FromText(R"(HloModule m, replica_count=2, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[2] parameter(0)
  ROOT r = f32[2] negate(x)
})"),
                      {});
  const Array x = Upload(*client, {1, 2});
  const Array read = reader->Run({x})[0];
  RunFlags flags;
  flags.donate = {true};
  const auto written = writer->RunSharded({{Upload(*client, {7, 8})}, {x}}, flags);
  EXPECT_THAT(written[1][0].ToVector<float>(), ElementsAre(-1, -2));
  EXPECT_THAT(read.ToVector<float>(), ElementsAre(2, 4));
}

TEST(Reducers, OfOwnOpsTakeEmptyOperands) {
  const auto client = OfDevices(2);
  const auto executable = client->Compile(Module::FromText(R"(HloModule m, replica_count=2
both { a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  p = f32[] multiply(a, b)
  ROOT r = f32[] add(s, p) }
ENTRY e {
  x = f32[0] parameter(0)
  y = f32[3] parameter(1)
  ROOT r = (f32[0], f32[3]) all-reduce(x, y), replica_groups={{0,1}}, to_apply=both
})"),
                                          {});
  const auto results = executable->RunSharded(
      {{Upload(*client, {}), Upload(*client, {1, 2, 3})}, {Upload(*client, {}), Upload(*client, {4, 5, 6})}});
  EXPECT_EQ(results[0][0].byte_size(), 0);
  EXPECT_THAT(results[1][1].ToVector<float>(), ElementsAre(9, 17, 27));
}

TEST(WrongArrays, AreRefusedByName) {
  const auto client = OfDevices(2);
  const Array three = Upload(*client, {1, 2, 3});
  EXPECT_THAT(FailureOf([&] { three.ToVector<double>(); }), HasSubstr("no whole number of values of 8 bytes"));
  const auto one = client->Compile(Module::FromText("HloModule m\nENTRY e {\n  x = f32[<=8] parameter(0)\n  "
                                                    "ROOT r = f32[<=8] add(x, x)\n}\n"),
                                   {});
  const std::vector<float> values(6, 1);
  const Shape shape(ElementType::kF32, {6});
  const Array shards = client->FromHost(shape, values.data(), "{devices=[2]<=[2]}");
  EXPECT_THAT(FailureOf([&] { one->Run({shards}); }), HasSubstr("argument 0 (%x) is a whole array in shards"));
  const auto cut = client->Compile(Module::FromText(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[<=8] parameter(0), sharding={devices=[2]<=[2]}
  y = f32[<=8] parameter(1), sharding={devices=[2]<=[2]}
  ROOT r = f32[<=8] add(x, y)
})"),
                                   {});
  EXPECT_THAT(FailureOf([&] { cut->Run({shards, shards, shards}); }), HasSubstr("has 2 parameter arrays, 3 are given"));
  EXPECT_THAT(FailureOf([&] {
                cut->Run({shards, Array()});
              }),
              testing::AllOf(HasSubstr("argument 1 (%y"), HasSubstr("is an empty array")));
  RunFlags flags;
  flags.whole_shapes = {shape};
  EXPECT_THAT(
      FailureOf([&] {
        cut->RunSharded({{shards.shards()[0], shards.shards()[0]}, {shards.shards()[1], shards.shards()[1]}}, flags);
      }),
      HasSubstr("whole shapes are given for 1 arguments, there are 2"));
}

class OwnKernels : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // Doubles f32[n]; `more` stands before it in the source.
  std::shared_ptr<CustomCallRegistry> Kernel(const std::string& more) const {
    std::ofstream(folder_ / "double.cl") << more << R"(
__kernel void twice(__global const float *x, __global float *y) {
  const size_t i = get_global_id(0);
  y[i] = 2 * x[i];
})";
    std::ofstream(folder_ / "calls.json") << R"({"custom_calls": [{"target": "test::double",
  "operands": ["f32[n]"], "results": ["f32[n]"], "source": "double.cl", "kernel": "twice",
  "arguments": ["operand 0", "result 0"], "global": ["n"]}]})";
    return LoadCustomCalls((folder_ / "calls.json").string());
  }
  std::shared_ptr<Executable> Compile(Client& client, const CompileOptions& options) const {
    const char* const kModule =
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  e = f32[2] exponential(x)\n  "
        "s = f32[2] sort(e), dimensions={0}, to_apply=less\n  "
        "ROOT c = f32[2] custom-call(s), custom_call_target=\"test::double\"\n}\n";
    const char* const kLess =
        "less { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  "
        "ROOT c = pred[] compare(a, b), direction=LT }\n";
    std::string text = kModule;
    text.insert(text.find("ENTRY"), kLess);
    return client.Compile(Module::FromText(text), options);
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hlorun_own_kernels_" + std::to_string(getpid()));
};

// More source than one process compiles by itself.
TEST_F(OwnKernels, MayHaveCommentsInAnyEncoding) {
  const auto client = Client::Create({});
  CompileOptions options;
  options.custom_calls = Kernel(
      "/* Gr\xf6\xdf"
      "e " +
      std::string(200 << 10, '.') + " */");
  options.cache_dir = (folder_ / "cache").string();
  EXPECT_THAT(Compile(*client, options)->Run({Upload(*client, {0, 0})})[0].ToVector<float>(), ElementsAre(2, 2));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache"))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".compile")) << entry.path() << " is left";
}

TEST_F(OwnKernels, ThatDoNotCompileAreNamedWithoutACacheToKeepThem) {
  const auto client = Client::Create({});
  CompileOptions options;
  options.custom_calls = Kernel("this is no C");
  options.cache_dir = "/dev/null/cache";
  options.use_disk_cache = false;
  EXPECT_THAT(FailureOf([&] { Compile(*client, options); }),
              testing::AllOf(HasSubstr("refuses a custom-call's kernel"), HasSubstr("could not be kept")));
}

}  // namespace
}  // namespace hlorun
