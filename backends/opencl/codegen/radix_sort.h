// Sorts by one key, in time linear in the length: stable, least significant digit first.
//
// An element travels as a word: its key above, and below either the element itself (one operand, at most 32 bits) or
// its position, by which the operands are gathered at the end. Rows that fit the cache are sorted by one work-item
// each, in private memory; short ones by insertion. Long rows are shared: each pass counts digits part by part, then
// every part knows where its elements go.
#pragma once

#include <optional>

#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {

// Nullopt where the comparator, a type or the device class asks for the general sort.
std::optional<Launches> EmitRadixSort(const EmitRequest& request);
// As SortScratchBytes; nullopt where EmitRadixSort refuses.
std::optional<int64_t> RadixSortScratchBytes(const hlo::Instruction& sort, const DeviceSpec& device);

}  // namespace hlorun::opencl
