// Binary arithmetic. Each struct is one op: an overload of Apply for each class of types that has it.
#include <cmath>
#include <limits>

#include "hlo/evaluator/lanes/lane_kernels.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

namespace hlorun::hlo {
namespace {

// Integers wrap: computed without sign in 64 bits and cut.
#define HLO_ARITHMETIC(Name, op)                                                   \
  struct Name {                                                                    \
    template <Integer T>                                                           \
    static T Apply(T a, T b) {                                                     \
      return static_cast<T>(static_cast<uint64_t>(a) op static_cast<uint64_t>(b)); \
    }                                                                              \
    template <Float T>                                                             \
    static T Apply(T a, T b) {                                                     \
      return a op b;                                                               \
    }
#define HLO_END \
  }             \
  ;

HLO_ARITHMETIC(Add, +)
static bool Apply(bool a, bool b) { return a || b; }
template <Complex T>
static T Apply(T a, T b) {
  return a + b;
}
HLO_END
HLO_ARITHMETIC(Subtract, -)
static bool Apply(bool a, bool b) { return a != b; }
template <Complex T>
static T Apply(T a, T b) {
  return a - b;
}
HLO_END
HLO_ARITHMETIC(Multiply, *)
static bool Apply(bool a, bool b) { return a && b; }
// The schoolbook formula: no recovery of infinities from NaN, which C's complex product attempts.
template <Complex T>
static T Apply(T a, T b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
HLO_END
#undef HLO_ARITHMETIC
#undef HLO_END

struct Divide {
  // By zero: all bits set. The least integer by -1: itself.
  template <Integer T>
  static T Apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
    }
    return static_cast<T>(a / b);
  }
  template <Float T>
  static T Apply(T a, T b) {
    return a / b;
  }
  template <Complex T>
  static T Apply(T a, T b) {
    return a / b;
  }
};
struct Remainder {
  // By zero: the dividend. The sign is the dividend's.
  template <Integer T>
  static T Apply(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return 0;
    }
    return static_cast<T>(a % b);
  }
  template <Float T>
  static T Apply(T a, T b) {
    return std::fmod(a, b);
  }
};

struct Power {
  // By squaring, wrapping. A negative exponent gives the truncated value: 0 unless the base is 1 or -1. As on XLA:CPU,
  // exponents are read as signed whatever the type, and no more than their lowest six bits count: 2^64 is 1.
  template <Integer T>
  static T Apply(T base, T exponent) {
    if (static_cast<std::make_signed_t<T>>(exponent) < 0) {
      if (base == 1) return 1;
      if (base == static_cast<T>(-1)) return exponent % 2 == 0 ? T{1} : static_cast<T>(-1);
      return 0;
    }
    uint64_t result = 1;
    auto square = static_cast<uint64_t>(base);
    for (auto e = static_cast<uint64_t>(exponent) & 63; e != 0; e >>= 1) {
      if ((e & 1) != 0) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
  template <Float T>
  static T Apply(T a, T b) {
    return std::pow(Flushed(a), b);  // of a denormal base, the C library would return noise
  }
  template <Complex T>
  static T Apply(T a, T b) {
    if (b == T(0)) return T(1);
    if (a == T(0)) return T(0);
    return std::pow(a, b);
  }
};
struct Atan2 {
  template <Float T>
  static T Apply(T a, T b) {
    return std::atan2(Flushed(a), Flushed(b));
  }
  // -i log((b + i a) / sqrt(a^2 + b^2))
  template <Complex T>
  static T Apply(T a, T b) {
    const T i(0, 1);
    return -i * std::log((b + i * a) / std::sqrt(a * a + b * b));
  }
};

#define HLO_BITWISE(Name, op)                                   \
  struct Name {                                                 \
    static bool Apply(bool a, bool b) { return (a op b) != 0; } \
    template <Integer T>                                        \
    static T Apply(T a, T b) {                                  \
      return static_cast<T>(a op b);                            \
    }                                                           \
  };
HLO_BITWISE(And, &)
HLO_BITWISE(Or, |)
HLO_BITWISE(Xor, ^)
#undef HLO_BITWISE

template <typename T, typename Op>
void BinaryLoop(const LaneCall& call) {
  const T* a = LaneOperand<T>(call, 0);
  const T* b = LaneOperand<T>(call, 1);
  T* result = static_cast<T*>(call.result);
  for (int64_t i = 0; i < call.count; ++i) result[i] = Op::Apply(a[i], b[i]);
}

template <typename Op>
LaneKernel FindBinary(ElementType type) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (requires(T x) { Op::Apply(x, x); }) {
      return &BinaryLoop<T, Op>;
    } else {
      return nullptr;
    }
  });
}

// Shifts take the amount without sign; one that is no less than the width shifts everything out.
enum class Shift { kLeft, kRightArithmetic, kRightLogical };

template <Shift kShift, typename T>
T ShiftBy(T value, uint64_t amount, int bits) {
  if constexpr (kShift == Shift::kRightArithmetic) {
    using Signed = std::make_signed_t<T>;
    // An unsigned value narrower than its storage: its own top bit is the sign.
    auto wide = static_cast<int64_t>(static_cast<Signed>(value));
    if constexpr (std::is_unsigned_v<T>) {
      if (bits < 64) wide = static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
    }
    return static_cast<T>(amount >= static_cast<uint64_t>(bits) ? (wide < 0 ? -1 : 0) : wide >> amount);
  } else {
    if (amount >= static_cast<uint64_t>(bits)) return 0;
    const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    const uint64_t pattern = static_cast<uint64_t>(value) & mask;
    return static_cast<T>(kShift == Shift::kLeft ? pattern << amount : pattern >> amount);
  }
}

template <Shift kShift>
LaneKernel FindShift(ElementType type) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (Integer<T>) {
      return [](const LaneCall& call) {
        const uint64_t mask = call.bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << call.bits) - 1;
        for (int64_t i = 0; i < call.count; ++i) {
          const uint64_t amount = static_cast<uint64_t>(LaneOperand<T>(call, 1)[i]) & mask;
          static_cast<T*>(call.result)[i] = ShiftBy<kShift>(LaneOperand<T>(call, 0)[i], amount, call.bits);
        }
      };
    } else {
      return nullptr;
    }
  });
}

struct Row {
  Opcode opcode;
  LaneKernel (*find)(ElementType);
};
constexpr Row kRows[] = {
    {Opcode::kAdd, FindBinary<Add>},
    {Opcode::kAnd, FindBinary<And>},
    {Opcode::kAtan2, FindBinary<Atan2>},
    {Opcode::kDivide, FindBinary<Divide>},
    {Opcode::kMaximum, FindBinary<Maximum>},
    {Opcode::kMinimum, FindBinary<Minimum>},
    {Opcode::kMultiply, FindBinary<Multiply>},
    {Opcode::kOr, FindBinary<Or>},
    {Opcode::kPower, FindBinary<Power>},
    {Opcode::kRemainder, FindBinary<Remainder>},
    {Opcode::kShiftLeft, FindShift<Shift::kLeft>},
    {Opcode::kShiftRightArithmetic, FindShift<Shift::kRightArithmetic>},
    {Opcode::kShiftRightLogical, FindShift<Shift::kRightLogical>},
    {Opcode::kSubtract, FindBinary<Subtract>},
    {Opcode::kXor, FindBinary<Xor>},
};

}  // namespace

LaneKernel FindBinaryKernel(Opcode opcode, ElementType type) {
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return row.find(type);
  }
  return nullptr;
}

}  // namespace hlorun::hlo
