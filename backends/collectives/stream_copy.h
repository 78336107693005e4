// Copies of large blocks between ranks.
#pragma once

#include <cstddef>

namespace hlorun::collectives {

// Of the last level of this machine's caches.
size_t SharedCacheBytes();

// memcpy for blocks of many pages: does not read the lines that it overwrites, where the processor can do without.
void BulkCopy(std::byte* to, const std::byte* from, size_t bytes);
// memcpy whose target does not enter the caches. FinishStreams() before another thread is told of it.
void StreamCopy(std::byte* to, const std::byte* from, size_t bytes);
void FinishStreams();

}  // namespace hlorun::collectives
