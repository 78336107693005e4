#include "hlo/evaluator/product.h"

#include <complex>
#include <vector>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/number_types.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

// The choice among clones is made before a thread sanitizer has started.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define HLO_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HLO_VECTOR_CLONES
#endif

namespace hlorun::hlo {
namespace {

// sum[j] += a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]: four rows at once, so that the sums are read and written less
// often.
HLO_VECTOR_CLONES void AddFourRows(double* sum, const float* a, const float* b, int64_t n) {
  const double a0 = static_cast<double>(a[0]);
  const double a1 = static_cast<double>(a[1]);
  const double a2 = static_cast<double>(a[2]);
  const double a3 = static_cast<double>(a[3]);
  for (int64_t j = 0; j < n; ++j) {
    sum[j] += (a0 * static_cast<double>(b[j]) + a1 * static_cast<double>(b[n + j])) +
              (a2 * static_cast<double>(b[2 * n + j]) + a3 * static_cast<double>(b[3 * n + j]));
  }
}

void FloatProduct(const float* a, const float* b, float* out, int64_t m, int64_t n, int64_t k) {
  std::vector<double> sum(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0);
    int64_t l = 0;
    for (; l + 4 <= k; l += 4) AddFourRows(sum.data(), a + i * k + l, b + l * n, n);
    for (; l < k; ++l) {
      const auto factor = static_cast<double>(a[i * k + l]);
      for (int64_t j = 0; j < n; ++j) sum[static_cast<size_t>(j)] += factor * static_cast<double>(b[l * n + j]);
    }
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = static_cast<float>(sum[static_cast<size_t>(j)]);
  }
}

template <typename T>
T MultipliedAndAdded(T sum, T a, T b) {
  if constexpr (std::same_as<T, bool>) {
    return sum || (a && b);
  } else if constexpr (Integer<T>) {
    return static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (Complex<T>) {
    return {sum.real() + (a.real() * b.real() - a.imag() * b.imag()),
            sum.imag() + (a.real() * b.imag() + a.imag() * b.real())};
  } else {
    return sum + a * b;
  }
}

template <typename T>
void PlainProduct(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t k) {
  std::fill(out, out + m * n, T{});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      const T factor = a[i * k + l];
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = MultipliedAndAdded(out[i * n + j], factor, b[l * n + j]);
    }
  }
}

template <typename T>
T Multiplied(T a, T b) {
  if constexpr (std::same_as<T, bool>) {
    return a && b;
  } else if constexpr (Complex<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (Float<T>) {
    return a * b;
  } else {
    return MultipliedAndAdded(T{}, a, b);
  }
}

// Calls `run` with the C++ type of a ProductType.
template <typename Run>
void WithProductType(ElementType type, Run run) {
  VisitType(type, [&]<typename T, ElementType kType>() {
    if constexpr (std::is_arithmetic_v<T> || Complex<T>) {
      run.template operator()<T>();
    } else {
      Fail(ErrorCode::kInternal, "no product in type {}", ElementTypeName(kType));
    }
  });
}

}  // namespace

ElementType ProductType(ElementType result) { return ComputingType(result); }

void MatrixProduct(ElementType type, const void* a, const void* b, void* out, int64_t m, int64_t n, int64_t k) {
  if (type == ElementType::kF32) {
    return FloatProduct(static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(out), m, n, k);
  }
  WithProductType(type, [&]<typename T>() {
    PlainProduct(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), m, n, k);
  });
}

void OuterProduct(ElementType type, const void* a, const void* b, void* out, int64_t m, int64_t n) {
  WithProductType(type, [&]<typename T>() {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        static_cast<T*>(out)[i * n + j] = Multiplied(static_cast<const T*>(a)[i], static_cast<const T*>(b)[j]);
      }
    }
  });
}

}  // namespace hlorun::hlo
