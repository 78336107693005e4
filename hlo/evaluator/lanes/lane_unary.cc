// Unary arithmetic. Each struct is one op: an overload of Apply for each class of types that has it.
#include <bit>
#include <cmath>
#include <limits>

#include "hlo/evaluator/lanes/lane_kernels.h"

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

namespace hlorun::hlo {
namespace {

struct Abs {
  static float Apply(float x) { return std::fabs(x); }
  static double Apply(double x) { return std::fabs(x); }
  template <Complex T>
  static typename T::value_type Apply(T x) {
    return std::hypot(x.real(), x.imag());
  }
  // The most negative integer is its own absolute value.
  template <Integer T>
  static T Apply(T x) {
    return x < 0 ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
  }
};
struct Negate {
  template <Integer T>
  static T Apply(T x) {
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  }
  template <Float T>
  static T Apply(T x) {
    return -x;
  }
  template <Complex T>
  static T Apply(T x) {
    return -x;
  }
};
struct Not {
  static bool Apply(bool x) { return !x; }
  template <Integer T>
  static T Apply(T x) {
    return static_cast<T>(~x);
  }
};
struct Sign {
  template <Integer T>
  static T Apply(T x) {
    return static_cast<T>(x > 0 ? 1 : x < 0 ? -1 : 0);
  }
  template <Float T>
  static T Apply(T x) {
    return std::isnan(x) ? x : x == 0 ? std::copysign(T{0}, x) : std::copysign(T{1}, x);
  }
  template <Complex T>
  static T Apply(T x) {
    const typename T::value_type magnitude = std::abs(x);
    return magnitude == 0 ? T(0) : x / magnitude;
  }
};

// An op that the standard library has under one name for floats and complex numbers.
#define HLO_MATH(Name, expression) \
  struct Name {                    \
    template <Float T>             \
    static T Apply(T x) {          \
      return expression;           \
    }                              \
    template <Complex T>           \
    static T Apply(T x) {          \
      return expression;           \
    }                              \
  };
HLO_MATH(Acos, std::acos(x))
HLO_MATH(Acosh, std::acosh(x))
HLO_MATH(Asin, std::asin(x))
HLO_MATH(Asinh, std::asinh(x))
HLO_MATH(Atanh, std::atanh(x))
HLO_MATH(Cos, std::cos(x))
HLO_MATH(Cosh, std::cosh(x))
HLO_MATH(Exp, std::exp(x))
HLO_MATH(Logistic, T(1) / (T(1) + std::exp(-x)))
HLO_MATH(Rsqrt, T(1) / std::sqrt(x))
HLO_MATH(Sin, std::sin(x))
HLO_MATH(Sinh, std::sinh(x))
HLO_MATH(Sqrt, std::sqrt(x))
HLO_MATH(Tan, std::tan(x))
#undef HLO_MATH

// An op on real floats only.
#define HLO_REAL_MATH(Name, expression) \
  struct Name {                         \
    template <Float T>                  \
    static T Apply(T x) {               \
      return expression;                \
    }                                   \
  };
HLO_REAL_MATH(Cbrt, std::cbrt(Flushed(x)))  // of a denormal, the C library would return noise
HLO_REAL_MATH(Ceil, std::ceil(x))
HLO_REAL_MATH(Erf, std::erf(x))
HLO_REAL_MATH(Floor, std::floor(x))
HLO_REAL_MATH(RoundAwayFromZero, std::round(x))
HLO_REAL_MATH(RoundToEven, std::nearbyint(x))
#undef HLO_REAL_MATH

struct Log {
  // A denormal is zero here too: the C library would look at its bits.
  template <Float T>
  static T Apply(T x) {
    return std::log(Flushed(x));
  }
  template <Complex T>
  static T Apply(T x) {
    return std::log(x);
  }
};
struct Tanh {
  // XLA:CPU returns tiny values of f32 as they are, denormals included.
  template <Float T>
  static T Apply(T x) {
    return sizeof(T) == 4 && x == 0 ? x : std::tanh(x);
  }
  template <Complex T>
  static T Apply(T x) {
    return std::tanh(x);
  }
};
struct Expm1 {
  // Tiny values are returned as they are, denormals included.
  template <Float T>
  static T Apply(T x) {
    return x == 0 ? x : std::expm1(x);
  }
  // exp(a + bi) - 1 = (expm1(a) cos b - 2 sin^2(b / 2)) + exp(a) sin(b) i, without cancellation near 0.
  template <Complex T>
  static T Apply(T x) {
    using Real = typename T::value_type;
    const Real half_sine = std::sin(x.imag() / 2);
    return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half_sine * half_sine, std::exp(x).imag()};
  }
};
struct Log1p {
  template <Float T>
  static T Apply(T x) {
    return std::log1p(Flushed(x));
  }
  // |1 + x|^2 - 1 = a (2 + a) + b^2, without cancellation near 0.
  template <Complex T>
  static T Apply(T x) {
    using Real = typename T::value_type;
    const Real a = x.real();
    const Real b = x.imag();
    const Real real = std::fabs(a) < Real(0.5) && std::fabs(b) < Real(0.5) ? std::log1p(a * (2 + a) + b * b) / 2
                                                                           : std::log(std::hypot(1 + a, b));
    return {real, std::atan2(b, 1 + a)};
  }
};

template <typename T, typename Op>
void UnaryLoop(const LaneCall& call) {
  const T* x = LaneOperand<T>(call, 0);
  auto* result = static_cast<decltype(Op::Apply(T{}))*>(call.result);
  for (int64_t i = 0; i < call.count; ++i) result[i] = Op::Apply(x[i]);
}

template <typename Op>
LaneKernel FindUnary(ElementType type) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (requires(T x) { Op::Apply(x); }) {
      return &UnaryLoop<T, Op>;
    } else {
      return nullptr;
    }
  });
}

