// Infeed, outfeed, send and recv through the C++ API, on the first OpenCL device: with the host, and between devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

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

std::shared_ptr<Executable> Compile(const std::string& text) {
  return TheClient()->Compile(Module::FromText(text), {});
}

Array Upload(const std::vector<float>& values) {
  return TheClient()->FromHost(Shape(ElementType::kF32, {static_cast<int64_t>(values.size())}), values.data());
}

RunFlags With(const std::shared_ptr<HostChannels>& channels) {
  RunFlags flags;
  flags.channels = channels;
  return flags;
}

std::vector<ElementType> ArrayTypes() {
  std::vector<ElementType> types;
#define HLORUN_ADD_TYPE(enumerator, name, value, bits, cls) \
  if (hlo::IsArrayType(ElementType::enumerator)) types.push_back(ElementType::enumerator);
  HLO_ELEMENT_TYPES(HLORUN_ADD_TYPE)
#undef HLORUN_ADD_TYPE
  return types;
}

// Values that a seeded generator makes. Floats keep their bits, NaNs and denormals too: nothing computes with them.
Literal RandomOf(ElementType type, std::vector<int64_t> dimensions, std::mt19937_64& random) {
  Literal literal(Shape(type, std::move(dimensions)));
  if (hlo::BitsOf(type) >= 8 && type != ElementType::kPred) {
    for (int64_t i = 0; i < literal.ByteSize(); ++i) literal.mutable_data()[i] = static_cast<std::byte>(random());
    return literal;
  }
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    if (hlo::IsFloating(type)) {
      literal.SetDouble(i, static_cast<double>(random() % 13) - 6);
    } else {
      literal.SetInt(i, static_cast<int64_t>(random()) & (type == ElementType::kPred ? 1 : -1));
    }
  }
  return literal;
}

// The same bits; a NaN may have others, because kernels that move narrow floats do so by way of f32.
bool SameValues(const Literal& a, const Literal& b) {
  if (!a.shape().SameAs(b.shape())) return false;
  const int bytes = hlo::BytesOf(a.element_type());
  for (int64_t i = 0; i < a.ElementCount(); ++i) {
    if (std::memcmp(a.data() + i * bytes, b.data() + i * bytes, static_cast<size_t>(bytes)) == 0) continue;
    const bool nans = hlo::IsFloating(a.element_type()) && std::isnan(a.GetDouble(i)) && std::isnan(b.GetDouble(i));
    if (!nans) return false;
  }
  return true;
}

// Along dimension 0, by bytes.
Literal Reversed(const Literal& literal) {
  Literal result(literal.shape());
  const int64_t rows = literal.shape().dimensions()[0], bytes = literal.ByteSize() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(result.mutable_data() + row * bytes, literal.data() + (rows - 1 - row) * bytes,
                static_cast<size_t>(bytes));
  }
  return result;
}

constexpr int64_t kRows = 5;

std::string ArrayText(ElementType type) { return fmt::format("{}[{},3]", hlo::ElementTypeName(type), kRows); }

std::string Joined(const std::vector<std::string>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::string(), [](const std::string& all, const std::string& one) {
    return all.empty() ? one : all + ", " + one;
  });
}

// One array of each type, told from the others by its number: for modules in which a tuple has all of them.
struct EveryType {
  std::vector<ElementType> types = ArrayTypes();
  std::string shape = TupleText();
  std::vector<Literal> values, reversed;

  explicit EveryType(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const ElementType type : types) {
      values.push_back(RandomOf(type, {kRows, 3}, random));
      reversed.push_back(Reversed(values.back()));
    }
  }

  // The instructions that take tuple `from` apart, reverse each array, and put them together as `to`.
  std::string ReverseAll(const std::string& from, const std::string& to) const {
    std::string text;
    std::vector<std::string> names;
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string array = ArrayText(types[i]);
      text += fmt::format("  {0}{1} = {2} get-tuple-element({3}), index={1}\n", to, i, array, from);
      text += fmt::format("  {0}r{1} = {2} reverse({0}{1}), dimensions={{0}}\n", to, i, array);
      names.push_back(fmt::format("{}r{}", to, i));
    }
    return text + fmt::format("  {} = {} tuple({})\n", to, shape, Joined(names));
  }

  void ExpectReversed(const std::vector<Literal>& leaves) const {
    ASSERT_EQ(leaves.size(), reversed.size());
    for (size_t i = 0; i < leaves.size(); ++i)
      EXPECT_TRUE(SameValues(leaves[i], reversed[i])) << hlo::ElementTypeName(types[i]);
  }

  void ExpectReversed(const std::vector<Array>& results) const {
    std::vector<Literal> leaves;
    for (const Array& result : results) {
      Literal& leaf = leaves.emplace_back(result.shape());
      result.ToHost(leaf.mutable_data());
    }
    ExpectReversed(leaves);
  }

 private:
  std::string TupleText() const {
    std::vector<std::string> arrays;
    std::transform(types.begin(), types.end(), std::back_inserter(arrays), ArrayText);
    return "(" + Joined(arrays) + ")";
  }
};

