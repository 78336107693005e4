// Elementwise ops whose operands and result differ in type, or that take attributes.
#include <bit>
#include <cmath>

#include "hlo/evaluator/lanes/lane_kernels.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

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

LaneKernel FindClamp(ElementType, ElementType result) {
  return VisitComputingType(result, []<typename T>() -> LaneKernel {
    return [](const LaneCall& call) {
      for (int64_t i = 0; i < call.count; ++i) {
        const T raised = Maximum::Apply(LaneOperand<T>(call, 0)[i], LaneOperand<T>(call, 1)[i]),
                high = LaneOperand<T>(call, 2)[i];
        // Which of two equal numbers it is shows where they are complex.
        static_cast<T*>(call.result)[i] = Complex<T> ? Minimum::Apply(raised, high) : Minimum::Apply(high, raised);
      }
    };
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

// On the bit pattern without its sign: rounds to nearest even at `mantissa_bits`, then what the smaller exponent range
// cannot hold becomes infinity or zero: there are no denormals in the reduced format.
template <typename Bits, int kExponentBits, int kMantissaBits>
Bits ReducedPrecision(Bits pattern, const attr::ReducePrecision& format) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (kMantissaBits + kExponentBits));
  constexpr auto kInfinity = static_cast<Bits>(((Bits{1} << kExponentBits) - 1) << kMantissaBits);
  auto bits = static_cast<Bits>(pattern & static_cast<Bits>(~kSign));
  if (bits > kInfinity) return pattern;  // NaN
  if (format.mantissa_bits < kMantissaBits) {
    const auto dropped = static_cast<int>(kMantissaBits - format.mantissa_bits);
    const int last_kept = (bits >> dropped) & 1;
    bits = static_cast<Bits>(bits + (Bits{1} << (dropped - 1)) - 1 + static_cast<Bits>(last_kept));
    bits = static_cast<Bits>(bits >> dropped << dropped);
  }
  if (format.exponent_bits < kExponentBits) {
    constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
    const int reduced_bias = (1 << (format.exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int>(bits >> kMantissaBits);
    if (exponent > kBias + reduced_bias) bits = kInfinity;
    if (exponent <= kBias - reduced_bias) bits = 0;
  }
  return static_cast<Bits>(bits | (pattern & kSign));
}

template <typename Bits, int kExponentBits, int kMantissaBits>
void ReducePrecisionLoop(const LaneCall& call) {
  const auto& format = call.instruction->As<attr::ReducePrecision>();
  for (int64_t i = 0; i < call.count; ++i) {
    static_cast<Bits*>(call.result)[i] =
        ReducedPrecision<Bits, kExponentBits, kMantissaBits>(LaneOperand<Bits>(call, 0)[i], format);
  }
}

LaneKernel FindReducePrecision(ElementType type, ElementType) {
  switch (type) {
    case ElementType::kF16: return &ReducePrecisionLoop<uint16_t, 5, 10>;
    case ElementType::kF32: return &ReducePrecisionLoop<uint32_t, 8, 23>;
    case ElementType::kF64: return &ReducePrecisionLoop<uint64_t, 11, 52>;
    default: return nullptr;
  }
}

struct Row {
  Opcode opcode;
  LaneKernel (*find)(ElementType, ElementType);
};
constexpr Row kRows[] = {
    {Opcode::kClamp, FindClamp},       {Opcode::kComplex, FindComplex}, {Opcode::kImag, FindPart<false>},
    {Opcode::kIsFinite, FindIsFinite}, {Opcode::kReal, FindPart<true>}, {Opcode::kReducePrecision, FindReducePrecision},
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
