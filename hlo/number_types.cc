#include "hlo/number_types.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hlorun::hlo {
namespace {

constexpr bool kYes = true;
constexpr bool kNo = false;

// exponent, mantissa, bias, infinity, fnuz, nan, unsigned; from ml_dtypes' table of formats.
constexpr NarrowFormat kF8E5M2Format{5, 2, 15, kYes, kNo, kYes, kNo};
constexpr NarrowFormat kF8E4M3FNFormat{4, 3, 7, kNo, kNo, kYes, kNo};
constexpr NarrowFormat kF8E4M3B11FNUZFormat{4, 3, 11, kNo, kYes, kYes, kNo};
constexpr NarrowFormat kF8E5M2FNUZFormat{5, 2, 16, kNo, kYes, kYes, kNo};
constexpr NarrowFormat kF8E4M3FNUZFormat{4, 3, 8, kNo, kYes, kYes, kNo};
constexpr NarrowFormat kF8E4M3Format{4, 3, 7, kYes, kNo, kYes, kNo};
constexpr NarrowFormat kF8E3M4Format{3, 4, 3, kYes, kNo, kYes, kNo};
constexpr NarrowFormat kF4E2M1FNFormat{2, 1, 1, kNo, kNo, kNo, kNo};
constexpr NarrowFormat kF8E8M0FNUFormat{8, 0, 127, kNo, kNo, kYes, kYes};

int SignShift(const NarrowFormat& f) { return f.exponent_bits + f.mantissa_bits; }

// Magnitude bits of the largest finite value.
int LargestFinite(const NarrowFormat& f) {
  const int all = (1 << SignShift(f)) - 1;
  if (f.has_infinity) return all - (1 << f.mantissa_bits);
  if (f.is_fnuz || !f.has_nan) return all;
  return all - 1;  // the all-ones pattern is NaN
}

int NanBits(const NarrowFormat& f) {
  if (f.is_fnuz) return 1 << SignShift(f);
  if (f.has_infinity) return (((1 << f.exponent_bits) - 1) << f.mantissa_bits) | (1 << (f.mantissa_bits - 1));
  return (1 << SignShift(f)) - 1;
}

}  // namespace

const NarrowFormat& NarrowFormatOf(ElementType type) {
  switch (type) {
    case ElementType::kF8E5M2: return kF8E5M2Format;
    case ElementType::kF8E4M3FN: return kF8E4M3FNFormat;
    case ElementType::kF8E4M3B11FNUZ: return kF8E4M3B11FNUZFormat;
    case ElementType::kF8E5M2FNUZ: return kF8E5M2FNUZFormat;
    case ElementType::kF8E4M3FNUZ: return kF8E4M3FNUZFormat;
    case ElementType::kF8E4M3: return kF8E4M3Format;
    case ElementType::kF8E3M4: return kF8E3M4Format;
    case ElementType::kF4E2M1FN: return kF4E2M1FNFormat;
    case ElementType::kF8E8M0FNU: return kF8E8M0FNUFormat;
    default: Fail(ErrorCode::kInternal, "{} is not a narrow floating type", ElementTypeName(type));
  }
}

float NarrowToFloat(ElementType type, uint8_t bits) {
  const NarrowFormat& f = NarrowFormatOf(type);
  if (f.is_unsigned) {
    return bits == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - f.bias);
  }
  const int shift = SignShift(f);
  const bool negative = ((bits >> shift) & 1) != 0;
  const int magnitude = bits & ((1 << shift) - 1);
  if (f.is_fnuz && negative && magnitude == 0) return std::numeric_limits<float>::quiet_NaN();
  if (f.has_nan && magnitude > LargestFinite(f)) {
    const bool infinity = f.has_infinity && (magnitude & ((1 << f.mantissa_bits) - 1)) == 0;
    const float value = infinity ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    return negative ? -value : value;
  }
  const int exponent = magnitude >> f.mantissa_bits;
  const int mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
  const int significand = exponent == 0 ? mantissa : mantissa | (1 << f.mantissa_bits);
  const float value = std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

uint8_t FloatToNarrow(ElementType type, float value) {
  const NarrowFormat& f = NarrowFormatOf(type);
  const int shift = SignShift(f);
  if (f.is_unsigned) {
    // The nearest power of two, halfway up, as ml_dtypes. On the bits: a denormal may compare equal to zero.
    const auto bits = std::bit_cast<uint32_t>(value);
    if (bits == 0 || bits >= 0x7F800000) return 0xFF;
    const uint32_t code = bits >> 23;
    // Halfway to the next power lies at half the mantissa; from 0 to the smallest normal value, at half of that again.
    const bool up = code == 0 ? (bits & 0x7FFFFF) >= 0x600000 : (bits & 0x400000) != 0;
    return static_cast<uint8_t>(code + (up ? 1 : 0));
  }
  const int sign = std::signbit(value) ? 1 << shift : 0;
  if (std::isnan(value)) {
    if (!f.has_nan) return static_cast<uint8_t>(1 << shift);  // as ml_dtypes: NaN becomes -0
    return static_cast<uint8_t>(f.is_fnuz ? NanBits(f) : NanBits(f) | sign);
  }
  const float magnitude = std::fabs(value);
  int code = 0;
  if (std::isinf(magnitude)) {
    code = LargestFinite(f) + 1;
  } else if (magnitude > 0) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int least = 1 - f.bias;  // exponent of the smallest normal value
    const int scale = std::max(exponent - 1, least) - f.mantissa_bits;
    // Exact: at most 24 significant bits shifted by a power of two; nearbyint rounds to even.
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(static_cast<double>(magnitude), -scale)));
    // The significand's hidden bit adds one to the exponent field, so a carry out of the mantissa just works.
    code = steps + ((std::max(exponent - 1, least) - least) << f.mantissa_bits);
  }
  if (code > LargestFinite(f)) {
    if (f.has_infinity) {
      code = LargestFinite(f) + 1;
    } else if (f.has_nan) {
      return static_cast<uint8_t>(f.is_fnuz ? NanBits(f) : NanBits(f) | sign);
    } else {
      code = LargestFinite(f);  // f4e2m1fn saturates
    }
  }
  if (f.is_fnuz && code == 0) return 0;
  return static_cast<uint8_t>(code | sign);
}

int64_t WrapInteger(ElementType type, int64_t value) {
  const int bits = BitsOf(type);
  if (type == ElementType::kPred) return value != 0 ? 1 : 0;
  if (bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const uint64_t low = static_cast<uint64_t>(value) & mask;
  if (IsSigned(type) && ((low >> (bits - 1)) & 1) != 0) return static_cast<int64_t>(low | ~mask);
  return static_cast<int64_t>(low);
}

}  // namespace hlorun::hlo