TEST(Transfers, FeedsReachARunningProgram) {
  const auto executable = TheClient()->Compile(Module::FromText(R"(HloModule echo
ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  i = (f32[2], token[]) infeed(t)
  v = f32[2] get-tuple-element(i), index=0
  d = f32[2] add(x, v)
  u = token[] get-tuple-element(i), index=1
  o = token[] outfeed(d, u), outfeed_shape=f32[2]
  j = (f32[2], token[]) infeed(o)
  w = f32[2] get-tuple-element(j), index=0
  ROOT r = f32[2] multiply(d, w)
})"),
                                               {});
  const auto channels = std::make_shared<HostChannels>();
  RunFlags flags;
  flags.channels = channels;
  const auto value = [](float a, float b) {
    Literal literal(Shape(ElementType::kF32, {2}));
    literal.SetDouble(0, a);
    literal.SetDouble(1, b);
    return literal;
  };
  const auto results = executable->Run({Upload({1, 5})}, flags);
  channels->Send(0, HostChannels::kFeed, {value(10, 20)});
  const Literal fed = channels->Receive(0, HostChannels::kFeed)[0];
  EXPECT_EQ(fed.GetDouble(0), 11);
  channels->Send(0, HostChannels::kFeed, {value(2, 3)});
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(22, 75));
  EXPECT_THAT(FailureOf([&] { executable->Run({Upload({1, 5})})[0].Wait(); }), HasSubstr("RunFlags::channels"));
}

// Whatever is known of the trips.
TEST(Transfers, ConditionsOfCountedLoopsSpeakBeforeEachTrip) {
  for (const int64_t trips : {0, 1, 3}) {
    const auto executable = Compile(fmt::format(R"(HloModule m
cond {{ p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  t = token[] after-all()
  o = token[] outfeed(i, t), outfeed_shape=s32[]
  n = s32[] constant({})
  ROOT c = pred[] compare(i, n), direction=LT }}
body {{ p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] add(x, x)
  ROOT t = (s32[], f32[4]) tuple(j, y) }}
ENTRY e {{ x = f32[4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }})",
                                                trips));
    const auto channels = std::make_shared<HostChannels>(std::chrono::seconds(5));
    const auto results = executable->Run({Upload({1, 2, 3, 4})}, With(channels));
    const float factor = static_cast<float>(1 << trips);
    EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(factor, 2 * factor, 3 * factor, 4 * factor));
    for (int64_t i = 0; i <= trips; ++i) EXPECT_EQ(channels->Receive(0, HostChannels::kFeed)[0].GetInt(0), i);
  }
}

TEST(Transfers, FeedsOfEveryType) {
  const EveryType every(1);
  std::string text = "HloModule arrays\nENTRY e {\n  o = token[] after-all()\n";
  for (size_t i = 0; i < every.types.size(); ++i) {
    const std::string array = ArrayText(every.types[i]), before = i == 0 ? "o" : fmt::format("o{}", i - 1);
    text += fmt::format("  i{} = ({}, token[]) infeed({})\n", i, array, before);
    text += fmt::format("  x{0} = {1} get-tuple-element(i{0}), index=0\n", i, array);
    text += fmt::format("  t{0} = token[] get-tuple-element(i{0}), index=1\n", i);
    text += fmt::format("  r{0} = {1} reverse(x{0}), dimensions={{0}}\n", i, array);
    text += fmt::format("  o{0} = token[] outfeed(r{0}, t{0}), outfeed_shape={1}\n", i, array);
  }
  const auto executable = Compile(text + "  ROOT done = s32[] constant(7)\n}\n");
  const auto channels = std::make_shared<HostChannels>();
  for (const Literal& value : every.values) channels->Send(0, HostChannels::kFeed, {value});
  EXPECT_THAT(executable->Run({}, With(channels))[0].ToVector<int32_t>(), ElementsAre(7));
  std::vector<Literal> left;
  for (size_t i = 0; i < every.types.size(); ++i) left.push_back(channels->Receive(0, HostChannels::kFeed).at(0));
  every.ExpectReversed(left);
}

