// Scans as jax.lax.associative_scan writes them become cumulative ops, and what only looks like one stays.
#include "passes/expand/slice_scans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "passes/generic_context.h"
#include "passes/pipeline.h"
#include "passes/simplify/dce.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using ::testing::HasSubstr;

using hlo::Dims;
using hlo::Opcode;
using Names = std::vector<std::string>;

// A module in the making; an instruction of it is a name.
class Text {
 public:
  std::string Op(const std::string& type, const Dims& dimensions, const std::string& op) {
    const std::string name = fmt::format("v{}", next_++);
    lines_ += fmt::format("  {} = {}[{}] {}\n", name, type, fmt::join(dimensions, ","), op);
    return name;
  }
  std::string Parameter(const std::string& type, const Dims& dimensions) {
    return Op(type, dimensions, fmt::format("parameter({})", parameters_++));
  }
  std::string Module(const Names& results) {
    if (results.size() == 1) return fmt::format("HloModule m\nENTRY e {{\n{}  ROOT r = {}", lines_, Root(results[0]));
    Names types;
    for (const std::string& result : results) types.push_back(TypeOf(result));
    return fmt::format("HloModule m\nENTRY e {{\n{}  ROOT r = ({}) tuple({})\n}}\n", lines_, fmt::join(types, ", "),
                       fmt::join(results, ", "));
  }

 private:
  std::string TypeOf(const std::string& name) const {
    const size_t begin = lines_.find("  " + name + " = ") + name.size() + 5;
    return lines_.substr(begin, lines_.find(' ', begin) - begin);
  }
  std::string Root(const std::string& name) const { return fmt::format("{} copy({})\n}}\n", TypeOf(name), name); }

  std::string lines_;
  int next_ = 0, parameters_ = 0;
};

// What is scanned: arrays of these types and dimensions, along one of these, by `combine`.
struct Scanned {
  Names types;
  Dims dimensions;
  size_t along;
  std::function<Names(Text&, const Names& left, const Names& right, const Dims&)> combine;
};

// The same steps as jax/_src/lax/control_flow/loops.py.
class Writer {
 public:
  Writer(Text& text, const Scanned& scanned) : text_(text), scanned_(scanned) {}

  Names Scan(const Names& arrays) { return Scan(arrays, scanned_.dimensions[scanned_.along]); }

  Names Reversed(const Names& arrays) {
    Names results;
    for (size_t k = 0; k < arrays.size(); ++k)
      results.push_back(text_.Op(scanned_.types[k], scanned_.dimensions,
                                 fmt::format("reverse({}), dimensions={{{}}}", arrays[k], scanned_.along)));
    return results;
  }

 private:
  Names Scan(const Names& arrays, int64_t length) {
    if (length < 2) return arrays;
    const Names halves = Combine(Slices(arrays, 0, length - 1, 2), Slices(arrays, 1, length, 2), length / 2);
    const Names odd = Scan(halves, length / 2);
    const int64_t others = (length + 1) / 2 - 1;
    Names even = Slices(arrays, 0, 1, 1);
    if (others > 0) {
      const Names before = length % 2 == 0 ? Slices(odd, 0, others, 1) : odd;
      const Names rest = Combine(before, Slices(arrays, 2, length, 2), others);
      for (size_t k = 0; k < even.size(); ++k)
        even[k] = text_.Op(scanned_.types[k], With(others + 1),
                           fmt::format("concatenate({}, {}), dimensions={{{}}}", even[k], rest[k], scanned_.along));
    }
    return Interleaved(even, odd, length);
  }

  Names Interleaved(const Names& even, const Names& odd, int64_t length) {
    const int64_t is_even = length % 2 == 0 ? 1 : 0;
    Names results;
    for (size_t k = 0; k < even.size(); ++k) {
      const std::string& type = scanned_.types[k];
      const bool is_truth = type == "pred";
      const char* none = is_truth ? "constant(false)" : type == "c64" ? "constant((0, 0))" : "constant(0)";
      const std::string zero = text_.Op(type, {}, none);
      const auto padded = [&](const std::string& x, int64_t low, int64_t high) {
        Names padding(scanned_.dimensions.size(), "0_0");
        padding[scanned_.along] = fmt::format("{}_{}_1", low, high);
        return text_.Op(type, With(length), fmt::format("pad({}, {}), padding={}", x, zero, fmt::join(padding, "x")));
      };
      const std::string one = padded(even[k], 0, is_even), two = padded(odd[k], 1, 1 - is_even);
      results.push_back(text_.Op(type, With(length), fmt::format("{}({}, {})", is_truth ? "or" : "add", one, two)));
    }
    return results;
  }

