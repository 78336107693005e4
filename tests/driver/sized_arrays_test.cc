// Arrays of varying size on the device: sizes x padding against the same program at static sizes; bounds and buckets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/passes/dynamic/sized_cases.h"
#include "tests/passes/equivalence.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using testing_support::SizedCase;

// Shapes and elements of `results` are those of `expected`.
void ExpectEqual(const std::vector<Array>& results, const std::vector<Literal>& expected, const std::string& at) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].shape().ToString(false), expected[i].shape().ToString(false)) << at;
    EXPECT_EQ(passes::Difference(expected[i], ToLiteral(results[i]), passes::kRounding), "") << at;
  }
}

class SizesOnDeviceTest : public ::testing::TestWithParam<std::tuple<SizedCase, const char*>> {
 protected:
  void TearDown() override { unsetenv("HLORUN_PADDING"); }
};

TEST_P(SizesOnDeviceTest, EqualTheStaticProgramWhateverThePaddingHolds) {
  const auto& [sized, device_class] = GetParam();
  ClientOptions options;
  options.device_class = device_class;
  const auto client = Client::Create(options);
  const auto executable =
      client->Compile(Module::FromText(testing_support::AtSizes(sized.text, sized.bounds, true)), {});
  uint64_t seed = 1;
  for (const auto& sizes : testing_support::AllSizes(sized, 40)) {
    std::string at;
    for (const auto& [name, size] : sizes) at += name + "=" + std::to_string(size) + " ";
    const auto oracle = passes::Parse(testing_support::AtSizes(sized.text, sizes, false));
    const std::vector<Literal> arguments = passes::RandomArguments(*oracle, passes::Inputs::kMild, seed++);
    const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*oracle, arguments));
    for (const char* padding : {"nan", "random"}) {
      setenv("HLORUN_PADDING", padding, 1);
      ExpectEqual(executable->Run(ToDevice(*client, arguments)), expected, at + padding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SizesOnDeviceTest,
                         ::testing::Combine(::testing::ValuesIn(testing_support::SizedCases()),
                                            ::testing::Values("cpu", "gpu")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

constexpr const char* kStatic = R"(HloModule scaled, frontend_attributes={hlorun.symbols="batch:0:0,batch:1:0"}
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[8,3] parameter(0)
  s = f32[8] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[8,3] broadcast(zero), dimensions={}
  m = f32[8,3] maximum(x, zeros)
  b = f32[8,3] broadcast(s), dimensions={0}
  p = f32[8,3] multiply(m, b)
  t = f32[3] reduce(p, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[8,3], f32[3]) tuple(p, t)
}
)";

Literal Counting(const hlo::Dims& dimensions) {
  Literal literal(Shape(ElementType::kF32, dimensions));
  auto* values = reinterpret_cast<float*>(literal.mutable_data());
  for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) values[i] = static_cast<float>(i % 7) - 2;
  return literal;
}

// What kStatic computes for a batch of n.
std::vector<Literal> Expected(int64_t n, const std::vector<Literal>& arguments) {
  std::string text = kStatic;
  for (size_t at = text.find("[8"); at != std::string::npos; at = text.find("[8", at + 1))
    text.replace(at, 2, fmt::format("[{}", n));
  return hlo::FlattenLiteral(hlo::Evaluate(*passes::Parse(text), arguments));
}

TEST(Bounds, AnySizeUpToTheBoundThatWasGiven) {
  const auto client = Client::Create({});
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"batch=12"}, {"0:0=12", "s:0=12"}}) {
    const auto executable = client->Compile(Module::FromText(kStatic).WithBounds(settings), {});
    EXPECT_EQ(executable->parameter_shapes()[0].ToString(false), "f32[<=12,3]");
    for (const int64_t n : {0, 1, 3, 8, 12}) {
      const std::vector<Literal> arguments = {Counting({n, 3}), Counting({n})};
      ExpectEqual(executable->Run(ToDevice(*client, arguments)), Expected(n, arguments), std::to_string(n));
    }
  }
}