// Leading zeros are counted in the declared width, s4 having four bits. Ones of s4 are counted in the byte that stores
// it, where the sign is extended, but of s2 in its own two bits: as XLA:CPU does.
template <bool kLeadingZeros>
LaneKernel FindBitCount(ElementType type) {
  return VisitComputingType(type, []<typename T>() -> LaneKernel {
    if constexpr (Integer<T>) {
      return [](const LaneCall& call) {
        const uint64_t mask = call.bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << call.bits) - 1;
        for (int64_t i = 0; i < call.count; ++i) {
          auto pattern = static_cast<std::make_unsigned_t<T>>(LaneOperand<T>(call, 0)[i]);
          if (call.bits == 2) pattern = static_cast<decltype(pattern)>(pattern & mask);
          static_cast<T*>(call.result)[i] = static_cast<T>(
              kLeadingZeros ? std::countl_zero(pattern & mask) - (64 - call.bits) : std::popcount(pattern));
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
    {Opcode::kAbs, FindUnary<Abs>},
    {Opcode::kAcos, FindUnary<Acos>},
    {Opcode::kAcosh, FindUnary<Acosh>},
    {Opcode::kAsin, FindUnary<Asin>},
    {Opcode::kAsinh, FindUnary<Asinh>},
    {Opcode::kAtanh, FindUnary<Atanh>},
    {Opcode::kCbrt, FindUnary<Cbrt>},
    {Opcode::kCeil, FindUnary<Ceil>},
    {Opcode::kClz, FindBitCount<true>},
    {Opcode::kCos, FindUnary<Cos>},
    {Opcode::kCosh, FindUnary<Cosh>},
    {Opcode::kErf, FindUnary<Erf>},
    {Opcode::kExp, FindUnary<Exp>},
    {Opcode::kExpm1, FindUnary<Expm1>},
    {Opcode::kFloor, FindUnary<Floor>},
    {Opcode::kLog, FindUnary<Log>},
    {Opcode::kLog1p, FindUnary<Log1p>},
    {Opcode::kLogistic, FindUnary<Logistic>},
    {Opcode::kNegate, FindUnary<Negate>},
    {Opcode::kNot, FindUnary<Not>},
    {Opcode::kPopulationCount, FindBitCount<false>},
    {Opcode::kRoundNearestAfz, FindUnary<RoundAwayFromZero>},
    {Opcode::kRoundNearestEven, FindUnary<RoundToEven>},
    {Opcode::kRsqrt, FindUnary<Rsqrt>},
    {Opcode::kSign, FindUnary<Sign>},
    {Opcode::kSin, FindUnary<Sin>},
    {Opcode::kSinh, FindUnary<Sinh>},
    {Opcode::kSqrt, FindUnary<Sqrt>},
    {Opcode::kTan, FindUnary<Tan>},
    {Opcode::kTanh, FindUnary<Tanh>},
};

}  // namespace

LaneKernel FindUnaryKernel(Opcode opcode, ElementType type) {
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return row.find(type);
  }
  return nullptr;
}

}  // namespace hlorun::hlo