TEST(Transfers, FeedsOfATupleOfEveryType) {
  const EveryType every(2);
  const auto executable =
      Compile(fmt::format("HloModule tuples\nENTRY e {{\n  t = token[] after-all()\n"
                          "  i = ({0}, token[]) infeed(t)\n"
                          "  x = {0} get-tuple-element(i), index=0\n"
                          "  u = token[] get-tuple-element(i), index=1\n{1}"
                          "  o = token[] outfeed(y, u), outfeed_shape={0}\n"
                          "  ROOT r = {0} copy(y)\n}}\n",
                          every.shape, every.ReverseAll("x", "y")));
  const auto channels = std::make_shared<HostChannels>();
  channels->Send(0, HostChannels::kFeed, every.values);
  every.ExpectReversed(executable->Run({}, With(channels)));
  every.ExpectReversed(channels->Receive(0, HostChannels::kFeed));
}

// Leaves come in the order in which the tuple is written; empty tuples and arrays without elements have their places.
TEST(Transfers, FeedsOfNestedTuples) {
  const auto executable = Compile(R"(HloModule nested
ENTRY e {
  t = token[] after-all()
  i = ((s32[], (), (f32[2], (u8[0], pred[]))), token[]) infeed(t)
  x = (s32[], (), (f32[2], (u8[0], pred[]))) get-tuple-element(i), index=0
  u = token[] get-tuple-element(i), index=1
  inner = (f32[2], (u8[0], pred[])) get-tuple-element(x), index=2
  last = (u8[0], pred[]) get-tuple-element(inner), index=1
  a = s32[] get-tuple-element(x), index=0
  b = f32[2] get-tuple-element(inner), index=0
  n = f32[2] negate(b)
  p = pred[] get-tuple-element(last), index=1
  q = pred[] not(p)
  pair = (f32[2], s32[]) tuple(n, a)
  w = (pred[], (f32[2], s32[])) tuple(q, pair)
  empty = () tuple()
  o = token[] outfeed(w, u), outfeed_shape=(pred[], (f32[2], s32[]))
  v = token[] outfeed(empty, o), outfeed_shape=()
  m = token[] outfeed(x, v), outfeed_shape=(s32[], (), (f32[2], (u8[0], pred[])))
  ROOT r = s32[] add(a, a)
})");
  const auto channels = std::make_shared<HostChannels>();
  Literal floats(Shape(ElementType::kF32, {2}));
  floats.SetDouble(0, 3);
  floats.SetDouble(1, -4);
  const std::vector<Literal> value = {Literal::Scalar(ElementType::kS32, 21), floats,
                                      Literal(Shape(ElementType::kU8, {0})), Literal::Scalar(ElementType::kPred, 1)};
  channels->Send(0, HostChannels::kFeed, value);
  EXPECT_THAT(executable->Run({}, With(channels))[0].ToVector<int32_t>(), ElementsAre(42));
  const std::vector<Literal> first = channels->Receive(0, HostChannels::kFeed);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].GetInt(0), 0);
  EXPECT_EQ(first[1].GetDouble(0), -3);
  EXPECT_EQ(first[1].GetDouble(1), 4);
  EXPECT_EQ(first[2].GetInt(0), 21);
  EXPECT_TRUE(channels->Receive(0, HostChannels::kFeed).empty());
  EXPECT_TRUE(channels->Receive(0, HostChannels::kFeed) == value);
}

// A value of another type of the same size is refused, and so is one leaf too few.
TEST(Transfers, AValueOfAnotherShapeIsRefused) {
  const auto executable = Compile(R"(HloModule wants
ENTRY e {
  t = token[] after-all()
  i = ((s32[2], f32[]), token[]) infeed(t)
  x = (s32[2], f32[]) get-tuple-element(i), index=0
  ROOT r = s32[2] get-tuple-element(x), index=0
})");
  const std::vector<std::vector<Literal>> wrong = {
      {Literal(Shape(ElementType::kF32, {2})), Literal(Shape(ElementType::kF32, {}))},
      {Literal(Shape(ElementType::kS32, {2}))},
      {Literal(Shape(ElementType::kS32, {3})), Literal(Shape(ElementType::kF32, {}))},
  };
  for (const std::vector<Literal>& value : wrong) {
    const auto channels = std::make_shared<HostChannels>();
    channels->Send(0, HostChannels::kFeed, value);
    EXPECT_THAT(FailureOf([&] { executable->Run({}, With(channels))[0].Wait(); }),
                HasSubstr("instead of (s32[2], f32[])"));
  }
}

