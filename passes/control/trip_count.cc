#include "passes/control/trip_count.h"

#include <algorithm>
#include <limits>

#include "hlo/comparator.h"
#include "hlo/computation.h"

namespace hlorun::passes {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

std::optional<int64_t> ScalarInteger(const Instruction* x) {
  while (x->Is(Opcode::kCopy)) x = x->operand(0);
  if (!x->IsConstant() || !x->shape().IsScalar() || x->As<hlo::attr::Constant>().elided) return std::nullopt;
  const hlo::ElementType type = x->shape().element_type();
  if (!hlo::IsInteger(type) || type == hlo::ElementType::kU64) return std::nullopt;
  return x->literal().GetInt(0);
}

namespace {

// The carried element that `x` is, in a computation whose only parameter is the carry; -1 for none.
int64_t CarriedIndex(const Instruction* x) {
  while (x->Is(Opcode::kCopy)) x = x->operand(0);
  const bool carried = x->Is(Opcode::kGetTupleElement) && x->operand(0)->Is(Opcode::kParameter);
  return carried ? x->tuple_index() : -1;
}

struct Test {
  int64_t index;  // the carried element that is compared
  ComparisonDirection direction;
  int64_t bound;
};

// The integer that `x` is in the condition of `loop`: a constant, or a carry that starts at one and never changes.
std::optional<int64_t> Bound(const Instruction* x, const Instruction& loop) {
  if (const std::optional<int64_t> value = ScalarInteger(x)) return value;
  const int64_t index = CarriedIndex(x);
  const Instruction* init = loop.operand(0);
  const Instruction* next = loop.while_body()->root();
  if (index < 0 || !init->Is(Opcode::kTuple) || !next->Is(Opcode::kTuple)) return std::nullopt;
  if (CarriedIndex(next->operand(index)) != index) return std::nullopt;
  return ScalarInteger(init->operand(index));
}

std::optional<Test> TestOf(const Instruction& compare, const Instruction& loop) {
  if (!compare.Is(Opcode::kCompare)) return std::nullopt;
  const ComparisonDirection direction = compare.As<hlo::attr::Compare>().direction;
  if (const std::optional<int64_t> bound = Bound(compare.operand(1), loop)) {
    const int64_t index = CarriedIndex(compare.operand(0));
    if (index >= 0) return Test{index, direction, *bound};
  }
  if (const std::optional<int64_t> bound = Bound(compare.operand(0), loop)) {
    const int64_t index = CarriedIndex(compare.operand(1));
    if (index >= 0) return Test{index, hlo::Mirrored(direction), *bound};
  }
  return std::nullopt;
}

// What the body adds to the carried element each time.
std::optional<int64_t> StepOf(const Instruction& loop, int64_t index) {
  const Instruction* next = loop.while_body()->root();
  if (!next->Is(Opcode::kTuple)) return std::nullopt;
  const Instruction* update = next->operand(index);
  while (update->Is(Opcode::kCopy)) update = update->operand(0);
  if (update->Is(Opcode::kSubtract) && CarriedIndex(update->operand(0)) == index) {
    const std::optional<int64_t> step = ScalarInteger(update->operand(1));
    return step && *step != std::numeric_limits<int64_t>::min() ? std::optional(-*step) : std::nullopt;
  }
  if (!update->Is(Opcode::kAdd)) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    if (CarriedIndex(update->operand(side)) == index) return ScalarInteger(update->operand(1 - side));
  }
  return std::nullopt;
}

// Steps from `start` until the test fails, unless the counter leaves its type first or never arrives.
std::optional<int64_t> CountSteps(int64_t start, int64_t step, const Test& test, hlo::ElementType type) {
  // Counters near the ends of 64 bits are not worth the care that overflow takes.
  constexpr int64_t kLargest = int64_t{1} << 60;
  for (int64_t value : {start, step, test.bound}) {
    if (value > kLargest || value < -kLargest) return std::nullopt;
  }
  const int64_t distance = test.bound - start;
  int64_t count = 0;
  switch (test.direction) {
    case ComparisonDirection::kLt:
      if (distance <= 0) return 0;
      if (step <= 0) return std::nullopt;
      count = (distance + step - 1) / step;
      break;
    case ComparisonDirection::kLe:
      if (distance < 0) return 0;
      if (step <= 0) return std::nullopt;
      count = distance / step + 1;
      break;
    case ComparisonDirection::kGt:
      if (distance >= 0) return 0;
      if (step >= 0) return std::nullopt;
      count = (-distance - step - 1) / -step;
      break;
    case ComparisonDirection::kGe:
      if (distance > 0) return 0;
      if (step >= 0) return std::nullopt;
      count = -distance / -step + 1;
      break;
    case ComparisonDirection::kNe:
      if (distance == 0) return 0;
      if (step == 0 || distance % step != 0 || distance / step < 0) return std::nullopt;
      count = distance / step;
      break;
    case ComparisonDirection::kEq:
      if (distance != 0) return 0;
      return step != 0 ? std::optional<int64_t>(1) : std::nullopt;
  }
  const int64_t last = start + count * step;
  const int bits = std::min(hlo::BitsOf(type), 62);
  const int64_t most = (int64_t{1} << (hlo::IsSigned(type) ? bits - 1 : bits)) - 1;
  const int64_t least = hlo::IsSigned(type) ? -most - 1 : 0;
  if (last < least || last > most) return std::nullopt;
  return count;
}

// Iterations of `loop` while `compare`, in its condition, holds.
std::optional<int64_t> TripsOf(const Instruction& compare, const Instruction& loop) {
  const std::optional<Test> test = TestOf(compare, loop);
  if (!test) return std::nullopt;
  const std::optional<Counter> counter = CounterOf(loop, test->index);
  if (!counter) return std::nullopt;
  return CountSteps(counter->start, counter->step, *test,
                    loop.shape().tuple_shapes()[static_cast<size_t>(test->index)].element_type());
}

std::optional<int64_t> BoundOf(const Instruction& condition, const Instruction& loop) {
  if (!condition.Is(Opcode::kAnd)) return TripsOf(condition, loop);
  const std::optional<int64_t> a = BoundOf(*condition.operand(0), loop), b = BoundOf(*condition.operand(1), loop);
  if (a && b) return std::min(*a, *b);
  return a ? a : b;
}

}  // namespace

std::optional<Counter> CounterOf(const Instruction& loop, int64_t index) {
  const Instruction* init = loop.operand(0);
  if (!init->Is(Opcode::kTuple)) return std::nullopt;
  const std::optional<int64_t> start = ScalarInteger(init->operand(index)), step = StepOf(loop, index);
  return start && step ? std::optional(Counter{*start, *step}) : std::nullopt;
}

std::optional<int64_t> TripCountOf(const Instruction& loop) {
  for (const auto& instruction : loop.while_condition()->instructions()) {
    if (instruction->HasSideEffect()) return std::nullopt;
  }
  return TripsOf(*loop.while_condition()->root(), loop);
}

std::optional<int64_t> TripBoundOf(const Instruction& loop) { return BoundOf(*loop.while_condition()->root(), loop); }

}  // namespace hlorun::passes
