// Colocation: sets of values that lie in one place, joined only where no two of their lives collide.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/kernel_model.h"
#include "passes/memory/dataflow.h"
#include "passes/memory/live_ranges.h"

namespace hlorun::passes {

// Where a set of values must lie.
struct Home {
  enum class Kind : uint8_t { kAnywhere, kArgument, kConstant, kResult };
  Kind kind = Kind::kAnywhere;
  int64_t index = 0;  // leaf of the entry's parameters or result; value of a constant
  bool operator==(const Home&) const = default;
  bool IsReadOnly() const { return kind == Kind::kArgument || kind == Kind::kConstant; }
};

class Colocation {
 public:
  // Every value starts in a set of its own: constants and arguments at home, argument leaves that `module` aliases with
  // a result leaf at home in that result. All references must outlive it.
  Colocation(const hlo::Module& module, const Dataflow& dataflow, const LiveRanges& live, const KernelModel& kernels);

  struct Life {
    Range range;
    ValueId value;
  };
  struct Set {
    std::vector<Life> lives;  // of all its values, sorted; they touch at most, except in a read-only home
    Home home;
    bool is_written = false;  // holds a value that an instruction writes
    int64_t bytes = 0;
    std::vector<Range> Lives() const;  // those of its values, joined where they touch
  };
  const Set& SetOf(ValueId value) const { return sets_[static_cast<size_t>(Find(value))]; }
  ValueId Find(ValueId value) const;

  // Joins the sets of two values, unless values of the two are live at once, homes differ, or a read-only home would be
  // written. Returns whether they are one set now.
  bool TryJoin(ValueId a, ValueId b);
  // Puts the set of `value` into result leaf `index`, unless its home is elsewhere.
  bool TryHome(ValueId value, Home home);

  // By argument leaf (flattened over all parameters): the result leaf that it is aliased with, -1 for none.
  const std::vector<int64_t>& aliased_results() const { return aliased_results_; }

 private:
  bool Collide(const Set& a, const Set& b) const;
  bool MayShare(ValueId operand, ValueId result) const;
  void FindAliases(const hlo::Module& module);

  const Dataflow& dataflow_;
  const LiveRanges& live_;
  const KernelModel& kernels_;
  mutable std::vector<ValueId> parent_;
  std::vector<Set> sets_;
  std::vector<int64_t> aliased_results_;
};

// What should lie in one place: leaf `leaf` of `source` flows into `to`, or into the result leaf of that number.
struct Flow {
  ValueId from = kNoValue;
  ValueId to = kNoValue;                 // kNoValue: the entry's result
  hlo::Instruction* source = nullptr;    // root of a body, a branch or the entry, or operand of a while
  hlo::Instruction* consumer = nullptr;  // the while whose operand `source` is; null for a root
  int64_t leaf = 0;
};

// Joins what control flow, aliasing and results ask for, in an order that settles loops before their initial values,
// and returns the flows that need a copy. Control computations have one caller each.
std::vector<Flow> JoinFlows(const hlo::Module& module, const Dataflow& dataflow, Colocation& sets);

// Results that may take the place of an operand do. In-place updates first: for them a copy is saved.
void ShareInPlace(const Dataflow& dataflow, const LiveRanges& live, const KernelModel& kernels, Colocation& sets);

}  // namespace hlorun::passes