// All inputs of a scan have as many slices, and its outputs.
TEST(Bounds, SpreadThroughScans) {
  const std::string text = R"(HloModule scans
step { row = f32[2] parameter(0)  factor = f32[] parameter(1)  carry = f32[2] parameter(2)
  b = f32[2] broadcast(factor), dimensions={}  m = f32[2] multiply(carry, b)  s = f32[2] add(m, row)
  ROOT t = (f32[2], f32[2]) tuple(s, s) }
ENTRY e { x = f32[8,2] parameter(0)  y = f32[8] parameter(1)  c = f32[2] parameter(2)
  ROOT r = (f32[8,2], f32[2]) scan(x, y, c), dimensions={0}, num_carries=1, to_apply=step }
)";
  const auto client = Client::Create({});
  const auto executable = client->Compile(Module::FromText(text).WithBounds({"x:0=12", "y:0=12"}), {});
  for (const int64_t n : {0, 1, 5, 12}) {
    std::string exact = text;
    for (size_t at = exact.find("[8"); at != std::string::npos; at = exact.find("[8", at + 1))
      exact.replace(at, 2, fmt::format("[{}", n));
    const std::vector<Literal> arguments = {Counting({n, 2}), Counting({n}), Counting({2})};
    ExpectEqual(executable->Run(ToDevice(*client, arguments)),
                hlo::FlattenLiteral(hlo::Evaluate(*passes::Parse(exact), arguments)), std::to_string(n));
  }
}

// A depth of several blocks (docs/products.md), or of one that is empty.
TEST(Bounds, DepthOfAProduct) {
  const std::string text = R"(HloModule deep
ENTRY e { x = f32[200,7] parameter(0)  y = f32[7,130] parameter(1)
  ROOT d = f32[200,130] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
)";
  const auto client = Client::Create({});
  const auto executable = client->Compile(Module::FromText(text).WithBounds({"x:1=6000", "y:0=6000"}), {});
  for (const int64_t k : {0, 1, 300, 5999, 6000}) {
    std::string exact = text;
    for (const std::string& old : {std::string("200,7]"), std::string("[7,130]")}) {
      std::string with = old;
      with.replace(old.find('7'), 1, std::to_string(k));
      exact.replace(exact.find(old), old.size(), with);
    }
    const std::vector<Literal> arguments = {Counting({200, k}), Counting({k, 130})};
    ExpectEqual(executable->Run(ToDevice(*client, arguments)),
                hlo::FlattenLiteral(hlo::Evaluate(*passes::Parse(exact), arguments)), std::to_string(k));
  }
}

// Chains that end within a chunk, within a part, at the end of one, and before most of them.
TEST(Bounds, LengthOfCumulativeSums) {
  const auto text = [](const std::string& size, int64_t n, bool columns, bool reverse) {
    const std::string shape = columns ? size + ",3" : "2," + size;
    const std::string before = fmt::format("{}_{}", reverse ? 0 : n - 1, reverse ? n - 1 : 0);
    return fmt::format(
        R"(HloModule sums
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[{0}] parameter(0)  two = f32[] constant(2)
  ROOT r = f32[{0}] reduce-window(x, two), window={{{1}}}, to_apply=add }}
)",
        shape,
        columns ? fmt::format("size={}x1 pad={}x0_0", n, before) : fmt::format("size=1x{} pad=0_0x{}", n, before));
  };
  constexpr int64_t kMost = 2600;
  for (const char* device_class : {"cpu", "gpu"}) {
    ClientOptions options;
    options.device_class = device_class;
    const auto client = Client::Create(options);
    for (const bool columns : {false, true}) {
      for (const bool reverse : {false, true}) {
        const std::string bounded = text(fmt::format("<={}", kMost), kMost, columns, reverse);
        const auto executable = client->Compile(Module::FromText(bounded), {});
        for (const int64_t n : {1, 70, 1024, 1025, 2048, 2600}) {
          const auto exact = passes::Parse(text(std::to_string(n), n, columns, reverse));
          const std::vector<Literal> arguments = {columns ? Counting({n, 3}) : Counting({2, n})};
          ExpectEqual(executable->Run(ToDevice(*client, arguments)),
                      hlo::FlattenLiteral(hlo::Evaluate(*exact, arguments)),
                      fmt::format("{} {} {} {}", device_class, columns, reverse, n));
        }
      }
    }
  }
}

// A result that ends within its rows feeds programs of the same bound, of another, and of its very size.
TEST(Bounds, ResultsGoOnToTheNextProgram) {
  const auto text = [](const std::string& columns) {
    return fmt::format(R"(HloModule next
ENTRY e {{ x = f32[5,{0}] parameter(0)  ROOT s = f32[5,{0}] add(x, x) }}
)",
                       columns);
  };
  const auto client = Client::Create({});
  const auto bounded = [&](const char* setting) {
    return client->Compile(Module::FromText(text("8")).WithBounds({setting}), {});
  };
  const auto first = bounded("x:1=8"), same = bounded("x:1=8"), larger = bounded("x:1=11");
  const auto exact = client->Compile(Module::FromText(text("3")), {});
  const auto doubled = [&](const std::vector<Literal>& argument) {
    return hlo::FlattenLiteral(hlo::Evaluate(*passes::Parse(text("3")), argument));
  };
  const std::vector<Literal> argument = {Counting({5, 3})}, twice = doubled(argument), expected = doubled(twice);
  const std::vector<Array> result = first->Run(ToDevice(*client, argument));
  for (const auto& next : {same, larger, exact, same}) ExpectEqual(next->Run(result), expected, "next");
  ExpectEqual(result, twice, "first");
  RunFlags donating;
  donating.donate = {true};
  ExpectEqual(same->Run(result, donating), expected, "donated");
}

