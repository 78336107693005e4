// What the integers of a loop's body are in each of its trips.
//
//   i = s32[] get-tuple-element(p), index=0     (starts at 0, and is i + 1 behind the trip)
//   last = s32[] constant(7)
//   back = s32[] subtract(last, i)              7 - trip
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "hlo/instruction.h"

namespace hlorun::passes {

struct TripForm {
  int64_t first = 0, step = 0;  // first + step * trip, trips counted from 0
};

// Of a loop that is known to take `trips`, at least one. Outlives no change of the loop.
class TripForms {
 public:
  TripForms(const hlo::Instruction& loop, int64_t trips) : loop_(loop), trips_(trips) {}

  // nullopt: not known, or not of this form in all trips (of a select, say, the same side has to be taken in each).
  std::optional<TripForm> Of(const hlo::Instruction& x);

 private:
  struct Range {
    int64_t least, most;
  };
  std::optional<TripForm> Compute(const hlo::Instruction& x);
  std::optional<TripForm> OfCarry(const hlo::Instruction& x) const;
  std::optional<TripForm> OfProduct(const hlo::Instruction& x);
  std::optional<TripForm> OfSelect(const hlo::Instruction& x);
  // Whichever is less (or more) in all trips.
  std::optional<TripForm> Lesser(const std::optional<TripForm>& a, const std::optional<TripForm>& b, bool more) const;
  // Whether the comparison `x` holds; nullopt: not known, or not the same in all trips.
  std::optional<bool> Holds(const hlo::Instruction& x);
  Range RangeOf(const TripForm& form) const;

  const hlo::Instruction& loop_;
  int64_t trips_;
  std::unordered_map<const hlo::Instruction*, std::optional<TripForm>> known_;
};

}  // namespace hlorun::passes
