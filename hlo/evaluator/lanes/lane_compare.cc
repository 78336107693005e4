// Comparisons, by value or by IEEE total order.
#include <bit>

#include "hlo/evaluator/lanes/lane_kernels.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

namespace hlorun::hlo {
namespace {

using Direction = ComparisonDirection;

// An integer that orders as the total order does: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
template <Float T>
auto TotalOrderKey(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const auto bits = std::bit_cast<Bits>(x);
  return bits < 0 ? static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max()) : bits;
}

// Complex numbers are ordered by their real parts, then by their imaginary parts, as on XLA:CPU.
template <Direction kDirection, typename T>
bool Compares(T a, T b) {
  if constexpr (kDirection == Direction::kEq) return a == b;
  if constexpr (kDirection == Direction::kNe) return a != b;
  if constexpr (Complex<T>) {
    const bool same = a.real() == b.real();
    if constexpr (kDirection == Direction::kLt) return a.real() < b.real() || (same && a.imag() < b.imag());
    if constexpr (kDirection == Direction::kLe) return a.real() < b.real() || (same && !(a.imag() > b.imag()));
    if constexpr (kDirection == Direction::kGt) return a.real() > b.real() || (same && a.imag() > b.imag());
    if constexpr (kDirection == Direction::kGe) return a.real() > b.real() || (same && !(a.imag() < b.imag()));
  } else {
    if constexpr (kDirection == Direction::kLt) return a < b;
    if constexpr (kDirection == Direction::kLe) return a <= b;
    if constexpr (kDirection == Direction::kGt) return a > b;
    if constexpr (kDirection == Direction::kGe) return a >= b;
  }
  return false;
}

template <Direction kDirection, bool kTotalOrder, typename T>
void CompareLoop(const LaneCall& call) {
  const T* a = LaneOperand<T>(call, 0);
  const T* b = LaneOperand<T>(call, 1);
  auto* result = static_cast<bool*>(call.result);
  for (int64_t i = 0; i < call.count; ++i) {
    if constexpr (kTotalOrder && Float<T>) {
      result[i] = Compares<kDirection>(TotalOrderKey(a[i]), TotalOrderKey(b[i]));
    } else {
      result[i] = Compares<kDirection>(a[i], b[i]);
    }
  }
}

template <Direction kDirection>
LaneKernel FindFor(bool total_order, ElementType type) {
  return VisitComputingType(type, [total_order]<typename T>() -> LaneKernel {
    if constexpr (Float<T>) {
      return total_order ? &CompareLoop<kDirection, true, T> : &CompareLoop<kDirection, false, T>;
    } else {
      return &CompareLoop<kDirection, false, T>;
    }
  });
}

}  // namespace

LaneKernel FindCompareKernel(ComparisonDirection direction, bool total_order, ElementType type) {
  using Find = LaneKernel (*)(bool, ElementType);
  constexpr Find kFind[] = {FindFor<Direction::kEq>, FindFor<Direction::kNe>, FindFor<Direction::kLt>,
                            FindFor<Direction::kLe>, FindFor<Direction::kGt>, FindFor<Direction::kGe>};
  return kFind[static_cast<size_t>(direction)](total_order, type);
}

}  // namespace hlorun::hlo