  Names Combine(const Names& left, const Names& right, int64_t length) {
    return scanned_.combine(text_, left, right, With(length));
  }

  Names Slices(const Names& arrays, int64_t start, int64_t limit, int64_t stride) {
    Names results, ranges;
    for (const int64_t size : scanned_.dimensions) ranges.push_back(fmt::format("[0:{}]", size));
    ranges[scanned_.along] = fmt::format("[{}:{}:{}]", start, limit, stride);
    for (size_t k = 0; k < arrays.size(); ++k)
      results.push_back(text_.Op(scanned_.types[k], With((limit - start + stride - 1) / stride),
                                 fmt::format("slice({}), slice={{{}}}", arrays[k], fmt::join(ranges, ", "))));
    return results;
  }

  Dims With(int64_t length) const {
    Dims dimensions = scanned_.dimensions;
    dimensions[scanned_.along] = length;
    return dimensions;
  }

  Text& text_;
  const Scanned& scanned_;
};

Names Parameters(Text& text, const Scanned& scanned) {
  Names arrays;
  for (const std::string& type : scanned.types) arrays.push_back(text.Parameter(type, scanned.dimensions));
  return arrays;
}

std::string ModuleOf(const Scanned& scanned, bool is_reverse = false, const std::vector<size_t>& wanted = {0}) {
  Text text;
  Writer writer(text, scanned);
  Names arrays = Parameters(text, scanned);
  if (is_reverse) arrays = writer.Reversed(arrays);
  Names results = writer.Scan(arrays);
  if (is_reverse) results = writer.Reversed(results);
  Names chosen;
  for (const size_t k : wanted) chosen.push_back(results[k]);
  return text.Module(chosen);
}

Scanned ByOp(const std::string& op, const std::string& type, const Dims& dimensions, size_t along = 0) {
  return {{type}, dimensions, along, [=](Text& text, const Names& left, const Names& right, const Dims& size) {
            return Names{text.Op(type, size, fmt::format("{}({}, {})", op, left[0], right[0]))};
          }};
}

// (a1, b1), (a2, b2) -> (a1 * a2, a2 * b1 + b2)
Scanned Recurrence(const std::string& type, const Dims& dimensions, size_t along = 0) {
  return {{type, type}, dimensions, along, [=](Text& text, const Names& left, const Names& right, const Dims& size) {
            const std::string a = text.Op(type, size, fmt::format("multiply({}, {})", left[0], right[0]));
            const std::string product = text.Op(type, size, fmt::format("multiply({}, {})", right[0], left[1]));
            return Names{a, text.Op(type, size, fmt::format("add({}, {})", product, right[1]))};
          }};
}

// Sums that begin again where a truth says so.
Scanned Segments(const Dims& dimensions) {
  return {{"pred", "s32"}, dimensions, 0, [](Text& text, const Names& left, const Names& right, const Dims& size) {
            const std::string sum = text.Op("s32", size, fmt::format("add({}, {})", left[1], right[1]));
            return Names{text.Op("pred", size, fmt::format("or({}, {})", left[0], right[0])),
                         text.Op("s32", size, fmt::format("select({}, {}, {})", right[0], right[1], sum))};
          }};
}

// As JAX does, without what no result needs.
Pipeline Scanning() {
  Pipeline pipeline("scans");
  pipeline.Add<DeadCode>();
  pipeline.Add<SliceScans>();
  return pipeline;
}

// Expects one cumulative op in place of all slices, and the same values.
std::string Becomes(const std::string& text, const Tolerance& tolerance = kBitwise) {
  Pipeline pass = Scanning();
  const auto module = RunPass(text, pass);
  EXPECT_EQ(Count(*module, Opcode::kReduceWindow), 1);
  EXPECT_EQ(Count(*module, Opcode::kSlice), 0);
  EXPECT_EQ(Count(*module, Opcode::kPad), 0);
  return RunAndCompare(text, pass, tolerance);
}

void Stays(const std::string& text) {
  SliceScans pass;
  const auto module = Parse(text);
  const std::string before = hlo::PrintModule(*module);
  GenericContext context;
  EXPECT_FALSE(pass.Run(*module, context));
  EXPECT_EQ(hlo::PrintModule(*module), before);
}

