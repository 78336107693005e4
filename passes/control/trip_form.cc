#include "passes/control/trip_form.h"

#include <algorithm>

#include "hlo/computation.h"
#include "passes/control/trip_count.h"

namespace hlorun::passes {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Larger ones are no places in arrays; products of two of them fit into 64 bits.
constexpr int64_t kLargest = int64_t{1} << 30;

bool IsInteger(const Instruction& x) { return x.shape().IsScalar() && hlo::IsInteger(x.shape().element_type()); }

TripForm Sum(const TripForm& a, const TripForm& b, int64_t sign) {
  return {a.first + sign * b.first, a.step + sign * b.step};
}

}  // namespace

TripForms::Range TripForms::RangeOf(const TripForm& form) const {
  const int64_t last = form.first + form.step * (trips_ - 1);
  return {std::min(form.first, last), std::max(form.first, last)};
}

std::optional<TripForm> TripForms::Of(const Instruction& x) {
  const auto [known, is_new] = known_.try_emplace(&x);
  if (!is_new) return known->second;
  std::optional<TripForm> form = IsInteger(x) ? Compute(x) : std::nullopt;
  const auto is_small = [](int64_t number) { return -kLargest <= number && number <= kLargest; };
  if (form && !(is_small(form->first) && is_small(form->step) && is_small(trips_))) form.reset();
  if (form) {
    // It must not wrap around, in its own type.
    const auto [least, most] = RangeOf(*form);
    const int bits = std::min(hlo::BitsOf(x.shape().element_type()), 32);
    const bool is_signed = hlo::IsSigned(x.shape().element_type());
    const int64_t highest = std::min((int64_t{1} << (is_signed ? bits - 1 : bits)) - 1, kLargest);
    const int64_t lowest = is_signed ? std::max(-(int64_t{1} << (bits - 1)), -kLargest) : 0;
    if (least < lowest || most > highest) form.reset();
  }
  return known_[&x] = form;
}

std::optional<TripForm> TripForms::Compute(const Instruction& x) {
  switch (x.opcode()) {
    case Opcode::kConstant: {
      const std::optional<int64_t> value = ScalarInteger(&x);
      return value ? std::optional(TripForm{*value, 0}) : std::nullopt;
    }
    case Opcode::kGetTupleElement: return OfCarry(x);
    case Opcode::kCopy:
    case Opcode::kReshape:
    case Opcode::kConvert: return Of(*x.operand(0));
    case Opcode::kAdd:
    case Opcode::kSubtract: {
      const std::optional<TripForm> a = Of(*x.operand(0)), b = Of(*x.operand(1));
      if (!a || !b) return std::nullopt;
      return Sum(*a, *b, x.Is(Opcode::kAdd) ? 1 : -1);
    }
    case Opcode::kNegate: {
      const std::optional<TripForm> a = Of(*x.operand(0));
      return a ? std::optional(Sum({}, *a, -1)) : std::nullopt;
    }
    case Opcode::kMultiply: return OfProduct(x);
    case Opcode::kMinimum:
    case Opcode::kMaximum: return Lesser(Of(*x.operand(0)), Of(*x.operand(1)), x.Is(Opcode::kMaximum));
    case Opcode::kClamp: return Lesser(Of(*x.operand(2)), Lesser(Of(*x.operand(0)), Of(*x.operand(1)), true), false);
    case Opcode::kSelect: return OfSelect(x);
    default: return std::nullopt;
  }
}

std::optional<TripForm> TripForms::OfCarry(const Instruction& x) const {
  if (x.operand(0) != loop_.while_body()->parameter(0)) return std::nullopt;
  const std::optional<Counter> counter = CounterOf(loop_, x.tuple_index());
  return counter ? std::optional(TripForm{counter->start, counter->step}) : std::nullopt;
}

std::optional<TripForm> TripForms::OfProduct(const Instruction& x) {
  std::optional<TripForm> a = Of(*x.operand(0)), b = Of(*x.operand(1));
  if (!a || !b) return std::nullopt;
  if (b->step != 0) std::swap(a, b);
  if (b->step != 0) return std::nullopt;
  return TripForm{a->first * b->first, a->step * b->first};
}

std::optional<TripForm> TripForms::OfSelect(const Instruction& x) {
  const std::optional<bool> holds = Holds(*x.operand(0));
  return holds ? Of(*x.operand(*holds ? 1 : 2)) : std::nullopt;
}

std::optional<TripForm> TripForms::Lesser(const std::optional<TripForm>& a, const std::optional<TripForm>& b,
                                          bool more) const {
  if (!a || !b) return std::nullopt;
  const auto [least, most] = RangeOf(Sum(*a, *b, -1));
  if (most <= 0) return more ? b : a;
  return least >= 0 ? (more ? a : b) : std::nullopt;
}

std::optional<bool> TripForms::Holds(const Instruction& x) {
  if (!x.Is(Opcode::kCompare) || !IsInteger(*x.operand(0))) return std::nullopt;
  const std::optional<TripForm> a = Of(*x.operand(0)), b = Of(*x.operand(1));
  if (!a || !b) return std::nullopt;
  const auto [least, most] = RangeOf(Sum(*a, *b, -1));
  const auto decide = [](bool always, bool never) { return always || never ? std::optional(always) : std::nullopt; };
  switch (x.As<hlo::attr::Compare>().direction) {
    case ComparisonDirection::kLt: return decide(most < 0, least >= 0);
    case ComparisonDirection::kLe: return decide(most <= 0, least > 0);
    case ComparisonDirection::kGt: return decide(least > 0, most <= 0);
    case ComparisonDirection::kGe: return decide(least >= 0, most < 0);
    case ComparisonDirection::kEq: return decide(least == 0 && most == 0, least > 0 || most < 0);
    case ComparisonDirection::kNe: return decide(least > 0 || most < 0, least == 0 && most == 0);
  }
  return std::nullopt;
}

}  // namespace hlorun::passes
