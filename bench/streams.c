// Plain kernels over f32 that go past the caches when they write: the roofs of bench/bandwidth.py, which compiles this with -O3 -march=native
// and calls each on a part of the arrays from a thread for each core. `count` is a multiple of 64; arrays are aligned to 64 bytes.
#include <stddef.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { kLanes = 16 };
typedef __m512 Vector;
static void Store(float* to, Vector x) { _mm512_stream_ps(to, x); }
#elif defined(__AVX__)
#include <immintrin.h>
enum { kLanes = 8 };
typedef __m256 Vector;
static void Store(float* to, Vector x) { _mm256_stream_ps(to, x); }
#else
enum { kLanes = 4 };
typedef float Vector __attribute__((vector_size(16)));
static void Store(float* to, Vector x) { *(Vector*)to = x; }
#endif

void stream_copy(const float* x, float* to, size_t count) {
  for (size_t i = 0; i < count; i += kLanes) Store(to + i, *(const Vector*)(x + i));
}

void stream_add(const float* x, const float* y, float* to, size_t count) {
  for (size_t i = 0; i < count; i += kLanes) Store(to + i, *(const Vector*)(x + i) + *(const Vector*)(y + i));
}

// Four sums: one would wait for its own additions.
void stream_sum(const float* x, float* to, size_t count) {
  Vector sums[4] = {{0}};
  for (size_t i = 0; i < count; i += 4 * kLanes)
    for (size_t j = 0; j < 4; ++j) sums[j] += *(const Vector*)(x + i + j * kLanes);
  *(volatile Vector*)to = sums[0] + sums[1] + sums[2] + sums[3];
}