TEST(SliceScans, SumsOfAnyLength) {
  EXPECT_THAT(Becomes(ModuleOf(ByOp("add", "f32", {13})), kRounding),
              HasSubstr("reduce-window(%v0, %constant), window={size=13 pad=12_0}, to_apply=%add_f32"));
  for (int64_t length = 4; length <= 35; ++length) {
    SCOPED_TRACE(length);
    Becomes(ModuleOf(ByOp("add", "s32", {length})));
  }
}

TEST(SliceScans, EveryOpThatReductionsKnow) {
  for (const char* op : {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}) {
    SCOPED_TRACE(op);
    Becomes(ModuleOf(ByOp(op, "s32", {11})));
    Becomes(ModuleOf(ByOp(op, "u8", {2, 9}, 1), /*is_reverse=*/true));
  }
  for (const char* op : {"add", "multiply", "maximum", "minimum"}) Becomes(ModuleOf(ByOp(op, "f64", {11})), kRounding);
  for (const char* op : {"and", "or"}) Becomes(ModuleOf(ByOp(op, "pred", {3, 7}, 1)));
  for (const char* op : {"add", "multiply"}) Becomes(ModuleOf(ByOp(op, "c64", {6})), kRounding);
  // Without infinities.
  for (const char* op : {"maximum", "minimum"}) Becomes(ModuleOf(ByOp(op, "f8e4m3fn", {11})));
}

TEST(SliceScans, AnyDimensionEitherWay) {
  for (size_t along = 0; along < 3; ++along) {
    const Dims dimensions = {5, 6, 7};
    EXPECT_THAT(Becomes(ModuleOf(ByOp("maximum", "s32", dimensions, along))), HasSubstr("pad="));
    EXPECT_THAT(Becomes(ModuleOf(ByOp("maximum", "s32", dimensions, along), /*is_reverse=*/true)),
                HasSubstr(fmt::format("0_{}", dimensions[along] - 1)));
  }
}

TEST(SliceScans, FunctionsOfSeveralArrays) {
  for (const int64_t length : {4, 5, 8, 11, 16, 19}) {
    for (const bool is_reverse : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", length, is_reverse));
      Becomes(ModuleOf(Recurrence("s32", {2, length, 3}, 1), is_reverse, {1}));
      Becomes(ModuleOf(Recurrence("s32", {length}), is_reverse, {0, 1}));
      Becomes(ModuleOf(Recurrence("f32", {length, 2}), is_reverse, {1}), kRounding);
      Becomes(ModuleOf(Segments({length}), is_reverse, {1, 0}));
    }
  }
}

// A product alone needs no sum.
TEST(SliceScans, OneOfTheArraysAlone) {
  EXPECT_THAT(Becomes(ModuleOf(Recurrence("s32", {12}), false, {0})), HasSubstr("to_apply=%multiply_s32"));
}

TEST(SliceScans, FunctionsOfSeveralOps) {
  const auto log_sum = [](const Dims& dimensions) {
    return Scanned{{"f32"}, dimensions, 0, [](Text& text, const Names& left, const Names& right, const Dims& size) {
                     const std::string one = text.Op("f32", {}, "constant(1)");
                     const std::string ones = text.Op("f32", size, fmt::format("broadcast({}), dimensions={{}}", one));
                     const auto op = [&](const std::string& said) { return text.Op("f32", size, said); };
                     const std::string apart = op(fmt::format("subtract({}, {})", left[0], right[0]));
                     const std::string shrunk = op(fmt::format("negate({})", op(fmt::format("abs({})", apart))));
                     const std::string more =
                         op(fmt::format("add({}, {})", ones, op(fmt::format("exponential({})", shrunk))));
                     const std::string most = op(fmt::format("maximum({}, {})", left[0], right[0]));
                     return Names{op(fmt::format("add({}, {})", most, op(fmt::format("log({})", more))))};
                   }};
  };
  Becomes(ModuleOf(log_sum({9, 16})), kRounding);
  Becomes(ModuleOf(log_sum({9, 16}), /*is_reverse=*/true), kRounding);
  Stays(ModuleOf(log_sum({9})));
}

