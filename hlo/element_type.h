// Element types of HLO and their properties.
//
// The enumerators' values are those of XLA's PrimitiveType (xla_data.proto), so that protos need no mapping.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hlorun::hlo {

// X(enumerator, name in text, proto value, bits, class)
#define HLO_ELEMENT_TYPES(X)                           \
  X(kPred, "pred", 1, 8, kPredicate)                   \
  X(kS8, "s8", 2, 8, kSigned)                          \
  X(kS16, "s16", 3, 16, kSigned)                       \
  X(kS32, "s32", 4, 32, kSigned)                       \
  X(kS64, "s64", 5, 64, kSigned)                       \
  X(kU8, "u8", 6, 8, kUnsigned)                        \
  X(kU16, "u16", 7, 16, kUnsigned)                     \
  X(kU32, "u32", 8, 32, kUnsigned)                     \
  X(kU64, "u64", 9, 64, kUnsigned)                     \
  X(kF16, "f16", 10, 16, kFloating)                    \
  X(kF32, "f32", 11, 32, kFloating)                    \
  X(kF64, "f64", 12, 64, kFloating)                    \
  X(kTuple, "tuple", 13, 0, kNone)                     \
  X(kOpaque, "opaque", 14, 0, kNone)                   \
  X(kC64, "c64", 15, 64, kComplex)                     \
  X(kBF16, "bf16", 16, 16, kFloating)                  \
  X(kToken, "token", 17, 0, kNone)                     \
  X(kC128, "c128", 18, 128, kComplex)                  \
  X(kF8E5M2, "f8e5m2", 19, 8, kFloating)               \
  X(kF8E4M3FN, "f8e4m3fn", 20, 8, kFloating)           \
  X(kS4, "s4", 21, 4, kSigned)                         \
  X(kU4, "u4", 22, 4, kUnsigned)                       \
  X(kF8E4M3B11FNUZ, "f8e4m3b11fnuz", 23, 8, kFloating) \
  X(kF8E5M2FNUZ, "f8e5m2fnuz", 24, 8, kFloating)       \
  X(kF8E4M3FNUZ, "f8e4m3fnuz", 25, 8, kFloating)       \
  X(kS2, "s2", 26, 2, kSigned)                         \
  X(kU2, "u2", 27, 2, kUnsigned)                       \
  X(kF8E4M3, "f8e4m3", 28, 8, kFloating)               \
  X(kF8E3M4, "f8e3m4", 29, 8, kFloating)               \
  X(kS1, "s1", 30, 1, kSigned)                         \
  X(kU1, "u1", 31, 1, kUnsigned)                       \
  X(kF4E2M1FN, "f4e2m1fn", 32, 4, kFloating)           \
  X(kF8E8M0FNU, "f8e8m0fnu", 33, 8, kFloating)

enum class ElementType : uint8_t {
  kInvalid = 0,
#define HLO_DEFINE_TYPE(enumerator, name, value, bits, cls) enumerator = (value),
  HLO_ELEMENT_TYPES(HLO_DEFINE_TYPE)
#undef HLO_DEFINE_TYPE
};

enum class TypeClass : uint8_t { kNone, kPredicate, kSigned, kUnsigned, kFloating, kComplex };

// The name in HLO text ("f32"); "invalid" for kInvalid.
std::string_view ElementTypeName(ElementType type);
std::optional<ElementType> ElementTypeFromName(std::string_view name);

TypeClass ClassOf(ElementType type);
int BitsOf(ElementType type);  // of the value; 0 for tuple, token, opaque

// Bytes an element takes in a literal or a device buffer: types narrower than a byte take a whole one.
int BytesOf(ElementType type);

inline bool IsArrayType(ElementType type) { return ClassOf(type) != TypeClass::kNone; }
inline bool IsSigned(ElementType type) { return ClassOf(type) == TypeClass::kSigned; }
inline bool IsUnsigned(ElementType type) { return ClassOf(type) == TypeClass::kUnsigned; }
inline bool IsInteger(ElementType type) { return IsSigned(type) || IsUnsigned(type); }
inline bool IsFloating(ElementType type) { return ClassOf(type) == TypeClass::kFloating; }
inline bool IsComplex(ElementType type) { return ClassOf(type) == TypeClass::kComplex; }

// c64 -> f32, c128 -> f64; other types are their own.
ElementType RealOf(ElementType type);

}  // namespace hlorun::hlo
