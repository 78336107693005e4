// Fusion, copy insertion and buffer assignment keep a program's meaning: the plan's slices, run in host memory with the
// evaluator as kernels, give the bits of the original module. Over random programs with loops and branches, and the
// small real modules.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/printer.h"
#include "passes/fusion/fusion.h"
#include "tests/passes/memory/memory_simulation.h"
#include "tests/passes/memory/planned_module.h"
#include "tests/passes/memory/symbolic_run.h"
#include "tests/passes/shared_models.h"

namespace hlorun::passes {
namespace {

using hlo::Literal;

Literal RandomLiteral(const hlo::Shape& shape, std::mt19937& random) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const hlo::Shape& element : shape.tuple_shapes()) elements.push_back(RandomLiteral(element, random));
    return Literal::Tuple(std::move(elements));
  }
  Literal literal(shape);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int64_t> integer(0, 3);
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    if (hlo::IsFloating(shape.element_type())) {
      literal.SetDouble(i, real(random));
    } else {
      literal.SetInt(i, integer(random) & (shape.element_type() == hlo::ElementType::kPred ? 1 : 3));
    }
  }
  return literal;
}

// NaNs of any payload are one value; everything else bit by bit.
bool SameValues(const Literal& a, const Literal& b) {
  if (a == b) return true;
  if (!hlo::IsFloating(a.element_type()) || a.ElementCount() != b.ElementCount()) return false;
  for (int64_t i = 0; i < a.ElementCount(); ++i) {
    const double x = a.GetDouble(i), y = b.GetDouble(i);
    if (!(x == y || (x != x && y != y))) return false;
  }
  return true;
}

void ExpectSameResults(const std::string& text, unsigned seed, const Planned& planned) {
  const auto original = hlo::ParseModule(text, {.file_name = "<test>", .fill_elided = true});
  std::mt19937 random(seed);
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : original->entry()->parameters()) {
    arguments.push_back(RandomLiteral(parameter->shape(), random));
  }
  const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*original, arguments));
  ASSERT_EQ(CheckSymbolically(*planned.module, planned.buffers, planned.kernels), "") << text;
  const std::vector<Literal> results = Simulate(*planned.module, planned.buffers, arguments);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(SameValues(results[i], expected[i])) << "result " << i << " of\n"
                                                     << text << "\nplanned as\n"
                                                     << hlo::PrintModule(*planned.module) << planned.buffers.ToString();
  }
}

template <typename... First>
void ExpectSameResults(const std::string& text, unsigned seed, First... first) {
  ExpectSameResults(text, seed, PlanMemory(text, first...));
}

