// Dataflow: which value each (instruction, leaf) of a control computation holds.
//
// Tuples, get-tuple-element, bitcasts, barriers, calls and branch parameters pass values on. A loop's carried leaf is
// a value of its own (what the slot holds at the start of an iteration) unless every iteration passes the initial value
// through; a conditional's result is one unless all branches return the same value. Each control computation must be
// called from one place only (see FlattenControl).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/module.h"

namespace hlorun::passes {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // tokens

struct Value {
  enum class Kind : uint8_t {
    kArgument,  // leaf of an entry parameter
    kConstant,
    kDefined,     // written by `instruction`
    kCarried,     // leaf of a while body's parameter (the condition's is the same value)
    kLoopResult,  // leaf of a while
    kJoin,        // leaf of a conditional
  };
  Kind kind = Kind::kDefined;
  const hlo::Instruction* instruction = nullptr;
  int64_t leaf = 0;
  int64_t bytes = 0;
};

class Dataflow {
 public:
  explicit Dataflow(const hlo::Module& module);

  const std::vector<Value>& values() const { return values_; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  // The values of an instruction's leaves in flattened order; kNoValue for tokens.
  const std::vector<ValueId>& ValuesOf(const hlo::Instruction* instruction) const;

 private:
  using Leaves = std::vector<ValueId>;
  void Visit(const hlo::Computation& computation, std::span<const Leaves> arguments);
  Leaves Transfer(const hlo::Instruction* instruction);
  Leaves TransferWhile(const hlo::Instruction* loop);
  Leaves TransferConditional(const hlo::Instruction* conditional);
  Leaves DefineAll(const hlo::Instruction* instruction, Value::Kind kind);
  ValueId Define(const hlo::Instruction* instruction, int64_t leaf, Value::Kind kind);

  // By loop: leaves that no visit so far has seen an iteration change. Kept from visit to visit of a nested loop, which
  // would otherwise start over each time that an outer one does.
  std::unordered_map<const hlo::Instruction*, std::vector<bool>> invariant_;
  std::vector<Value> values_;
  std::map<std::pair<const hlo::Instruction*, int64_t>, ValueId> defined_;
  std::unordered_map<const hlo::Instruction*, Leaves> leaves_;
};

// Position of the first leaf of element `index` among the leaves of a tuple shape.
int64_t FirstLeafOf(const hlo::Shape& tuple, int64_t index);

// Whether the runtime does nothing for an instruction: its leaves are leaves of its operands or called computations.
bool MovesNoData(const hlo::Instruction& instruction);

}  // namespace hlorun::passes
