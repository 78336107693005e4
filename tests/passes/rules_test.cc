// Soundness of the rewrite rules, from their own examples.
//
// Each positive example must fire, each negative one must not. Then the examples are mutated at random: types, sizes,
// attribute numbers, constants, opcodes, operands. Most mutants are no programs and are dropped; where one is, and the
// rule fires on it, the evaluator must compute the same before and after.
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/simplify/rewrite.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

constexpr int kMutantsOfEachExample = 400;

struct Span {
  size_t position, length;
};

std::vector<Span> Find(const std::string& text, const std::regex& what, int group = 0) {
  std::vector<Span> spans;
  for (std::sregex_iterator it(text.begin(), text.end(), what), end; it != end; ++it) {
    spans.push_back({static_cast<size_t>(it->position(group)), static_cast<size_t>(it->length(group))});
  }
  return spans;
}

using Choices = std::vector<std::string>;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Mutate(std::string text) {
    for (uint64_t steps = 1 + random_() % 3; steps > 0; --steps) text = Step(text);
    return text;
  }

 private:
  const std::string& Pick(const Choices& choices) { return choices[random_() % choices.size()]; }

  std::string ReplaceOne(std::string text, const std::vector<Span>& spans, const Choices& choices) {
    if (spans.empty()) return text;
    const Span span = spans[random_() % spans.size()];
    return text.replace(span.position, span.length, Pick(choices));
  }

  // Every occurrence of the word that one of the spans covers.
  std::string ReplaceAll(const std::string& text, const std::vector<Span>& spans, const Choices& choices) {
    if (spans.empty()) return text;
    const Span span = spans[random_() % spans.size()];
    const std::string word = text.substr(span.position, span.length);
    const std::string with = Pick(choices);
    std::string result;
    size_t from = 0;
    for (const Span& other : spans) {
      if (text.substr(other.position, other.length) != word) continue;
      result += text.substr(from, other.position - from) + with;
      from = other.position + other.length;
    }
    return result + text.substr(from);
  }

  std::string Step(const std::string& text) {
    static const std::regex type("\\b(pred|[su](8|16|32|64)|bf16|f16|f32|f64|c64)\\b(?=\\[)");
    static const std::regex number("[\\[{,:=_ -]([0-9]+)(?=[\\]},:_ \\n)])");
    static const std::regex constant("constant\\(([^({)]*)\\)");
    static const std::regex opcode(
        "\\b(add|subtract|multiply|divide|maximum|minimum|and|or|xor|power|remainder|negate|"
        "abs|not|floor|sign|sqrt|exponential)\\(");
    static const std::regex direction("direction=([A-Z]+)");
    static const std::regex operand("[(,] *([a-z])(?=[,)])");
    static const Choices types = {"f32", "bf16", "f16", "f64", "s32", "u32", "s8", "u8", "s64", "u64", "pred", "c64"};
    static const Choices numbers = {"0", "1", "2", "3", "4", "5", "6", "7"};
    static const Choices constants = {"0", "-0",   "1",     "-1",  "2",   "0.5",  "inf",    "-inf", "nan",
                                      "3", "true", "false", "127", "255", "-128", "100000", "4",    "1024"};
    static const Choices opcodes = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "and",        "or",
                                    "xor", "power",    "negate",   "abs",    "not",     "floor",   "exponential"};
    static const Choices directions = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    static const Choices operands = {"x", "y", "z", "a", "b", "c", "n", "t"};
    switch (random_() % 8) {
      case 0: return ReplaceAll(text, Find(text, type), types);
      case 1: return ReplaceOne(text, Find(text, type), types);  // operands, reducers of mixed types
      case 2: return ReplaceAll(text, Find(text, number, 1), numbers);
      case 3: return ReplaceOne(text, Find(text, number, 1), numbers);
      case 4: return ReplaceOne(text, Find(text, constant, 1), constants);
      case 5: return ReplaceOne(text, Find(text, opcode, 1), opcodes);
      case 6: return ReplaceOne(text, Find(text, direction, 1), directions);
      default: return ReplaceOne(text, Find(text, operand, 1), operands);
    }
  }

  std::mt19937_64 random_;
};

std::unique_ptr<hlo::Module> ParseIfValid(const std::string& text) {
  try {
    std::unique_ptr<hlo::Module> module = Parse(text);
    hlo::VerifyModule(*module);
    return module;
  } catch (const Error&) {
    return nullptr;
  }
}

int64_t Fire(hlo::Module& module, const Rule& rule) {
  const auto firings = ApplyRules(module, {rule});
  const auto it = firings.find(rule.name);
  return it == firings.end() ? 0 : it->second;
}

// Whether the rule fired; expects the same values if so.
bool FiresSoundly(const std::string& text, const Rule& rule, uint64_t seed) {
  const std::unique_ptr<hlo::Module> before = ParseIfValid(text);
  if (before == nullptr) return false;
  const std::unique_ptr<hlo::Module> after = before->Clone();
  if (Fire(*after, rule) == 0) return false;
  EXPECT_NO_THROW(hlo::VerifyModule(*after)) << text << "\nbecame\n" << hlo::PrintModule(*after);
  const bool exact = rule.exactness == Exactness::kExact;
  const auto arguments = RandomArguments(*before, exact ? Inputs::kHarsh : Inputs::kMild, seed);
  hlo::Literal expected;
  try {
    expected = hlo::Evaluate(*before, arguments);
  } catch (const Error&) {
    return false;  // a program that the evaluator refuses says nothing
  }
  const std::string difference = Difference(expected, hlo::Evaluate(*after, arguments), exact ? kBitwise : kRounding);
  EXPECT_EQ(difference, "") << "rule " << rule.name << " on\n"
                            << text << "\nwhich became\n"
                            << hlo::PrintModule(*after);
  return true;
}

