// Reducers of two arrays that give one of the two elements of each that they are given, by their order: argmax and
// argmin, and their likes.
#pragma once

#include "hlo/computation.h"

namespace hlorun::passes {

// Whether `reducer` selects so, by comparisons alone, is associative, NaNs and ties included, and may be given its
// initial value, or a run of neighbouring elements, once more behind others that were: groups of neighbours may then be
// reduced by themselves, from that value, and joined in their order. Comparisons tell no more of three elements than
// which of them are less, the same or NaN, so all cases are tried.
bool SelectsByOrder(const hlo::Computation& reducer);

}  // namespace hlorun::passes
