// docs/ops.md: which op runs on which type and where, each entry backed by a conformance case.
#pragma once

#include <string>

namespace hlorun::conformance {

std::string OpTable();

}  // namespace hlorun::conformance
