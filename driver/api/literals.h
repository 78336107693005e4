// Literals to a device and back. Thread-safe as Client and Array are.
#pragma once

#include <vector>

#include "hlo/literal.h"
#include "hlorun/hlorun.h"

namespace hlorun {

// Copies to the client's device, in order.
std::vector<Array> ToDevice(Client& client, const std::vector<hlo::Literal>& literals);

// Waits for the array; the literal has the default layout. Throws the Error of the run that makes it.
hlo::Literal ToLiteral(const Array& array);
std::vector<hlo::Literal> ToLiterals(const std::vector<Array>& arrays);

}  // namespace hlorun
