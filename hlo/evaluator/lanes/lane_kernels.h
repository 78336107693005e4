// Elementwise arithmetic on plain arrays ("lanes"): one function for each opcode and type, found once and called on
// many elements, so that neither arrays nor scalar reducers and comparators pay for dispatch at each element.
//
// Kernels exist for the types that the host computes in: pred, integers of 8 to 64 bits, f32, f64, c64, c128. Narrower
// floats are widened to f32 around the kernel and rounded after it; integers narrower than a byte are computed in 8
// bits and wrapped (LaneOp, lane_op.h).
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "hlo/instruction.h"

namespace hlorun::hlo {

struct LaneCall {
  const Instruction* instruction = nullptr;  // for attributes
  const void* operands[3] = {};
  void* result = nullptr;
  int64_t count = 0;
  int bits = 0;  // width of the first operand's type as declared, where it is narrower than the type computed in
};
using LaneKernel = void (*)(const LaneCall&);

// Each returns null when the opcode has no meaning for the type. `type` is a computing type.
LaneKernel FindUnaryKernel(Opcode opcode, ElementType type);
LaneKernel FindBinaryKernel(Opcode opcode, ElementType type);
LaneKernel FindCompareKernel(ComparisonDirection direction, bool total_order, ElementType type);
LaneKernel FindConvertKernel(ElementType from, ElementType to);
// select, clamp, complex, real, imag, is-finite, reduce-precision.
LaneKernel FindOtherKernel(Opcode opcode, ElementType type, ElementType result);

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <typename T>
concept Float = std::floating_point<T>;
template <typename T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

// VisitType over computing types only; null for the others.
template <typename Visitor>
LaneKernel VisitComputingType(ElementType type, Visitor&& visit) {
  switch (type) {
    case ElementType::kPred: return visit.template operator()<bool>();
    case ElementType::kS8: return visit.template operator()<int8_t>();
    case ElementType::kS16: return visit.template operator()<int16_t>();
    case ElementType::kS32: return visit.template operator()<int32_t>();
    case ElementType::kS64: return visit.template operator()<int64_t>();
    case ElementType::kU8: return visit.template operator()<uint8_t>();
    case ElementType::kU16: return visit.template operator()<uint16_t>();
    case ElementType::kU32: return visit.template operator()<uint32_t>();
    case ElementType::kU64: return visit.template operator()<uint64_t>();
    case ElementType::kF32: return visit.template operator()<float>();
    case ElementType::kF64: return visit.template operator()<double>();
    case ElementType::kC64: return visit.template operator()<std::complex<float>>();
    case ElementType::kC128: return visit.template operator()<std::complex<double>>();
    default: return nullptr;
  }
}

// Under the hardware's denormals-are-zero a denormal compares equal to zero; the sign stays.
template <Float T>
T Flushed(T x) {
  return x == 0 ? std::copysign(T{0}, x) : x;
}

// NaN wins, and +0 is greater than -0.
struct Maximum {
  template <Integer T>
  static T Apply(T a, T b) {
    return a > b ? a : b;
  }
  static bool Apply(bool a, bool b) { return a || b; }
  template <Float T>
  static T Apply(T a, T b) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    return Flushed(a > b || (a == b && std::signbit(b)) ? a : b);
  }
  // By the real parts alone, as on XLA:CPU.
  template <Complex T>
  static T Apply(T a, T b) {
    return a.real() >= b.real() ? a : b;
  }
};
struct Minimum {
  template <Integer T>
  static T Apply(T a, T b) {
    return a < b ? a : b;
  }
  static bool Apply(bool a, bool b) { return a && b; }
  template <Float T>
  static T Apply(T a, T b) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    return Flushed(a < b || (a == b && std::signbit(a)) ? a : b);
  }
  template <Complex T>
  static T Apply(T a, T b) {
    return a.real() <= b.real() ? a : b;
  }
};

template <typename T>
const T* LaneOperand(const LaneCall& call, int i) {
  return static_cast<const T*>(call.operands[i]);
}

}  // namespace hlorun::hlo
