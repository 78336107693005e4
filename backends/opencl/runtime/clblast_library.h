// CLBlast as a library that is loaded when something first asks for it: hlorun neither links nor needs it otherwise.
#pragma once

#include <string>

#include "hlo/element_type.h"

namespace hlorun::opencl {

// Of its C interface, or by a mangled name of its C++ interface. Null where the library has no such function. Throws
// kNotFound, naming the package, where the library cannot be loaded. Thread-safe.
void* FindClblastSymbol(const std::string& name);

// The same, throwing kNotFound where there is no such function either.
void* ClblastSymbol(const std::string& name);

// CLBlast's number of a type that it multiplies (its `Precision`); 0 for others.
int ClblastPrecision(hlo::ElementType type);

}  // namespace hlorun::opencl
