// Concatenate: empty and single operands, nesting, neighbouring slices of one array.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool HasEmptyOperand(const Match& m) {
  const auto& operands = m.root->operands();
  return m.shape().ElementCount() > 0 && std::any_of(operands.begin(), operands.end(), [](const Instruction* operand) {
           return operand->shape().ElementCount() == 0;
         });
}

bool IsNested(const Instruction& operand, const Instruction& root) {
  return operand.Is(Opcode::kConcatenate) && operand.dimensions() == root.dimensions() && operand.users().size() == 1;
}

bool HasNested(const Match& m) {
  const auto& operands = m.root->operands();
  return std::any_of(operands.begin(), operands.end(), [&](const Instruction* o) { return IsNested(*o, *m.root); });
}

Instruction* Flatten(Match& m) {
  std::vector<Instruction*> operands;
  for (Instruction* operand : m.root->operands()) {
    if (IsNested(*operand, *m.root)) {
      operands.insert(operands.end(), operand->operands().begin(), operand->operands().end());
    } else {
      operands.push_back(operand);
    }
  }
  return m.build.Concatenate(operands, m.root->dimensions().at(0));
}

// All operands are slices of one array that follow one another along the dimension and agree elsewhere.
bool AreNeighbours(const Match& m) {
  const auto d = static_cast<size_t>(m.root->dimensions().at(0));
  const Instruction* previous = nullptr;
  for (const Instruction* operand : m.root->operands()) {
    if (!operand->Is(Opcode::kSlice) || operand->As<hlo::attr::Slice>().strides[d] != 1) return false;
    if (previous != nullptr) {
      auto expected = previous->As<hlo::attr::Slice>();
      const auto& slice = operand->As<hlo::attr::Slice>();
      if (operand->operand(0) != previous->operand(0) || slice.starts[d] != expected.limits[d]) return false;
      expected.starts[d] = slice.starts[d];
      expected.limits[d] = slice.limits[d];
      if (expected != slice) return false;
    }
    previous = operand;
  }
  return previous != nullptr;
}

Instruction* OneSlice(Match& m) {
  const auto d = static_cast<size_t>(m.root->dimensions().at(0));
  auto slice = m.root->operand(0)->As<hlo::attr::Slice>();
  slice.limits[d] = m.root->operand(m.root->operand_count() - 1)->As<hlo::attr::Slice>().limits[d];
  return m.build.Slice(m.root->operand(0)->operand(0), slice.starts, slice.limits, slice.strides);
}

bool AllSameSplat(const Match& m) {
  const std::optional<hlo::Literal> first = SplatOf(*m.root->operand(0));
  const auto& operands = m.root->operands();
  return first && std::all_of(operands.begin(), operands.end(), [&](const Instruction* operand) {
           const std::optional<hlo::Literal> value = SplatOf(*operand);
           return value && *value == *first;
         });
}

}  // namespace

std::vector<Rule> ConcatenateRules() {
  return {
      {"concatenate_of_one",
       Exactness::kExact,
       Op(Opcode::kConcatenate, X),
       {},
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] concatenate(x), dimensions={0})",
       R"(x = f32[4] parameter(0)
          ROOT r = f32[8] concatenate(x, x), dimensions={0})"},
      {"concatenate_of_empty", Exactness::kExact, Op(Opcode::kConcatenate), HasEmptyOperand,
       [](Match& m) {
         std::vector<Instruction*> operands = m.root->operands();
         std::erase_if(operands, [](const Instruction* operand) { return operand->shape().ElementCount() == 0; });
         return m.build.Concatenate(operands, m.root->dimensions().at(0));
       },
       R"(x = f32[4] parameter(0)
          y = f32[0] parameter(1)
          z = f32[2] parameter(2)
          ROOT r = f32[6] concatenate(x, y, z), dimensions={0})",
       R"(x = f32[4] parameter(0)
          y = f32[1] parameter(1)
          z = f32[2] parameter(2)
          ROOT r = f32[7] concatenate(x, y, z), dimensions={0})"},
      {"concatenate_of_concatenates", Exactness::kExact, Op(Opcode::kConcatenate), HasNested, Flatten,
       R"(x = f32[4] parameter(0)
          y = f32[3] parameter(1)
          c = f32[7] concatenate(x, y), dimensions={0}
          ROOT r = f32[10] concatenate(c, y), dimensions={0})",
       R"(x = f32[4,4] parameter(0)
          y = f32[4,4] parameter(1)
          c = f32[8,4] concatenate(x, y), dimensions={0}
          ROOT r = f32[8,8] concatenate(c, c), dimensions={1})"},
      {"concatenate_of_neighbours", Exactness::kExact, Op(Opcode::kConcatenate), AreNeighbours, OneSlice,
       R"(x = f32[9,4] parameter(0)
          a = f32[3,4] slice(x), slice={[1:4], [0:4]}
          b = f32[2,4] slice(x), slice={[4:6], [0:4]}
          ROOT r = f32[5,4] concatenate(a, b), dimensions={0})",
       R"(x = f32[9,4] parameter(0)
          a = f32[3,4] slice(x), slice={[1:4], [0:4]}
          b = f32[2,4] slice(x), slice={[5:7], [0:4]}
          ROOT r = f32[5,4] concatenate(a, b), dimensions={0})"},
      {"concatenate_of_splats", Exactness::kExact, Op(Opcode::kConcatenate), AllSameSplat,
       [](Match& m) { return m.Fill(*SplatOf(*m.root->operand(0))); },
       R"(c = f32[] constant(2)
          a = f32[3] broadcast(c), dimensions={}
          b = f32[2] broadcast(c), dimensions={}
          ROOT r = f32[5] concatenate(a, b), dimensions={0})",
       R"(c = f32[] constant(2)
          d = f32[] constant(3)
          a = f32[3] broadcast(c), dimensions={}
          b = f32[2] broadcast(d), dimensions={}
          ROOT r = f32[5] concatenate(a, b), dimensions={0})"},
  };
}

}  // namespace hlorun::passes
