// Prints where it finds itself as a companion of its own: beside the code that asks.
#include <iostream>

#include "backends/opencl/runtime/companion.h"

int main() { std::cout << hlorun::opencl::CompanionProgram("companion_main", "HLORUN_NO_SUCH_VARIABLE") << "\n"; }
