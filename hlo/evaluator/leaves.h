// The arrays of a nested tuple in order, tokens left out, and back.
#pragma once

#include <vector>

#include "hlo/literal.h"

namespace hlorun::hlo {

std::vector<Shape> ArrayLeaves(const Shape& shape);
void AppendArrayLeaves(const Literal& literal, std::vector<Literal>& leaves);  // copies share their contents
// A value of `shape`; `leaves` are consumed.
Literal AssembleLeaves(const Shape& shape, std::vector<Literal>& leaves);

}  // namespace hlorun::hlo
