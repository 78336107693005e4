// Parameters that are the same arrays in all runs: what only depends on them, and on constants, is made once and kept.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "hlorun/hlorun.h"
#include "tests/matrix_text.h"

namespace hlorun {
namespace {

// A convolution with weights that are transposed and scaled, a product, and one operand that both read. 21 channels are
// no multiple of a vector: Winograd's algorithm, which constant weights bring on and which has other bits, has no part
// in it.
constexpr const char* kText = R"(HloModule m
ENTRY e {
  x = f32[2,9,10,21] parameter(0)
  w = f32[40,21,3,3] parameter(1)
  scale = f32[40] parameter(2)
  v = f32[40,33] parameter(3)
  scales = f32[40,21,3,3] broadcast(scale), dimensions={0}
  scaled = f32[40,21,3,3] multiply(w, scales)
  y = f32[2,9,10,40] convolution(x, scaled), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_oi01->b01f
  flat = f32[180,40] reshape(y)
  c = f32[33,5] constant({...})
  z = f32[180,33] dot(flat, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[180,33] tanh(z)
  u = f32[180,5] dot(t, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[180,33], f32[180,5], f32[40,33]) tuple(z, u, v)
}
)";

std::string Text() {
  std::string text = kText;
  return text.replace(text.find("{...}"), 5, MatrixText(33, 5, [](int i, int j) { return (i * 7 + j * 3) % 11 - 5; }));
}

std::shared_ptr<Client> TheClient() {
  static const std::shared_ptr<Client> client = Client::Create({});
  return client;
}

Array Random(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> reals(-1, 1);
  std::vector<float> values(static_cast<size_t>(shape.ElementCount()));
  for (float& value : values) value = reals(random);
  return TheClient()->FromHost(shape, values.data());
}

std::vector<Array> Arguments(const Executable& executable, unsigned first_seed) {
  std::vector<Array> arguments;
  for (const Shape& shape : executable.parameter_shapes()) arguments.push_back(Random(shape, first_seed++));
  return arguments;
}

using Bits = std::vector<std::vector<std::byte>>;
Bits ResultsOf(Executable& executable, const std::vector<Array>& arguments) {
  Bits bits;
  for (const Array& result : executable.Run(arguments)) {
    std::vector<std::byte>& to = bits.emplace_back(static_cast<size_t>(result.shape().ByteSize()));
    result.ToHost(to.data());
  }
  return bits;
}

std::shared_ptr<Executable> Compile(std::vector<int64_t> constant) {
  CompileOptions options;
  options.constant_parameters = std::move(constant);
  return TheClient()->Compile(Module::FromText(Text()), options);
}

TEST(ConstantParameters, SameBitsAsWithoutThem) {
  const auto plain = Compile({}), kept = Compile({3, 1, 2});
  std::vector<Array> arguments = Arguments(*plain, 1);
  for (unsigned run = 0; run < 4; ++run) {
    arguments[0] = Random(arguments[0].shape(), 100 + run);
    EXPECT_EQ(ResultsOf(*kept, arguments), ResultsOf(*plain, arguments)) << run;
  }
  EXPECT_GT(kept->memory().arena_bytes, plain->memory().arena_bytes);
  EXPECT_EQ(kept->memory().peak_bytes - plain->memory().peak_bytes,
            kept->memory().arena_bytes - plain->memory().arena_bytes);
}

TEST(ConstantParameters, OtherArraysAreSeen) {
  const auto plain = Compile({}), kept = Compile({1, 2, 3});
  const std::vector<Array> first = Arguments(*plain, 1);
  ResultsOf(*kept, first);
  for (const size_t other : {1, 2, 3}) {
    std::vector<Array> arguments = first;
    arguments[other] = Random(arguments[other].shape(), 50);
    EXPECT_EQ(ResultsOf(*kept, arguments), ResultsOf(*plain, arguments)) << other;
  }
  EXPECT_EQ(ResultsOf(*kept, first), ResultsOf(*plain, first));
  // An array that goes before the next is made: that one must not pass for it, wherever it lies.
  for (unsigned seed = 60; seed < 64; ++seed) {
    std::vector<Array> arguments = first;
    arguments[1] = Random(arguments[1].shape(), seed);
    EXPECT_EQ(ResultsOf(*kept, arguments), ResultsOf(*plain, arguments)) << seed;
  }
}

// A program that may write over its argument gets memory of its own for the result where others know the argument by
// its place.
TEST(ConstantParameters, DonatedToAnotherProgram) {
  const auto plain = Compile({}), kept = Compile({1, 2, 3});
  const auto step =
      TheClient()->Compile(Module::FromText(R"(HloModule step, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  w = f32[40,21,3,3] parameter(0)
  ROOT n = f32[40,21,3,3] negate(w)
})"),
                           {});
  std::vector<Array> arguments = Arguments(*plain, 1);
  RunFlags flags;
  flags.donate = {true};
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(ResultsOf(*kept, arguments), ResultsOf(*plain, arguments)) << run;
    arguments[1] = step->Run({arguments[1]}, flags)[0];
  }
}

