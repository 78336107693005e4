// Host number types for the element types that C++ lacks, and the mapping from ElementType to a C++ type.
//
// half and bfloat16 are Eigen's. The narrow floats are one table of formats: their values convert through float
// exactly, and back with round-to-nearest-even.
#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstdint>

#include "hlo/element_type.h"
#include "hlo/error.h"

namespace hlorun::hlo {

using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;

// A float of at most 8 bits, described as ml_dtypes (github.com/jax-ml/ml_dtypes) names them.
struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;
  bool is_fnuz;      // no infinities, no negative zero, NaN is 0x80
  bool has_nan;      // f4e2m1fn has none
  bool is_unsigned;  // f8e8m0fnu: exponent only
};

// Format of a narrow floating type; kInternal for others.
const NarrowFormat& NarrowFormatOf(ElementType type);
float NarrowToFloat(ElementType type, uint8_t bits);
uint8_t FloatToNarrow(ElementType type, float value);

// A narrow float as a C++ value type, so that templates over element types treat it like float.
template <ElementType kType>
struct NarrowFloat {
  uint8_t bits = 0;
  NarrowFloat() = default;
  explicit NarrowFloat(float value) : bits(FloatToNarrow(kType, value)) {}
  explicit operator float() const { return NarrowToFloat(kType, bits); }
};

// Calls visit.template operator()<T, kType>() with the C++ type that stores an element of `type`:
// bool for pred, (u)int8_t for narrow integers too, half, bfloat16, NarrowFloat<...>, std::complex<...>.
template <typename Visitor>
decltype(auto) VisitType(ElementType type, Visitor&& visit) {
  switch (type) {
#define HLO_VISIT(enumerator, cpp) \
  case ElementType::enumerator: return visit.template operator()<cpp, ElementType::enumerator>();
    HLO_VISIT(kPred, bool)
    HLO_VISIT(kS1, int8_t)
    HLO_VISIT(kS2, int8_t)
    HLO_VISIT(kS4, int8_t)
    HLO_VISIT(kS8, int8_t)
    HLO_VISIT(kS16, int16_t)
    HLO_VISIT(kS32, int32_t)
    HLO_VISIT(kS64, int64_t)
    HLO_VISIT(kU1, uint8_t)
    HLO_VISIT(kU2, uint8_t)
    HLO_VISIT(kU4, uint8_t)
    HLO_VISIT(kU8, uint8_t)
    HLO_VISIT(kU16, uint16_t)
    HLO_VISIT(kU32, uint32_t)
    HLO_VISIT(kU64, uint64_t)
    HLO_VISIT(kF16, half)
    HLO_VISIT(kBF16, bfloat16)
    HLO_VISIT(kF32, float)
    HLO_VISIT(kF64, double)
    HLO_VISIT(kC64, std::complex<float>)
    HLO_VISIT(kC128, std::complex<double>)
    HLO_VISIT(kF8E5M2, NarrowFloat<ElementType::kF8E5M2>)
    HLO_VISIT(kF8E4M3FN, NarrowFloat<ElementType::kF8E4M3FN>)
    HLO_VISIT(kF8E4M3B11FNUZ, NarrowFloat<ElementType::kF8E4M3B11FNUZ>)
    HLO_VISIT(kF8E5M2FNUZ, NarrowFloat<ElementType::kF8E5M2FNUZ>)
    HLO_VISIT(kF8E4M3FNUZ, NarrowFloat<ElementType::kF8E4M3FNUZ>)
    HLO_VISIT(kF8E4M3, NarrowFloat<ElementType::kF8E4M3>)
    HLO_VISIT(kF8E3M4, NarrowFloat<ElementType::kF8E3M4>)
    HLO_VISIT(kF4E2M1FN, NarrowFloat<ElementType::kF4E2M1FN>)
    HLO_VISIT(kF8E8M0FNU, NarrowFloat<ElementType::kF8E8M0FNU>)
#undef HLO_VISIT
    case ElementType::kInvalid:
    case ElementType::kTuple:
    case ElementType::kOpaque:
    case ElementType::kToken: break;
  }
  Fail(ErrorCode::kInternal, "no host type stores elements of type {}", ElementTypeName(type));
}

// Wraps an integer to the value range of a narrow or native integer type.
int64_t WrapInteger(ElementType type, int64_t value);

}  // namespace hlorun::hlo
