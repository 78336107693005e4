// Conversion between computing types: floats to integers truncate and saturate, NaN becomes 0; integers wrap; anything
// to pred is "not zero"; complex to real drops the imaginary part.
#include <cmath>
#include <limits>

#include "hlo/evaluator/lanes/lane_kernels.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

namespace hlorun::hlo {
namespace {

template <typename To, typename From>
To ConvertValue(From x) {
  if constexpr (Complex<From>) {
    if constexpr (Complex<To>) {
      using Real = typename To::value_type;
      return To(static_cast<Real>(x.real()), static_cast<Real>(x.imag()));
    } else {
      return ConvertValue<To>(x.real());
    }
  } else if constexpr (Complex<To>) {
    return To(static_cast<typename To::value_type>(x), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (Float<From> && Integer<To>) {
    // 2^(value bits), exact in any float: the first value that is too large.
    const From limit = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (std::isnan(x)) return 0;
    if (x >= limit) return std::numeric_limits<To>::max();
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void ConvertLoop(const LaneCall& call) {
  const From* x = LaneOperand<From>(call, 0);
  To* result = static_cast<To*>(call.result);
  for (int64_t i = 0; i < call.count; ++i) result[i] = ConvertValue<To>(x[i]);
}

}  // namespace

LaneKernel FindConvertKernel(ElementType from, ElementType to) {
  return VisitComputingType(from, [to]<typename From>() -> LaneKernel {
    return VisitComputingType(to, []<typename To>() -> LaneKernel { return &ConvertLoop<From, To>; });
  });
}

}  // namespace hlorun::hlo
