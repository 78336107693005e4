#include "backends/collectives/stream_copy.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hlorun::collectives {

size_t SharedCacheBytes() {
  static const size_t bytes = [] {
    constexpr long kUsual = 16 << 20;
    const long known = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return static_cast<size_t>(known > 0 ? known : kUsual);
  }();
  return bytes;
}

#if defined(__x86_64__)

namespace {

bool HasFastStrings() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kErms = 1U << 9;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kErms) != 0;
}

}  // namespace

void BulkCopy(std::byte* to, const std::byte* from, size_t bytes) {
  static const bool fast_strings = HasFastStrings();
  if (!fast_strings) {
    std::memcpy(to, from, bytes);
    return;
  }
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

#else

void BulkCopy(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }

#endif

#if defined(__SSE2__)

void StreamCopy(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                  d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to, from, bytes);
}

void FinishStreams() { _mm_sfence(); }

#else

void StreamCopy(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }
void FinishStreams() {}

#endif

}  // namespace hlorun::collectives