template <typename Work>
std::string MessageOf(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Bounds, ErrorsNameParameterDimensionBoundAndSize) {
  const auto client = Client::Create({});
  const Module module = Module::FromText(kStatic);
  const auto bounded = client->Compile(module.WithBounds({"batch=12"}), {});
  const std::string over = MessageOf([&] { bounded->Run(ToDevice(*client, {Counting({13, 3}), Counting({13})})); });
  EXPECT_THAT(over, HasSubstr("argument 0 (%x)"));
  EXPECT_THAT(over, HasSubstr("dimension 0 has size 13, its bound is 12"));
  EXPECT_THAT(MessageOf([&] {
                bounded->Run(ToDevice(*client, {Counting({3, 3}), Counting({4})}));
              }),
              HasSubstr("dimension 0"));
  EXPECT_THAT(MessageOf([&] { module.WithBounds({"0:0=12"}); }),
              HasSubstr("parameter 1 (%s) meets a dimension of varying size"));
  EXPECT_THAT(MessageOf([&] { module.WithBounds({"0:5=12"}); }), HasSubstr("has no dimension 5"));
  EXPECT_THAT(MessageOf([&] { module.WithBounds({"length=12"}); }),
              HasSubstr("the module's dimensions are called batch"));
  const auto fixed = client->Compile(module, {});
  const std::string neither = MessageOf([&] { fixed->Run(ToDevice(*client, {Counting({13, 3}), Counting({13})})); });
  EXPECT_THAT(neither, HasSubstr("--bound=0:0=N"));
  EXPECT_THAT(neither, HasSubstr("--bucket"));
}

TEST(Buckets, CompileOnceForEachAndDropTheOldest) {
  const auto client = Client::Create({});
  const auto executable = client->CompileBuckets(Module::FromText(kStatic), {.multiple = 0, .capacity = 2}, {});
  for (const int64_t n : {5, 7, 8, 0, 1, 6, 20, 5}) {
    const std::vector<Literal> arguments = {Counting({n, 3}), Counting({n})};
    ExpectEqual(executable->Run(ToDevice(*client, arguments)), Expected(n, arguments), std::to_string(n));
  }
  // 8 serves 5, 7, 8; 1 serves 0, 1; 6 is 8 again; 32 drops 1; 5 is 8 again.
  const BucketUse use = executable->bucket_use();
  EXPECT_EQ(use.compiled, 3);
  EXPECT_EQ(use.reused, 5);
  EXPECT_EQ(use.evicted, 1);
}

// A dimension that no exporter named: buckets end at the bound.
TEST(Buckets, FollowDimensionsThatBoundsName) {
  const auto client = Client::Create({});
  std::string nameless = kStatic;
  nameless.erase(nameless.find(", frontend"), nameless.find('\n') - nameless.find(", frontend"));
  const auto executable = client->CompileBuckets(Module::FromText(nameless), {.bounds = {"0:0=12", "s:0=12"}}, {});
  EXPECT_EQ(executable->parameter_shapes()[0].ToString(false), "f32[<=12,3]");
  for (const int64_t n : {5, 8, 9, 12}) {
    const std::vector<Literal> arguments = {Counting({n, 3}), Counting({n})};
    ExpectEqual(executable->Run(ToDevice(*client, arguments)), Expected(n, arguments), std::to_string(n));
  }
  EXPECT_EQ(executable->bucket_use().compiled, 2);  // 8, and 12 instead of 16
  EXPECT_THAT(MessageOf([&] {
                executable->Run(ToDevice(*client, {Counting({13, 3}), Counting({13})}));
              }),
              HasSubstr("dimension 0 has size 13, its bound is 12"));
  EXPECT_THAT(MessageOf([&] { client->CompileBuckets(Module::FromText(nameless), {.bounds = {"0:0=12"}}, {}); }),
              HasSubstr("parameter 1 (%s) meets a dimension of varying size"));
}

TEST(Buckets, WantNamedSizes) {
  const auto client = Client::Create({});
  const Module module =
      Module::FromText("HloModule m\nENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] negate(x) }\n");
  EXPECT_THAT(MessageOf([&] { client->CompileBuckets(module, {}, {}); }), HasSubstr("names no sizes"));
}

}  // namespace
}  // namespace hlorun