TEST(ConstantParameters, SomeOfThem) {
  const auto plain = Compile({});
  const std::vector<Array> arguments = Arguments(*plain, 1);
  const Bits expected = ResultsOf(*plain, arguments);
  for (const std::vector<int64_t>& constant : std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {0, 1, 2, 3}}) {
    const auto kept = Compile(constant);
    for (int run = 0; run < 2; ++run) EXPECT_EQ(ResultsOf(*kept, arguments), expected);
  }
}

TEST(ConstantParameters, RunsAtOnce) {
  const auto plain = Compile({}), kept = Compile({1, 2, 3});
  const std::vector<Array> arguments = Arguments(*plain, 1);
  const Bits expected = ResultsOf(*plain, arguments);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int run = 0; run < 5; ++run) EXPECT_EQ(ResultsOf(*kept, arguments), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ConstantParameters, SavedPlansKeepThem) {
  const auto plain = Compile({}), kept = Compile({1, 2, 3});
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("constant_parameters_{}.plan", ::getpid())).string();
  kept->Save(path);
  const auto loaded = TheClient()->Load(path, {});
  std::filesystem::remove(path);
  EXPECT_EQ(loaded->memory().arena_bytes, kept->memory().arena_bytes);
  std::vector<Array> arguments = Arguments(*plain, 1);
  for (unsigned run = 0; run < 3; ++run) {
    arguments[run] = Random(arguments[run].shape(), 200 + run);
    EXPECT_EQ(ResultsOf(*loaded, arguments), ResultsOf(*plain, arguments)) << run;
  }
}

TEST(ConstantParameters, NumbersThatTheModuleHasNotAreRefused) {
  try {
    Compile({4});
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("parameter 4 is said to be constant, but m has 4"), std::string::npos);
  }
}

// In place of what they are made of: loops, and donated arrays, see new values.
TEST(ConstantParameters, UpdatesAndLoops) {
  const std::string text = R"(HloModule m
body {
  p = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[64,64] get-tuple-element(p), index=1
  w = f32[64,64] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  b = f32[64,64] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,64] tanh(b)
  ROOT r = (s32[], f32[64,64], f32[64,64]) tuple(next, t, w)
}
condition {
  p = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  u = f32[1,64] parameter(2)
  zero = s32[] constant(0)
  e = f32[64,64] exponential(w)
  t = f32[64,64] transpose(e), dimensions={1,0}
  start = (s32[], f32[64,64], f32[64,64]) tuple(zero, x, t)
  end = (s32[], f32[64,64], f32[64,64]) while(start), condition=condition, body=body
  last = f32[64,64] get-tuple-element(end), index=1
  updated = f32[64,64] dynamic-update-slice(t, u, zero, zero)
  other = f32[64,64] dot(last, updated), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[64,64], f32[64,64]) tuple(other, updated)
}
)";
  const auto plain = TheClient()->Compile(Module::FromText(text), {});
  CompileOptions options;
  options.constant_parameters = {1};
  const auto kept = TheClient()->Compile(Module::FromText(text), options);
  for (unsigned run = 0; run < 3; ++run) {
    std::vector<Array> arguments = Arguments(*plain, 10 * run);
    EXPECT_EQ(ResultsOf(*kept, arguments), ResultsOf(*plain, arguments));
    arguments[2] = Random(arguments[2].shape(), 77);
    EXPECT_EQ(ResultsOf(*kept, arguments), ResultsOf(*plain, arguments));
  }
}

}  // namespace
}  // namespace hlorun
