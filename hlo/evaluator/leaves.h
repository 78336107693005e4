// The leaves of nested tuples in flattened order, and back.
#pragma once

#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"

namespace hlorun::hlo {

// Arrays and tokens, as FlattenShape has them.
std::vector<Literal> FlattenLiteral(const Literal& literal);
// One literal a parameter of the entry computation, of the leaves of them all.
std::vector<Literal> PackArguments(const Module& module, const std::vector<Literal>& leaves);

// Without the tokens.
std::vector<Shape> ArrayLeaves(const Shape& shape);
std::vector<Literal> ArrayLeaves(const Literal& literal);  // copies share their contents
// A value of `shape`; `leaves` are consumed.
Literal AssembleLeaves(const Shape& shape, std::vector<Literal>& leaves);

}  // namespace hlorun::hlo
