// Work that is the same in every run, done once.
//
//   before: entry: pack(weights -> scratch)   multiply(x, scratch -> y)
//   after:  once:  pack(weights -> kept)      entry: multiply(x, kept -> y)
//
// or `of_constants` for `once`, where nothing but constants is read, directly or through other such launches.
// What is moved are launches of the entry that read nothing but constants, parameters that the caller says are constant
// (Plan::constant_parameters) and what other such launches made; whose results are small, or not much larger than what
// they read, and no results of the module (they may lie where one will); and whose readers are launches and copies of
// the entry. What they write gets places of its own behind the arena's others, which last from run to run.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// Of the entry's thunks, by number, that are launches of kernels which store whole values: the arguments that are
// stored to and not loaded.
using OverwrittenArguments = std::map<size_t, std::vector<bool>>;

void KeepConstantWork(Plan& plan, const OverwrittenArguments& overwritten);

}  // namespace hlorun::opencl
