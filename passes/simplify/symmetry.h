// Matrices that equal their transposes, as far as their ops tell.
#pragma once

#include "hlo/instruction.h"

namespace hlorun::passes {

// Whether exchanging the last two dimensions of `x` changes nothing: products of a matrix by its transpose and of a
// symmetric one by itself, iota_0 == iota_1, |x_i|^2 + |x_j|^2, and what elementwise ops make of such. Batches of them,
// too. Rounding aside: a kernel may add a product's terms in another order on either side. False when in doubt.
bool IsSymmetric(const hlo::Instruction& x);

}  // namespace hlorun::passes