// Once an iteration, in order; and only in the branch that is taken.
TEST(Transfers, FeedsInLoopsAndBranches) {
  const auto executable = Compile(R"(HloModule steps
more { s = (s32[], f32[2], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[2], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  f = ((f32[2], s16[]), token[]) infeed(t)
  d = (f32[2], s16[]) get-tuple-element(f), index=0
  u = token[] get-tuple-element(f), index=1
  v = f32[2] get-tuple-element(d), index=0
  k = s16[] get-tuple-element(d), index=1
  y = f32[2] add(x, v)
  g = (f32[2], s16[], s32[]) tuple(y, k, i)
  o = token[] outfeed(g, u), outfeed_shape=(f32[2], s16[], s32[])
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[2], token[]) tuple(j, y, o) }
says { s = (f32[2], token[]) parameter(0)
  x = f32[2] get-tuple-element(s), index=0
  t = token[] get-tuple-element(s), index=1
  o = token[] outfeed(x, t), outfeed_shape=f32[2]
  ROOT n = f32[2] negate(x) }
silent { s = (f32[2], token[]) parameter(0)
  ROOT x = f32[2] get-tuple-element(s), index=0 }
ENTRY e {
  x = f32[2] parameter(0)
  p = pred[] parameter(1)
  t = token[] after-all()
  z = s32[] constant(0)
  s = (s32[], f32[2], token[]) tuple(z, x, t)
  w = (s32[], f32[2], token[]) while(s), condition=more, body=step
  y = f32[2] get-tuple-element(w), index=1
  u = token[] get-tuple-element(w), index=2
  b = (f32[2], token[]) tuple(y, u)
  ROOT r = f32[2] conditional(p, b, b), true_computation=says, false_computation=silent
})");
  for (const bool says : {true, false}) {
    const auto channels = std::make_shared<HostChannels>(std::chrono::seconds(5));
    for (int64_t i = 1; i <= 3; ++i) {
      Literal value(Shape(ElementType::kF32, {2}));
      value.SetDouble(0, static_cast<double>(i));
      channels->Send(0, HostChannels::kFeed, {value, Literal::Scalar(ElementType::kS16, 100 * i)});
    }
    const Array predicate = TheClient()->FromHost(Shape(ElementType::kPred, {}), &says);
    const auto results = executable->Run({Upload({10, 5}), predicate}, With(channels));
    EXPECT_THAT(results[0].ToVector<float>(), says ? ElementsAre(-16, -5) : ElementsAre(16, 5));
    const double sums[] = {11, 13, 16};
    for (int64_t i = 0; i < 3; ++i) {
      const std::vector<Literal> left = channels->Receive(0, HostChannels::kFeed);
      ASSERT_EQ(left.size(), 3u);
      EXPECT_EQ(left[0].GetDouble(0), sums[i]);
      EXPECT_EQ(left[1].GetInt(0), 100 * (i + 1));
      EXPECT_EQ(left[2].GetInt(0), i);
    }
    channels->Close("the run is over");
    if (says) {
      EXPECT_EQ(channels->Receive(0, HostChannels::kFeed).at(0).GetDouble(0), 16);
    }
    EXPECT_THAT(FailureOf([&] { channels->Receive(0, HostChannels::kFeed); }), HasSubstr("the run is over"));
  }
}

// send and recv with is_host_transfer: each array on a channel of its own, and all of them as one tuple.
TEST(Transfers, TheHostSendsAndReceivesEveryType) {
  const EveryType every(3);
  std::string text = "HloModule host\nENTRY e {\n  sd = token[] after-all()\n";
  for (size_t i = 0; i <= every.types.size(); ++i) {
    const bool all = i == every.types.size();
    const std::string shape = all ? every.shape : ArrayText(every.types[i]);
    const std::string before = i == 0 ? "sd" : fmt::format("sd{}", i - 1);
    const auto way = [&](int64_t base) {
      return fmt::format("channel_id={}, is_host_transfer=true", base + static_cast<int64_t>(i));
    };
    text += fmt::format("  r{} = ({}, u32[], token[]) recv({}), {}\n", i, shape, before, way(100));
    text += fmt::format("  rd{0} = ({1}, token[]) recv-done(r{0}), {2}\n", i, shape, way(100));
    text += fmt::format("  x{0} = {1} get-tuple-element(rd{0}), index=0\n", i, shape);
    text += fmt::format("  t{0} = token[] get-tuple-element(rd{0}), index=1\n", i);
    text += all ? every.ReverseAll(fmt::format("x{}", i), fmt::format("y{}", i))
                : fmt::format("  y{0} = {1} reverse(x{0}), dimensions={{0}}\n", i, shape);
    text += fmt::format("  s{0} = ({1}, u32[], token[]) send(y{0}, t{0}), {2}\n", i, shape, way(200));
    text += fmt::format("  sd{0} = token[] send-done(s{0}), {1}\n", i, way(200));
  }
  const auto executable = Compile(text + "  ROOT done = s32[] constant(7)\n}\n");
  const auto channels = std::make_shared<HostChannels>();
  const auto count = static_cast<int64_t>(every.types.size());
  for (int64_t i = 0; i < count; ++i) channels->Send(0, 100 + i, {every.values[static_cast<size_t>(i)]});
  channels->Send(0, 100 + count, every.values);
  EXPECT_THAT(executable->Run({}, With(channels))[0].ToVector<int32_t>(), ElementsAre(7));
  std::vector<Literal> left;
  for (int64_t i = 0; i < count; ++i) left.push_back(channels->Receive(0, 200 + i).at(0));
  every.ExpectReversed(left);
  every.ExpectReversed(channels->Receive(0, 200 + count));
}