// An infinite factor in front of the first sum multiplies nothing.
TEST(SliceScans, TheFirstElementIsCombinedWithNothing) {
  Pipeline pass = Scanning();
  const auto module = RunPass(ModuleOf(Recurrence("f32", {5}), false, {1}), pass);
  std::vector<hlo::Literal> arguments(2, hlo::Literal(hlo::Shape(hlo::ElementType::kF32, {5})));
  for (int64_t i = 0; i < 5; ++i) {
    arguments[0].SetDouble(i, i == 0 ? std::numeric_limits<double>::infinity() : 2);
    arguments[1].SetDouble(i, 1);
  }
  const hlo::Literal result = hlo::Evaluate(*module, arguments);
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(result.GetDouble(i), static_cast<double>((int64_t{2} << i) - 1));
}

TEST(SliceScans, ScansOfScans) {
  const Scanned sums = ByOp("add", "s32", {10}), products = ByOp("multiply", "s32", {10});
  Text text;
  const Names x = Parameters(text, sums);
  const Names y = Writer(text, sums).Scan(Writer(text, products).Scan(Writer(text, sums).Scan(x)));
  const std::string module = text.Module(y);
  Pipeline pass = Scanning();
  EXPECT_EQ(Count(*RunPass(module, pass), Opcode::kReduceWindow), 3);
  EXPECT_EQ(Count(*RunPass(module, pass), Opcode::kSlice), 0);
  RunAndCompare(module, pass);
}

// One op for both results would wait for itself.
TEST(SliceScans, AnArrayMadeOfAnotherOnesResult) {
  const Scanned products = ByOp("multiply", "s32", {10}), recurrence = Recurrence("s32", {10});
  Text text;
  const std::string a = text.Parameter("s32", {10});
  const std::string b = text.Op("s32", {10}, fmt::format("negate({})", Writer(text, products).Scan({a})[0]));
  const Names both = Writer(text, recurrence).Scan({a, b});
  const std::string module = text.Module({both[1], b});
  Pipeline pass = Scanning();
  EXPECT_EQ(Count(*RunPass(module, pass), Opcode::kReduceWindow), 2);
  RunAndCompare(module, pass);
}

