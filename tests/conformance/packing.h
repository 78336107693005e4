// Many cases in one module: a kernel costs a device tens of milliseconds to compile, a module of its own far more.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {

// The entry calls each case's entry on its own parameters, and returns a tuple of the cases' results.
std::unique_ptr<hlo::Module> Packed(std::span<const Case> cases);

// The cases' inputs in the order of the packed module's parameters.
std::vector<hlo::Literal> PackedInputs(std::span<const Case> cases);

// "" when `actual` is as near to `expected` as the case asks; else one line about the first element that is not,
// and how many are not.
std::string Difference(const Case& c, const hlo::Literal& actual, const hlo::Literal& expected);

}  // namespace hlorun::conformance
