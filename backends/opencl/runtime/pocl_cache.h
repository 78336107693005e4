// PoCL's folder of compiled kernels: what processes that share it must agree on, and where it must be touched to keep
// PoCL from compiling what nobody runs.
#pragma once

#include <span>
#include <string>

namespace hlorun::opencl {

// $POCL_CACHE_DIR, or where PoCL puts it. A program's binary is made of files in it: while one process asks for it, no
// other process may compile that program there, whatever folder hlorun itself keeps binaries in (compile_lock.h).
std::string PoclCacheFolder();

// Before PoCL hands out a program's binary it compiles each kernel once more, for any local size: as much work as
// everything before (measured: 1.3 s of 2.7 s for 20 kernels). hlorun launches only variants that were warmed up, so
// that one never runs; this puts a link to the warmed-up variant where PoCL looks first. Symbols are the kernels' names
// in the program and hold a hash of their source, so no other program's files are touched. Files that are not where
// they are expected are left alone: PoCL then compiles as ever.
void LinkGenericVariants(std::span<const std::string> symbols);

}  // namespace hlorun::opencl
