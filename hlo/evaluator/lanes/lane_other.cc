// Elementwise ops whose operands and result differ in type, or that take attributes.
#include <bit>
#include <cmath>

#include "hlo/evaluator/lanes/lane_kernels.h"

#pragma GCC optimize("O3")

namespace hlorun::hlo {
namespace {

template <typename T>
void SelectLoop(const LaneCall& call) {
  const bool* predicate = LaneOperand<bool>(call, 0);
  const T* on_true = LaneOperand<T>(call, 1);
  const T* on_false = LaneOperand<T>(call, 2);
  T* result = static_cast<T*>(call.result);
  for (int64_t i = 0; i < call.count; ++i) result[i] = predicate[i] ? on_true[i] : on_false[i];
}

LaneKernel FindSelect(ElementType, ElementType result) {
  return VisitComputingType(result, []<typename T>() -> LaneKernel { return &SelectLoop<T>; });
}

// min(max(low, x), high); a NaN in any of the three wins.
template <typename T>
T Clamped(T low, T x, T high) {
  if constexpr (Float<T>) {
    if (std::isnan(x)) return x;
    if (std::isnan(low)) return low;
    if (std::isnan(high)) return high;
  }
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

LaneKernel FindClamp(ElementType, ElementType result) {
  return VisitComputingType(result, []<typename T>() -> LaneKernel {
    if constexpr (Complex<T>) {
      return nullptr;
    } else {
      return [](const LaneCall& call) {
        for (int64_t i = 0; i < call.count; ++i) {
          static_cast<T*>(call.result)[i] =
              Clamped(LaneOperand<T>(call, 0)[i], LaneOperand<T>(call, 1)[i], LaneOperand<T>(call, 2)[i]);
        }
      };
    }
  });
}

LaneKernel FindComplex(ElementType type, ElementType) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (Float<T>) {
      return [](const LaneCall& call) {
        for (int64_t i = 0; i < call.count; ++i) {
          static_cast<std::complex<T>*>(call.result)[i] = {LaneOperand<T>(call, 0)[i], LaneOperand<T>(call, 1)[i]};
        }
      };
    } else {
      return nullptr;
    }
  });
}

// Of a real operand: itself and 0.
template <bool kReal>
LaneKernel FindPart(ElementType type, ElementType) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (Complex<T>) {
      return [](const LaneCall& call) {
        using Real = typename T::value_type;
        for (int64_t i = 0; i < call.count; ++i) {
          const T x = LaneOperand<T>(call, 0)[i];
          static_cast<Real*>(call.result)[i] = kReal ? x.real() : x.imag();
        }
      };
    } else if constexpr (Float<T>) {
      return [](const LaneCall& call) {
        for (int64_t i = 0; i < call.count; ++i) {
          static_cast<T*>(call.result)[i] = kReal ? LaneOperand<T>(call, 0)[i] : T{0};
        }
      };
    } else {
      return nullptr;
    }
  });
}

LaneKernel FindIsFinite(ElementType type, ElementType) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (Float<T>) {
      return [](const LaneCall& call) {
        for (int64_t i = 0; i < call.count; ++i) {
          static_cast<bool*>(call.result)[i] = std::isfinite(LaneOperand<T>(call, 0)[i]);
        }
      };
    } else {
      return nullptr;
    }
  });
}

// Rounds to nearest even at `mantissa_bits`, then what the smaller exponent range cannot hold becomes infinity or a zero
// of the same sign: there are no denormals in the reduced format.
template <Float T>
T ReducedPrecision(T value, const attr::ReducePrecision& format) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissaBits = sizeof(T) == 4 ? 23 : 52;
  constexpr int kExponentBits = sizeof(T) == 4 ? 8 : 11;
  if (std::isnan(value)) return value;
  constexpr Bits kSign = Bits{1} << (kMantissaBits + kExponentBits);
  const Bits sign = std::bit_cast<Bits>(value) & kSign;
  Bits bits = std::bit_cast<Bits>(value) & ~kSign;
  const auto mantissa_bits = static_cast<int>(format.mantissa_bits);
  if (mantissa_bits < kMantissaBits) {
    const int dropped = kMantissaBits - mantissa_bits;
    const Bits last_kept = (bits >> dropped) & 1;
    bits += (Bits{1} << (dropped - 1)) - 1 + last_kept;
    bits &= ~((Bits{1} << dropped) - 1);
  }
  const auto exponent_bits = static_cast<int>(format.exponent_bits);
  if (exponent_bits < kExponentBits) {
    constexpr Bits kBias = (Bits{1} << (kExponentBits - 1)) - 1;
    const Bits reduced_bias = (Bits{1} << (exponent_bits - 1)) - 1;
    const Bits exponent = bits >> kMantissaBits;
    if (exponent > kBias + reduced_bias) bits = ((Bits{1} << kExponentBits) - 1) << kMantissaBits;
    if (exponent <= kBias - reduced_bias) bits = 0;
  }
  return std::bit_cast<T>(static_cast<Bits>(bits | sign));
}

LaneKernel FindReducePrecision(ElementType type, ElementType) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (Float<T>) {
      return [](const LaneCall& call) {
        const auto& format = call.instruction->As<attr::ReducePrecision>();
        for (int64_t i = 0; i < call.count; ++i) {
          static_cast<T*>(call.result)[i] = ReducedPrecision(LaneOperand<T>(call, 0)[i], format);
        }
      };
    } else {
      return nullptr;
    }
  });
}

struct Row {
  Opcode opcode;
  LaneKernel (*find)(ElementType, ElementType);
};
constexpr Row kRows[] = {
    {Opcode::kClamp, FindClamp},        {Opcode::kComplex, FindComplex},
    {Opcode::kImag, FindPart<false>},   {Opcode::kIsFinite, FindIsFinite},
    {Opcode::kReal, FindPart<true>},    {Opcode::kReducePrecision, FindReducePrecision},
    {Opcode::kSelect, FindSelect},
};

}  // namespace

LaneKernel FindOtherKernel(Opcode opcode, ElementType type, ElementType result) {
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return row.find(type, result);
  }
  return nullptr;
}

}  // namespace hlorun::hlo