TEST(SliceScans, VaryingDimensionsBesideTheScannedOne) {
  std::string text = ModuleOf(Recurrence("s32", {4, 9}, 1), false, {1});
  for (size_t at = 0; (at = text.find("s32[4,", at)) != std::string::npos;) text.replace(at, 6, "s32[<=4,");
  EXPECT_THAT(Becomes(text), HasSubstr("ROOT %r = s32[<=4,9] copy"));
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << text;
  if (at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

// Expects that no cumulative op has all elements; the levels below a flaw may still be a scan, of the halves.
void IsNotWhole(const std::string& text) {
  Pipeline pass = Scanning();
  RunAndCompare(text, pass);
  const auto module = RunPass(text, pass);
  const hlo::Shape& whole = module->entry()->parameter(0)->shape();
  for (const auto& op : module->entry()->instructions())
    EXPECT_FALSE(op->Is(Opcode::kReduceWindow) && op->operand(0)->shape().dimensions() == whole.dimensions());
}

TEST(SliceScans, LevelsThatDiffer) {
  const std::string odd = ModuleOf(ByOp("maximum", "s32", {13})), even = ModuleOf(ByOp("maximum", "s32", {12}));
  struct Case {
    const char *what, *with;
  };
  // In each the shapes are as before.
  for (const Case& c : {Case{"s32[6] maximum", "s32[6] minimum"},
                        {"s32[3] maximum", "s32[3] minimum"},
                        {"s32[1] maximum", "s32[1] minimum"},
                        {"s32[2] maximum", "s32[2] add"},
                        {"[0:12:2]", "[0:6:1]"},
                        {"[1:13:2]", "[2:13:2]"},
                        {"[2:13:2]", "[1:13:2]"},
                        {"[0:1:1]", "[1:2:1]"},
                        {"[0:2:1]", "[1:3:1]"},
                        {"[0:5:2]", "[0:3:1]"},
                        {"padding=0_1_1", "padding=1_0_1"},
                        {"padding=1_0_1", "padding=0_1_1"},
                        {"constant(0)", "constant(1)"},
                        {"s32[13] add(", "s32[13] subtract("}}) {
    SCOPED_TRACE(c.what);
    IsNotWhole(Replaced(odd, c.what, c.with));
  }
  for (const Case& c : {Case{"[0:11:2]", "[0:6:1]"},
                        {"[2:12:2]", "[1:11:2]"},
                        {"[0:5:1]", "[1:6:1]"},
                        {"s32[5] maximum", "s32[5] minimum"}}) {
    SCOPED_TRACE(c.what);
    IsNotWhole(Replaced(even, c.what, c.with));
  }
}

TEST(SliceScans, OtherFunctionsOfTheArraysDiffer) {
  const std::string text = ModuleOf(Recurrence("s32", {13}), false, {1});
  IsNotWhole(Replaced(text, "s32[3] multiply", "s32[3] add"));
  IsNotWhole(Replaced(text, "s32[6] add(", "s32[6] subtract("));
}

TEST(SliceScans, NotWithoutAssociativity) {
  Stays(ModuleOf(ByOp("subtract", "s32", {13})));
  Stays(ModuleOf(ByOp("subtract", "f32", {13})));
  Stays(ModuleOf(ByOp("divide", "f32", {13})));
  // Little apart, or far out alone.
  const auto decay = [](const std::string& type, const std::string& factor) {
    return Scanned{{type}, {13}, 0, [=](Text& text, const Names& left, const Names& right, const Dims& size) {
                     const std::string c = text.Op(type, {}, "constant(" + factor + ")");
                     const std::string all = text.Op(type, size, fmt::format("broadcast({}), dimensions={{}}", c));
                     const std::string less = text.Op(type, size, fmt::format("multiply({}, {})", left[0], all));
                     return Names{text.Op(type, size, fmt::format("add({}, {})", less, right[0]))};
                   }};
  };
  Stays(ModuleOf(decay("f32", "0.99999")));
  Stays(ModuleOf(decay("bf16", "0.95")));
  Stays(ModuleOf(Scanned{{"s32"}, {13}, 0, [](Text& text, const Names& left, const Names& right, const Dims& size) {
                           const std::string c = text.Op("s32", {}, "constant(20)");
                           const std::string all =
                               text.Op("s32", size, fmt::format("broadcast({}), dimensions={{}}", c));
                           const std::string sum = text.Op("s32", size, fmt::format("add({}, {})", left[0], right[0]));
                           return Names{text.Op("s32", size, fmt::format("minimum({}, {})", sum, all))};
                         }}));
}

// A running sum would be rounded as often as there are elements.
TEST(SliceScans, NotWhereEachStepRounds) {
  Stays(ModuleOf(Scanned{{"bf16"}, {13}, 0, [](Text& text, const Names& left, const Names& right, const Dims& size) {
                           const std::string a = text.Op("f32", size, fmt::format("convert({})", left[0]));
                           const std::string b = text.Op("f32", size, fmt::format("convert({})", right[0]));
                           const std::string sum = text.Op("f32", size, fmt::format("add({}, {})", a, b));
                           return Names{text.Op("bf16", size, fmt::format("convert({})", sum))};
                         }}));
}

// Of many arrays, all of whose results one op gives.
TEST(SliceScans, MatrixProducts) {
  constexpr size_t kSide = 3;
  Scanned products{Names(kSide * kSide, "s32"), {11}, 0, nullptr};
  products.combine = [](Text& text, const Names& left, const Names& right, const Dims& size) {
    Names results;
    for (size_t i = 0; i < kSide; ++i) {
      for (size_t j = 0; j < kSide; ++j) {
        std::string sum;
        for (size_t k = 0; k < kSide; ++k) {
          const std::string p =
              text.Op("s32", size, fmt::format("multiply({}, {})", left[i * kSide + k], right[k * kSide + j]));
          sum = k == 0 ? p : text.Op("s32", size, fmt::format("add({}, {})", sum, p));
        }
        results.push_back(sum);
      }
    }
    return results;
  };
  Becomes(ModuleOf(products, false, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  Becomes(ModuleOf(products, true, {5, 2}));
}

TEST(SliceScans, InTheWholePipeline) {
  const auto module = Parse(ModuleOf(Recurrence("f32", {4, 33, 5}, 1), /*is_reverse=*/true, {1}));
  GenericContext context;
  OptimizationPipeline(context.options, context.device).Run(*module, context);
  const std::string text = hlo::PrintModule(*module);
  EXPECT_THAT(text, HasSubstr("reduce-window"));
  EXPECT_THAT(text, Not(HasSubstr("reverse")));
}

}  // namespace
}  // namespace hlorun::passes
