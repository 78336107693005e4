#include "backends/opencl/codegen/extreme_lanes.h"

#include <cmath>

namespace hlorun::opencl {

using namespace ir;  // NOLINT: this file is about nothing else
using hlo::Opcode;

namespace {

constexpr Type kBits{ElementType::kS32, 1};
constexpr int64_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

}  // namespace

bool IsExtreme(Opcode opcode) { return opcode == Opcode::kMaximum || opcode == Opcode::kMinimum; }

ExtremeSoFar ExtremeOfNone(Opcode opcode) {
  const bool maximum = opcode == Opcode::kMaximum;
  return {Real(maximum ? -INFINITY : INFINITY), Int(maximum ? -1 : 0, kBits), Int(0, kBits)};
}

ExtremeSoFar ExtremeOf(const Expr& x) {
  const Expr bits = BitCast(x, ElementType::kS32);
  return {x, bits, And(bits, Int(kMagnitude, bits->type))};
}

ExtremeSoFar ExtremeOfBoth(Opcode opcode, const ExtremeSoFar& a, const ExtremeSoFar& b, Body& body) {
  const bool maximum = opcode == Opcode::kMaximum;
  const Expr better = Compare(maximum ? Op::kGt : Op::kLt, b.best, a.best);
  return {body.Name(Select(better, b.best, a.best)), body.Name(maximum ? And(a.signs, b.signs) : Or(a.signs, b.signs)),
          body.Name(Max(a.magnitude, b.magnitude))};
}

Expr ExtremeResult(const ExtremeSoFar& all, Body& body) {
  const Expr sign = And(all.signs, Unary(Op::kNot, Int(kMagnitude, kBits)));
  const Expr is_zero = Compare(Op::kEq, all.best, Zero(all.best->type));
  const Expr number = body.Name(Select(is_zero, BitCast(sign, ElementType::kF32), all.best));
  const Expr has_nan = Compare(Op::kGt, all.magnitude, Int(kInfinity, kBits));
  return body.Name(Select(has_nan, BitCast(all.magnitude, ElementType::kF32), number));
}

}  // namespace hlorun::opencl
