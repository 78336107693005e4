#include "passes/expand/reducer_identity.h"

#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>

#include "hlo/builder.h"

namespace hlorun::passes {

using hlo::ElementType;
using hlo::Literal;
using hlo::Opcode;

namespace {

// Infinity of this sign, or the number furthest that way of a type, of eight bits or less, that has none.
Literal Furthest(ElementType type, double sign) {
  Literal furthest = Literal::Scalar(type, sign * std::numeric_limits<double>::infinity());
  if (std::isinf(furthest.GetDouble(0))) return furthest;
  furthest = Literal::Scalar(type, 1.0);
  Literal candidate = furthest;
  for (int bits = 0; bits < 1 << hlo::BitsOf(type); ++bits) {
    candidate.mutable_data()[0] = static_cast<std::byte>(bits);
    const double number = candidate.GetDouble(0);
    if (std::isfinite(number) && sign * number > sign * furthest.GetDouble(0)) furthest = candidate;
  }
  return furthest;
}

constexpr std::complex<double> kNegativeZero(-0.0, -0.0);

bool HasNegativeZero(ElementType type) {
  return hlo::IsComplex(type) ||
         (hlo::IsFloating(type) && std::signbit(Literal::Scalar(type, kNegativeZero).GetDouble(0)));
}

}  // namespace

Literal ReducerIdentity(Opcode opcode, ElementType type) {
  const bool floating = hlo::IsFloating(type);
  switch (opcode) {
    case Opcode::kMultiply: return Literal::Scalar(type, 1.0);
    case Opcode::kAnd: return Literal::Scalar(type, int64_t{type == ElementType::kPred ? 1 : -1});
    case Opcode::kMaximum: {
      if (floating) return Furthest(type, -1);
      const bool least_is_zero = !hlo::IsSigned(type);
      return Literal::Scalar(type, least_is_zero ? int64_t{0} : -(int64_t{1} << (hlo::BitsOf(type) - 1)));
    }
    case Opcode::kMinimum: {
      if (floating) return Furthest(type, 1);
      if (type == ElementType::kPred) return Literal::Scalar(type, int64_t{1});
      if (!hlo::IsSigned(type)) return Literal::Scalar(type, int64_t{-1});
      return Literal::Scalar(type, static_cast<int64_t>((uint64_t{1} << (hlo::BitsOf(type) - 1)) - 1));
    }
    // 0 would make a 0 of -0.
    case Opcode::kAdd: return Literal::Scalar(type, HasNegativeZero(type) ? kNegativeZero : 0.0);
    default: return Literal::Scalar(type, 0.0);
  }
}

std::optional<Literal> ReducerIdentity(const hlo::Computation& reducer, ElementType type) {
  const std::optional<Opcode> opcode = hlo::ReducerOpcode(reducer);
  return opcode ? std::optional(ReducerIdentity(*opcode, type)) : std::nullopt;
}

}  // namespace hlorun::passes
