// Conversions between element types.
#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::ElementType;
using hlo::Opcode;

namespace {

struct FloatFormat {
  ElementType type;
  int exponent_bits;
  int mantissa_bits;
};
// The IEEE-like ones; f8 types saturate or lack infinities and take no part.
constexpr FloatFormat kFormats[] = {
    {ElementType::kBF16, 8, 7}, {ElementType::kF16, 5, 10}, {ElementType::kF32, 8, 23}, {ElementType::kF64, 11, 52}};

const FloatFormat* FormatOf(ElementType type) {
  for (const FloatFormat& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

// Every value of `from` is a value of `to`.
bool Holds(ElementType to, ElementType from) {
  const FloatFormat* wide = FormatOf(to);
  const FloatFormat* narrow = FormatOf(from);
  if (wide != nullptr && narrow != nullptr) {
    return wide->exponent_bits >= narrow->exponent_bits && wide->mantissa_bits >= narrow->mantissa_bits;
  }
  const bool from_integer = hlo::IsInteger(from) || from == ElementType::kPred;
  const int from_bits = from == ElementType::kPred ? 1 : hlo::BitsOf(from);
  if (from_integer && wide != nullptr) {
    // f16's largest is 65504: all integers that its mantissa holds lie below.
    return from_bits - (hlo::IsSigned(from) ? 1 : 0) <= wide->mantissa_bits + 1;
  }
  if (!from_integer || !hlo::IsInteger(to)) return false;
  if (hlo::IsSigned(from)) return hlo::IsSigned(to) && hlo::BitsOf(to) >= from_bits;
  return hlo::BitsOf(to) - (hlo::IsSigned(to) ? 1 : 0) >= from_bits;
}

// Integer to integer keeps the low bits, so a detour through a type at least as wide as the last changes nothing.
bool KeepsLowBits(ElementType from, ElementType through, ElementType to) {
  return hlo::IsInteger(from) && hlo::IsInteger(through) && hlo::IsInteger(to) &&
         hlo::BitsOf(through) >= hlo::BitsOf(to);
}

// Floats saturate where they become integers and integers wrap, so a detour through a float may only be left out where
// nothing is out of range.
bool MaySaturate(ElementType from, ElementType through, ElementType to) {
  return FormatOf(through) != nullptr && FormatOf(from) == nullptr && hlo::IsInteger(to) && !Holds(to, from);
}

}  // namespace

std::vector<Rule> ConvertRules() {
  return {
      {"convert_to_same", Exactness::kExact, Op(Opcode::kConvert, X),
       [](const Match& m) { return m[X]->shape().element_type() == m.shape().element_type(); },
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] convert(x))",
       R"(x = f32[4] parameter(0)
          ROOT r = s32[4] convert(x))"},
      {"convert_of_convert", Exactness::kExact, Op(Opcode::kConvert, Op(Opcode::kConvert, X).As(A)),
       [](const Match& m) {
         const ElementType from = m[X]->shape().element_type(), through = m[A]->shape().element_type();
         const ElementType to = m.shape().element_type();
         return (Holds(through, from) && !MaySaturate(from, through, to)) || KeepsLowBits(from, through, to);
       },
       [](Match& m) { return m.build.Convert(m[X], m.shape().element_type()); },
       R"(x = bf16[4] parameter(0)
          y = f32[4] convert(x)
          ROOT r = bf16[4] convert(y))",
       R"(x = f32[4] parameter(0)
          y = bf16[4] convert(x)
          ROOT r = f32[4] convert(y))"},
      {"bitcast_convert_to_same", Exactness::kExact, Op(Opcode::kBitcastConvert, X),
       [](const Match& m) { return m[X]->shape().SameAs(m.shape()); }, [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] bitcast-convert(x))",
       R"(x = f32[4] parameter(0)
          ROOT r = s32[4] bitcast-convert(x))"},
      {"bitcast_convert_twice", Exactness::kExact, Op(Opcode::kBitcastConvert, Op(Opcode::kBitcastConvert, X).As(A)),
       [](const Match& m) {
         return hlo::BitsOf(m[X]->shape().element_type()) == hlo::BitsOf(m.shape().element_type());
       },
       [](Match& m) { return m.build.Make(Opcode::kBitcastConvert, {m[X]}, {}, {}, m.shape()); },
       R"(x = f32[4] parameter(0)
          y = s32[4] bitcast-convert(x)
          ROOT r = u32[4] bitcast-convert(y))",
       R"(x = f32[4] parameter(0)
          y = s32[4] convert(x)
          ROOT r = u32[4] bitcast-convert(y))"},
      {"reduce_precision_to_own", Exactness::kExact, Op(Opcode::kReducePrecision, X),
       [](const Match& m) {
         const FloatFormat* format = FormatOf(m.shape().element_type());
         const auto& to = m.root->As<hlo::attr::ReducePrecision>();
         return format != nullptr && to.exponent_bits >= format->exponent_bits &&
                to.mantissa_bits >= format->mantissa_bits;
       },
       [](Match& m) { return m[X]; },
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] reduce-precision(x), exponent_bits=8, mantissa_bits=23)",
       R"(x = f32[4] parameter(0)
          ROOT r = f32[4] reduce-precision(x), exponent_bits=8, mantissa_bits=7)"},
  };
}

}  // namespace hlorun::passes
