// Custom-calls through the C++ API, on the first OpenCL device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "hlorun/hlorun.h"
#include "tests/driver/failure_of.h"

namespace hlorun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Client> TheClient() {
  static const std::shared_ptr<Client> client = Client::Create({});
  return client;
}

std::vector<float> FloatsOf(const hlo::HostArray& array) {
  const auto* data = reinterpret_cast<const float*>(array.data);
  return {data, data + array.shape.ElementCount()};
}

// mylib::log remembers its first element; mylib::double doubles in place; mylib::fail fails.
struct Library {
  std::shared_ptr<CustomCallRegistry> registry = std::make_shared<CustomCallRegistry>();
  std::mutex mutex;
  std::vector<float> log;

  Library() {
    const auto remember = [this](const hlo::HostCall& call) {
      const std::lock_guard lock(mutex);
      log.push_back(FloatsOf(call.operands[0])[0]);
      std::copy_n(call.operands[0].data, call.operands[0].shape.ByteSize(), call.results[0].data);
    };
    const auto twice = [](const hlo::HostCall& call) {
      auto* values = reinterpret_cast<float*>(call.results[0].data);
      for (int64_t i = 0; i < call.results[0].shape.ElementCount(); ++i) values[i] *= 2;
    };
    const auto fail = [](const hlo::HostCall&) { Invalid("the pump is dry"); };
    const hlo::Signature same({"f32[n]"}, {"f32[n]"});
    registry->Add({"mylib::log", same, remember, {}});
    registry->Add({"mylib::double", same, twice, {}});
    registry->Add({"mylib::fail", same, fail, {}});
  }

  std::shared_ptr<Executable> Compile(const std::string& text) const {
    CompileOptions options;
    options.custom_calls = registry;
    return TheClient()->Compile(Module::FromText(text), options);
  }
};

Array Upload(const std::vector<float>& values) {
  return TheClient()->FromHost(Shape(ElementType::kF32, {static_cast<int64_t>(values.size())}), values.data());
}

TEST(CustomCalls, EffectsHappenOnceAnExecutionInProgramOrder) {
  Library library;
  const auto executable = library.Compile(R"(HloModule m
body {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  l = f32[2] custom-call(x), custom_call_target="mylib::log", custom_call_has_side_effect=true
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2] add(x, x)
  ROOT t = (s32[], f32[2]) tuple(j, y)
}
cond {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT
}
ENTRY e {
  x = f32[2] parameter(0)
  n = f32[2] negate(x)
  a = f32[2] custom-call(n), custom_call_target="mylib::log", custom_call_has_side_effect=true
  b = f32[2] custom-call(n), custom_call_target="mylib::log", custom_call_has_side_effect=true
  zero = s32[] constant(0)
  t = (s32[], f32[2]) tuple(zero, x)
  w = (s32[], f32[2]) while(t), condition=cond, body=body
  c = f32[2] custom-call(x), custom_call_target="mylib::log", custom_call_has_side_effect=true
  ROOT r = f32[2] add(x, x)
})");
  for (int run = 0; run < 2; ++run) {
    library.log.clear();
    EXPECT_THAT(executable->Run({Upload({1, 5})})[0].ToVector<float>(), ElementsAre(2, 10));
    EXPECT_THAT(library.log, ElementsAre(-1, -1, 1, 2, 4, 1));
  }
}

TEST(CustomCalls, PureOnesAreMergedAndRemoved) {
  Library library;
  const auto executable = library.Compile(R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  a = f32[2] custom-call(x), custom_call_target="mylib::log"
  b = f32[2] custom-call(x), custom_call_target="mylib::log"
  n = f32[2] negate(x)
  c = f32[2] custom-call(n), custom_call_target="mylib::log"
  ROOT r = f32[2] add(a, b)
})");
  EXPECT_THAT(executable->Run({Upload({1, 5})})[0].ToVector<float>(), ElementsAre(2, 10));
  EXPECT_THAT(library.log, ElementsAre(1));
}

TEST(CustomCalls, AliasedOperandsAreCopiedWhereTheyAreStillNeeded) {
  Library library;
  const auto executable = library.Compile(R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  n = f32[2] negate(x)
  a = f32[2] custom-call(n), custom_call_target="mylib::double", output_to_operand_aliasing={{}: (0, {})}
  b = f32[2] custom-call(a), custom_call_target="mylib::double", output_to_operand_aliasing={{}: (0, {})}
  c = f32[2] custom-call(x), custom_call_target="mylib::double", output_to_operand_aliasing={{}: (0, {})}
  ROOT r = (f32[2], f32[2], f32[2], f32[2]) tuple(a, b, c, n)
})");
  const Array x = Upload({1, 5});
  const auto results = executable->Run({x});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(-2, -10));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(-4, -20));
  EXPECT_THAT(results[2].ToVector<float>(), ElementsAre(2, 10));
  EXPECT_THAT(results[3].ToVector<float>(), ElementsAre(-1, -5));
  EXPECT_THAT(x.ToVector<float>(), ElementsAre(1, 5));
}

TEST(CustomCalls, AFailureSaysWhatTheCallSaid) {
  Library library;
  const auto executable = library.Compile(
      "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] custom-call(x), custom_call_target=\"mylib::fail\" }");
  EXPECT_THAT(FailureOf([&] { executable->Run({Upload({1, 5})})[0].Wait(); }), HasSubstr("the pump is dry"));
}

TEST(CustomCalls, ShapesAndTargetsAreCheckedAtCompileTime) {
  Library library;
  EXPECT_THAT(FailureOf([&] {
                library.Compile(
                    "HloModule m\nENTRY e { x = s32[2] parameter(0)\n ROOT y = f32[2] custom-call(x), "
                    "custom_call_target=\"mylib::log\" }");
              }),
              HasSubstr("operand 0 is s32[2], which is not f32[n]: its type must be f32"));
  EXPECT_THAT(FailureOf([&] {
                library.Compile(
                    "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] custom-call(x), "
                    "custom_call_target=\"mylib::lag\" }");
              }),
              HasSubstr("\"mylib::log\""));
}

}  // namespace
}  // namespace hlorun