class RuleTest : public testing::TestWithParam<size_t> {
 protected:
  const Rule& rule() const { return AllRules()[GetParam()]; }
};

TEST_P(RuleTest, HasExamples) {
  EXPECT_FALSE(rule().name.empty());
  EXPECT_FALSE(rule().positive.empty());
  EXPECT_FALSE(rule().negative.empty());
}

TEST_P(RuleTest, FiresOnThePositiveExampleOnly) {
  EXPECT_TRUE(FiresSoundly(std::string(rule().positive), rule(), 1)) << rule().positive;
  const std::unique_ptr<hlo::Module> negative = Parse(rule().negative);
  hlo::VerifyModule(*negative);
  EXPECT_EQ(Fire(*negative, rule()), 0) << rule().negative;
}

TEST_P(RuleTest, IsSoundOnMutants) {
  Mutator mutator(GetParam() + 1);
  int fired = 0;
  for (int i = 0; i < kMutantsOfEachExample && !HasFailure(); ++i) {
    const std::string_view example = i % 2 == 0 ? rule().positive : rule().negative;
    fired += FiresSoundly(mutator.Mutate(std::string(example)), rule(), static_cast<uint64_t>(i)) ? 1 : 0;
  }
  EXPECT_GT(fired, 0) << "no mutant of the examples lets the rule fire";
}

INSTANTIATE_TEST_SUITE_P(All, RuleTest, testing::Range<size_t>(0, AllRules().size()),
                         [](const auto& info) { return std::string(AllRules()[info.param].name); });

TEST(Rules, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Rule& rule : AllRules()) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
}

// Floats saturate where they become integers, and integers wrap.
TEST(Rules, ConversionsBySaturatingSteps) {
  const auto fires = [](std::string_view from, std::string_view through, std::string_view to) {
    const std::string text = fmt::format("x = {}[64] parameter(0)\n y = {}[64] convert(x)\n ROOT r = {}[64] convert(y)",
                                         from, through, to);
    bool fired = false;
    for (const Rule& rule : AllRules()) fired = FiresSoundly(text, rule, 1) || fired;
    return fired;
  };
  EXPECT_FALSE(fires("s32", "f64", "s8"));
  EXPECT_FALSE(fires("s8", "f32", "u8"));
  EXPECT_FALSE(fires("u8", "f16", "s8"));
  EXPECT_TRUE(fires("s8", "f32", "s16"));
  EXPECT_TRUE(fires("u8", "f32", "s64"));
  EXPECT_TRUE(fires("pred", "f32", "u8"));
  EXPECT_TRUE(fires("s16", "f32", "bf16"));
}

// Reducers may be of another float type than what they combine.
TEST(Rules, ReducersOfMixedTypes) {
  for (const char* text : {R"(HloModule m
      f { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b) }
      ENTRY e { x = bf16[2,1] parameter(0)
          z = bf16[] constant(0)
          ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=f })",
                           R"(HloModule m
      f { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b) }
      ENTRY e { x = bf16[2,0] parameter(0)
          z = bf16[] constant(3)
          ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=f })",
                           R"(HloModule m
      f { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] maximum(a, b) }
      ENTRY e { x = bf16[2] parameter(0)
          w = bf16[2,3] broadcast(x), dimensions={0}
          z = bf16[] constant(3)
          ROOT r = f32[2] reduce(w, z), dimensions={1}, to_apply=f })",
                           R"(HloModule m
      f { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }
      ENTRY e { x = bf16[6,5] parameter(0)
          i = s32[2] constant({1, 0})
          u = f32[4,5] parameter(1)
          ROOT r = bf16[6,5] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={},
            scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f })"}) {
    for (const Rule& rule : AllRules()) FiresSoundly(text, rule, 1);
  }
}

// Found by random modules: the shape before the predicate's reshape was taken for the operands'.
TEST(Rules, AScalarPredicatesReshapeIsNotTheOperands) {
  for (const Rule& rule : AllRules()) {
    FiresSoundly(R"(p = pred[1,1] parameter(0)
                    m = s64[] parameter(1)
                    n = s64[] parameter(2)
                    c = pred[] reshape(p)
                    x = s64[6] broadcast(m), dimensions={}
                    y = s64[6] broadcast(n), dimensions={}
                    ROOT s = s64[6] select(c, x, y))",
                 rule, 1);
    FiresSoundly(R"(p = s64[1,1] parameter(0)
                    n = s64[] parameter(1)
                    l = s64[] reshape(p)
                    y = s64[6] broadcast(n), dimensions={}
                    h = s64[] constant(9)
                    ROOT s = s64[6] clamp(l, y, h))",
                 rule, 1);
  }
}

// The test must be able to fail: the best-known wrong rule is caught.
TEST(Rules, AWrongRuleIsFound) {
  using namespace pattern;  // NOLINT
  const Rule wrong = {
      "add_zero", Exactness::kExact, Op(hlo::Opcode::kAdd, X, Zero()), {}, [](Match& m) { return m[X]; }, "", ""};
  const auto before = Parse(R"(x = f32[] constant(-0)
                               z = f32[] constant(0)
                               ROOT r = f32[] add(x, z))");
  const auto after = before->Clone();
  ASSERT_EQ(Fire(*after, wrong), 1);
  EXPECT_NE(Difference(hlo::Evaluate(*before, {}), hlo::Evaluate(*after, {}), kBitwise), "");
}

}  // namespace
}  // namespace hlorun::passes