// Writes random programs over f32[4,4] values: elementwise ops, transposes, reductions, updates, loops whose carries
// are permuted, shared or invariant, conditionals whose branches return anything, tuples, donated arguments.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  std::string Text() {
    const int parameters = 2 + Below(3);
    std::string body;
    std::vector<std::string> values;
    for (int i = 0; i < parameters; ++i) {
      values.push_back(Name());
      body += "  " + values.back() + " = f32[4,4] parameter(" + std::to_string(i) + ")\n";
    }
    const std::vector<std::string> arguments = values;
    body += Statements(values, 4 + Below(12), 2);
    const int results = 1 + Below(4);
    std::string tuple, shapes, aliases;
    for (int i = 0; i < results; ++i) {
      tuple += (i > 0 ? ", " : "") + Any(values);
      shapes += i > 0 ? ", f32[4,4]" : "f32[4,4]";
      if (i < parameters && Below(2) == 0) {
        const std::string entry = fmt::format("{{{}}}: ({}, {{}}, may-alias)", i, (i + Below(1)) % parameters);
        aliases += (aliases.empty() ? "" : ", ") + entry;
      }
    }
    body += "  ROOT result = (" + shapes + ") tuple(" + tuple + ")\n";
    return "HloModule random" + (aliases.empty() ? "" : ", input_output_alias={ " + aliases + " }") +
           "\nadd.f32 { ra = f32[] parameter(0)\n rb = f32[] parameter(1)\n ROOT rs = f32[] add(ra, rb) }\n" +
           computations_ + "ENTRY main {\n" + body + "}\n";
  }

 private:
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  std::string Name() { return "v" + std::to_string(next_++); }
  const std::string& Any(const std::vector<std::string>& values) {
    // Recent values more often than old ones.
    const int n = static_cast<int>(values.size());
    return values[static_cast<size_t>(std::max(Below(n), Below(n)))];
  }

  std::string Statements(std::vector<std::string>& values, int count, int depth) {
    std::string text;
    for (int i = 0; i < count; ++i) text += Statement(values, depth);
    return text;
  }

  std::string Statement(std::vector<std::string>& values, int depth) {
    const std::string name = Name();
    std::string text = "  " + name + " = f32[4,4] ";
    switch (Below(depth > 0 ? 9 : 7)) {
      case 0: text += "add(" + Any(values) + ", " + Any(values) + ")\n"; break;
      case 1: text += "multiply(" + Any(values) + ", " + Any(values) + ")\n"; break;
      case 2: text += "tanh(" + Any(values) + ")\n"; break;
      case 3: text += "transpose(" + Any(values) + "), dimensions={1,0}\n"; break;
      case 4: {
        const std::string zero = Name(), row = Name();
        text = "  " + zero + " = f32[] constant(0.5)\n  " + row + " = f32[4] reduce(" + Any(values) + ", " + zero +
               "), dimensions={" + std::to_string(Below(2)) + "}, to_apply=add.f32\n  " + name +
               " = f32[4,4] broadcast(" + row + "), dimensions={" + std::to_string(Below(2)) + "}\n";
        break;
      }
      case 5: {
        const std::string start = Name(), slice = Name();
        text = "  " + start + " = s32[] constant(" + std::to_string(Below(4)) + ")\n  " + slice + " = f32[1,4] slice(" +
               Any(values) + "), slice={[1:2], [0:4]}\n  " + name + " = f32[4,4] dynamic-update-slice(" + Any(values) +
               ", " + slice + ", " + start + ", " + start + ")\n";
        break;
      }
      case 6: text += "constant({...})\n"; break;
      case 7: return Loop(values, depth - 1);
      default: return Branches(values, depth - 1);
    }
    values.push_back(name);
    return text;
  }

  // (counter, n arrays) -> the same; names of the arrays' get-tuple-elements are appended to `values`.
  std::string Loop(std::vector<std::string>& values, int depth) {
    const int carried = 1 + Below(3);
    std::string shape = "(s32[]";
    for (int i = 0; i < carried; ++i) shape += ", f32[4,4]";
    shape += ")";
    const std::string body_name = "body." + Name(), condition_name = "condition." + Name();
    const std::string p = Name(), i = Name(), one = Name(), next = Name(), limit = Name();
    std::string body = "  " + p + " = " + shape + " parameter(0)\n  " + i + " = s32[] get-tuple-element(" + p +
                       "), index=0\n  " + one + " = s32[] constant(1)\n  " + next + " = s32[] add(" + i + ", " + one +
                       ")\n";
    std::vector<std::string> inner;
    for (int k = 0; k < carried; ++k) {
      inner.push_back(Name());
      body += "  " + inner.back() + " = f32[4,4] get-tuple-element(" + p + "), index=" + std::to_string(k + 1) + "\n";
    }
    body += Statements(inner, 1 + Below(5), depth);
    std::string root;
    for (int k = 0; k < carried; ++k) {
      root += ", " + (Below(3) == 0 ? inner[static_cast<size_t>(Below(carried))] : Any(inner));
    }
    body += "  ROOT " + Name() + " = " + shape + " tuple(" + next + root + ")\n";
    const std::string cp = Name(), ci = Name();
    computations_ += body_name + " {\n" + body + "}\n" + condition_name + " {\n  " + cp + " = " + shape +
                     " parameter(0)\n  " + ci + " = s32[] get-tuple-element(" + cp + "), index=0\n  " + limit +
                     " = s32[] constant(" + std::to_string(Below(4)) + ")\n  ROOT " + Name() + " = pred[] compare(" +
                     ci + ", " + limit + "), direction=LT\n}\n";
    const std::string zero = Name(), start = Name(), loop = Name();
    std::string text = "  " + zero + " = s32[] constant(0)\n  " + start + " = " + shape + " tuple(" + zero;
    for (int k = 0; k < carried; ++k) text += ", " + Any(values);
    text += ")\n  " + loop + " = " + shape + " while(" + start + "), condition=" + condition_name +
            ", body=" + body_name + "\n";
    for (int k = 0; k < carried; ++k) {
      values.push_back(Name());
      text +=
          "  " + values.back() + " = f32[4,4] get-tuple-element(" + loop + "), index=" + std::to_string(k + 1) + "\n";
    }
    return text;
  }

  std::string Branches(std::vector<std::string>& values, int depth) {
    const std::string shape = "(f32[4,4], f32[4,4])";
    const int branches = 2 + Below(2);
    std::string names, operands, text;
    const std::string selector = Name();
    const std::string zero = Name(), row = Name(), scalar = Name();
    text = "  " + row + " = f32[1,1] slice(" + Any(values) + "), slice={[0:1], [0:1]}\n  " + scalar +
           " = f32[] reshape(" + row + ")\n  " + selector + " = s32[] convert(" + scalar + ")\n";
    for (int b = 0; b < branches; ++b) {
      const std::string branch = "branch." + Name(), p = Name();
      std::vector<std::string> inner = {Name(), Name()};
      std::string body = "  " + p + " = " + shape + " parameter(0)\n";
      for (int k = 0; k < 2; ++k) {
        body += "  " + inner[static_cast<size_t>(k)] + " = f32[4,4] get-tuple-element(" + p +
                "), index=" + std::to_string(k) + "\n";
      }
      body += Statements(inner, Below(4), depth);
      body += "  ROOT " + Name() + " = " + shape + " tuple(" + Any(inner) + ", " + Any(inner) + ")\n";
      computations_ += branch + " {\n" + body + "}\n";
      const std::string operand = Name();
      text += "  " + operand + " = " + shape + " tuple(" + Any(values) + ", " + Any(values) + ")\n";
      operands += ", " + operand;
      names += (b > 0 ? ", " : "") + branch;
    }
    const std::string result = Name();
    text += "  " + result + " = " + shape + " conditional(" + selector + operands + "), branch_computations={" + names +
            "}\n";
    for (int k = 0; k < 2; ++k) {
      values.push_back(Name());
      text += "  " + values.back() + " = f32[4,4] get-tuple-element(" + result + "), index=" + std::to_string(k) + "\n";
    }
    return text;
  }

  std::mt19937 random_;
  std::string computations_;
  int next_ = 0;
};

