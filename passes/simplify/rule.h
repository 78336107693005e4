// Rewrite rules as data.
//
// A rule is a row: what it matches, when, what it becomes, and the example that proves it, as HLO text. The rows are
// grouped by op in rules/*.cc. tests/passes/rules_test.cc runs every row: its positive example must fire and its
// negative one must not, and whatever fires, mutated in shapes, types, constants and attributes, must compute the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "hlo/builder.h"
#include "passes/simplify/pattern.h"

namespace hlorun::passes {

enum class Exactness : uint8_t {
  kExact,          // bit for bit, up to denormals (arithmetic flushes them) and NaN payloads
  kReassociating,  // within rounding: sums in another order, one rounding more or less
};

// A match in hand: bound instructions, and a builder that puts new ones before the root.
struct Match {
  hlo::Instruction* root;
  Bindings bound;
  hlo::Builder build;

  hlo::Instruction* operator[](Slot slot) const { return bound[static_cast<size_t>(slot)]; }
  const hlo::Shape& shape() const { return root->shape(); }
  const hlo::Dims& dimensions() const { return root->shape().dimensions(); }
  hlo::Literal Splat(Slot slot) const { return *SplatOf(*(*this)[slot]); }
  // The scalar `value` in the root's shape.
  hlo::Instruction* Fill(const hlo::Literal& value) { return build.Broadcast(build.Constant(value), dimensions(), {}); }
  hlo::Instruction* Fill(double value) { return Fill(hlo::Literal::Scalar(shape().element_type(), value)); }
};

struct Rule {
  std::string_view name;
  Exactness exactness;
  Pattern pattern;
  std::function<bool(const Match&)> when;                // empty: always
  std::function<hlo::Instruction*(Match&)> replacement;  // of the root's shape
  std::string_view positive;                             // HLO text where it fires
  std::string_view negative;                             // HLO text where it must not
};

// All rules, in the order in which they are tried.
const std::vector<Rule>& AllRules();

// Matches `rule` at `instruction`; on success replaces it and returns the replacement, else returns null and leaves
// the module as it was.
hlo::Instruction* ApplyRule(const Rule& rule, hlo::Instruction* instruction);

// The groups, one a file.
std::vector<Rule> ArithmeticRules();
std::vector<Rule> LogicRules();
std::vector<Rule> ConvertRules();
std::vector<Rule> BroadcastRules();
std::vector<Rule> ReshapeRules();
std::vector<Rule> TransposeRules();
std::vector<Rule> SliceRules();
std::vector<Rule> ConcatenateRules();
std::vector<Rule> PadRules();
std::vector<Rule> ScatterRules();
std::vector<Rule> ReduceRules();
std::vector<Rule> WindowRules();
std::vector<Rule> DotRules();
std::vector<Rule> TupleRules();

}  // namespace hlorun::passes