TEST(Transfers, DevicesOfAProcessSendToEachOther) {
  ClientOptions options;
  options.devices = 3;
  const auto client = Client::Create(options);
  const std::string pairs = "channel_id=5, frontend_attributes={_xla_send_recv_source_target_pairs=\"{{0,1},{1,2}}\"}";
  const auto executable = client->Compile(Module::FromText("HloModule shift, num_partitions=3\nENTRY e {\n"
                                                           "  x = f32[2] parameter(0)\n  t = token[] after-all()\n"
                                                           "  s = (f32[2], u32[], token[]) send(x, t), " +
                                                           pairs + "\n  sd = token[] send-done(s), " + pairs +
                                                           "\n"
                                                           "  r = (f32[2], u32[], token[]) recv(sd), " +
                                                           pairs + "\n  rd = (f32[2], token[]) recv-done(r), " + pairs +
                                                           "\n"
                                                           "  ROOT y = f32[2] get-tuple-element(rd), index=0\n}\n"),
                                          {});
  std::vector<std::vector<Array>> arguments;
  for (float d = 1; d < 4; ++d) {
    const std::vector<float> values = {d, 10 * d};
    arguments.push_back({client->FromHost(Shape(ElementType::kF32, {2}), values.data())});
  }
  const auto results = executable->RunSharded(arguments);
  EXPECT_THAT(results[0][0].ToVector<float>(), ElementsAre(0, 0));
  EXPECT_THAT(results[1][0].ToVector<float>(), ElementsAre(1, 10));
  EXPECT_THAT(results[2][0].ToVector<float>(), ElementsAre(2, 20));
}

TEST(Transfers, DevicesSendEveryTypeToEachOther) {
  ClientOptions options;
  options.devices = 2;
  const auto client = Client::Create(options);
  const EveryType first(4), second(5);
  const std::string pairs = "channel_id=5, frontend_attributes={_xla_send_recv_source_target_pairs=\"{{0,1},{1,0}}\"}";
  std::string text = "HloModule swap, num_partitions=2\nENTRY e {\n";
  std::vector<std::string> names;
  for (size_t i = 0; i < first.types.size(); ++i) {
    text += fmt::format("  p{0} = {1} parameter({0})\n", i, ArrayText(first.types[i]));
    names.push_back(fmt::format("p{}", i));
  }
  text += fmt::format(
      "  x = {0} tuple({1})\n{2}  t = token[] after-all()\n"
      "  s = ({0}, u32[], token[]) send(y, t), {3}\n  sd = token[] send-done(s), {3}\n"
      "  r = ({0}, u32[], token[]) recv(sd), {3}\n  rd = ({0}, token[]) recv-done(r), {3}\n"
      "  ROOT z = {0} get-tuple-element(rd), index=0\n}}\n",
      first.shape, Joined(names), first.ReverseAll("x", "y"), pairs);
  const auto executable = client->Compile(Module::FromText(text), {});
  std::vector<std::vector<Array>> arguments;
  for (const EveryType* every : {&first, &second}) {
    std::vector<Array>& own = arguments.emplace_back();
    for (const Literal& value : every->values) own.push_back(client->FromHost(value.shape(), value.data()));
  }
  const auto results = executable->RunSharded(arguments);
  second.ExpectReversed(results[0]);
  first.ExpectReversed(results[1]);
}

}  // namespace
}  // namespace hlorun