TEST(MemorySimulation, RandomPrograms) {
  constexpr unsigned kPrograms = 1000;
  for (unsigned seed = 0; seed < kPrograms && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ExpectSameResults(RandomProgram(seed).Text(), seed);
  }
}

TEST(MemorySimulation, FusedRandomPrograms) {
  constexpr unsigned kPrograms = 1000;
  for (unsigned seed = 0; seed < kPrograms && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ExpectSameResults(RandomProgram(seed).Text(), seed, Fusion());
  }
}

// Limits that cannot be met, too: whatever is computed again, the results are the same.
TEST(MemorySimulation, RandomProgramsWithLessMemory) {
  constexpr unsigned kPrograms = 1000;
  int64_t repeated = 0, fits = 0;
  for (unsigned seed = 0; seed < kPrograms && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = RandomProgram(seed).Text();
    const int64_t peak = PlanMemory(text).buffers.statistics().peak_bytes;
    const int64_t limit = seed % 2 == 0 ? peak - 64 : peak / 2;
    const Planned planned = PlanMemoryWithin(limit, text);
    ExpectSameResults(text, seed, planned);
    repeated += planned.remarks.size() > 1 ? 1 : 0;
    fits += planned.buffers.statistics().peak_bytes <= limit ? 1 : 0;
  }
  EXPECT_GT(repeated, 100);
  EXPECT_GT(fits, 50);
}

TEST(MemorySimulation, SmallModels) {
  int models = 0;
  for (const std::string& path : SharedModels()) {
    if (path.find("/small/") == std::string::npos || path.find("dlrm") != std::string::npos) continue;
    // The evaluator takes seconds for these.
    if (path.find("mha_block") != std::string::npos || path.find("1x4096") != std::string::npos) continue;
    SCOPED_TRACE(path);
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    ExpectSameResults(text.str(), 1, Fusion());
    ++models;
  }
  if (models == 0) GTEST_SKIP() << "no shared/models beside the repository (HLORUN_SHARED names the folder)";
}

}  // namespace
}  // namespace hlorun::passes
