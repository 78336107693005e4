#include "passes/expand/reducer_identity.h"

#include <limits>

#include "hlo/builder.h"

namespace hlorun::passes {

using hlo::ElementType;
using hlo::Literal;
using hlo::Opcode;

Literal ReducerIdentity(Opcode opcode, ElementType type) {
  const bool floating = hlo::IsFloating(type);
  const double infinity = std::numeric_limits<double>::infinity();
  switch (opcode) {
    case Opcode::kMultiply: return Literal::Scalar(type, 1.0);
    case Opcode::kAnd: return Literal::Scalar(type, int64_t{type == ElementType::kPred ? 1 : -1});
    case Opcode::kMaximum: {
      if (floating) return Literal::Scalar(type, -infinity);
      const bool least_is_zero = !hlo::IsSigned(type);
      return Literal::Scalar(type, least_is_zero ? int64_t{0} : -(int64_t{1} << (hlo::BitsOf(type) - 1)));
    }
    case Opcode::kMinimum: {
      if (floating) return Literal::Scalar(type, infinity);
      if (type == ElementType::kPred) return Literal::Scalar(type, int64_t{1});
      if (!hlo::IsSigned(type)) return Literal::Scalar(type, int64_t{-1});
      return Literal::Scalar(type, static_cast<int64_t>((uint64_t{1} << (hlo::BitsOf(type) - 1)) - 1));
    }
    default: return Literal::Scalar(type, 0.0);
  }
}

std::optional<Literal> ReducerIdentity(const hlo::Computation& reducer, ElementType type) {
  const std::optional<Opcode> opcode = hlo::ReducerOpcode(reducer);
  return opcode ? std::optional(ReducerIdentity(*opcode, type)) : std::nullopt;
}

}  // namespace hlorun::passes
