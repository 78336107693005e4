// Reducers of several arrays that give one of the two elements that they are given, by their order: argmax and argmin,
// and their likes.
#pragma once

#include "hlo/computation.h"

namespace hlorun::passes {

// Whether each result is one of the two that `reducer` is given, by comparisons of them alone: what is reduced once
// more with an initial value, or with some of its elements, stays as it is.
bool SelectsByOrder(const hlo::Computation& reducer);

}  // namespace hlorun::passes
