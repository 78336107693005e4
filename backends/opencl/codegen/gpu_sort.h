// Sorts on GPU class: a stable merge sort by any comparator, along any dimension.
//
// A group sorts a block in local memory: each item a few elements by a network of neighbours, then runs are merged in
// pairs, each item making as many elements of the merged run as it has; where they come from is found by a binary
// search ("merge path": Odeh, Green, Mwassi, Shmueli, Birk: Merge Path - Parallel Merging Made Simple, 2012). Rows that
// fit a block are done then, several short ones a group. Longer ones are merged by further launches, each twice the run
// of the one before: a group makes a block of the merged run.
//
// Keys, one or several, are compared as words (sort_word.h, sort_key_words.h), whatever the comparator computes of them.
//
// A comparator that orders nothing (several keys that NaNs have no place in) gives elements in some order, of which
// some may be there twice and others not at all; nothing outside the arrays is touched. Plain `less` of floats with
// NaNs among them is none of these (SortKey::Nan).
#pragma once

#include <optional>

#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {

// Nullopt where the device is none of that class, or its groups or local memory are too small.
std::optional<Launches> EmitGpuSort(const EmitRequest& request);
// As SortScratchBytes; nullopt where EmitGpuSort refuses.
std::optional<int64_t> GpuSortScratchBytes(const hlo::Instruction& sort, const DeviceSpec& device);

}  // namespace hlorun::opencl
