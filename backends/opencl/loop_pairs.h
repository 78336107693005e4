// Counted loops two trips at a time, where that saves copying what they carry:
//
//   before: 100 times: launch f(s -> t)  copy t -> s
//   after:   50 times: launch f(s -> t)  launch f(t -> s)
//
// A trip that reads its neighbours' old values cannot write the new ones in their place, and so writes beside them. The
// second trip of a pair reads and writes the two places the other way round. An odd trip follows behind the loop, with
// its copies.
#pragma once

#include <unordered_map>
#include <vector>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// What loops carry from trip to trip, by their body: the memory that must hold it when a trip begins.
using CarriedSlices = std::unordered_map<const Sequence*, std::vector<Slice>>;

// Of the plan's entry, loops of launches, copies and writes.
void PairTrips(Plan& plan, const CarriedSlices& carried);

}  // namespace hlorun::opencl
