// The constants of compiled kernels, brought into memory.
#pragma once

#include <cstddef>

namespace hlorun::opencl {

// Reads a byte of each read-only page of the shared libraries that were loaded into this process since the last call,
// large ones aside; returns how many pages. PoCL loads each kernel as such a library when it first runs. A load whose
// lanes are masked off (a select of a constant, none of which is taken) must not fault, and where its page was never
// touched the processor finds that out anew each time, in hundreds of cycles: a kernel of 50 us took 500. Thread-safe.
size_t TouchLoadedConstants();

}  // namespace hlorun::opencl
