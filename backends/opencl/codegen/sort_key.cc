#include "backends/opencl/codegen/sort_key.h"

#include <algorithm>
#include <limits>

#include "hlo/error.h"
#include "passes/expand/key_comparison.h"

namespace hlorun::opencl {
namespace {

using hlo::ComparisonDirection;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using ir::Expr;

constexpr ir::Type kU32{ElementType::kU32, 1};
constexpr ir::Type kU64{ElementType::kU64, 1};

// f16 and the f8 types are computed as f32, where their order is the same.
ElementType KeyType(ElementType type) {
  return type == ElementType::kBF16 || !hlo::IsFloating(type) ? type : ValueType(type).element;
}

}  // namespace

int OrderedBits(ElementType type) {
  const ElementType key = KeyType(type);
  if (key == ElementType::kPred) return 8;
  return std::max(8, hlo::BitsOf(key));
}

Expr ToOrderedBits(const Expr& value, ElementType type, Body& body) {
  if (type == ElementType::kPred) return ir::Cast(value, ElementType::kU32);
  const int bits = OrderedBits(type);
  if (hlo::IsFloating(type)) {
    const bool wide = bits == 64;
    const ElementType integer = wide ? ElementType::kS64 : ElementType::kS32,
                      natural = wide ? ElementType::kU64 : ElementType::kU32;
    const int top = wide ? 63 : 31;
    const Expr raw = body.Name(ir::BitCast(value, integer), "raw");
    // Negative numbers count down: all their bits flip. Of others only the sign does.
    const Expr flip =
        ir::Binary(ir::Op::kOr, ir::BitCast(ir::Binary(ir::Op::kShr, raw, ir::Int(top, raw->type)), natural),
                   ir::Int(wide ? INT64_MIN : int64_t{1} << 31, {natural, 1}));
    Expr ordered = ir::Binary(ir::Op::kXor, ir::BitCast(raw, natural), flip);
    if (bits == 16) ordered = ir::Binary(ir::Op::kShr, ordered, ir::Int(16, kU32));
    return body.Name(ordered, "ordered");
  }
  if (bits == 64) {
    const Expr natural = ir::Cast(value, ElementType::kU64);
    return hlo::IsSigned(type) ? ir::Binary(ir::Op::kXor, natural, ir::Int(INT64_MIN, kU64)) : natural;
  }
  if (!hlo::IsSigned(type)) return ir::Cast(value, ElementType::kU32);
  const Expr shifted =
      ir::Binary(ir::Op::kXor, ir::Cast(ir::Cast(value, ElementType::kS32), ElementType::kU32),
                 ir::Int(bits == 32 ? int64_t{1} << 31 : -(int64_t{1} << (bits - 1)) & 0xffffffff, kU32));
  return bits == 32 ? shifted : ir::Binary(ir::Op::kAnd, shifted, ir::Int((int64_t{1} << bits) - 1, kU32));
}

bool FitsPayload(ElementType type) { return !hlo::IsComplex(type) && hlo::BitsOf(type) <= 32; }

int PayloadBits(ElementType type) { return type == ElementType::kBF16 ? 16 : 32; }

Expr ToPayload(const Expr& value, ElementType type) {
  if (!hlo::IsFloating(type)) return ir::Cast(value, ElementType::kU32);
  const Expr raw = ir::BitCast(value, ElementType::kU32);
  return type == ElementType::kBF16 ? ir::Binary(ir::Op::kShr, raw, ir::Int(16, kU32)) : raw;
}

Expr FromPayload(const Expr& payload, ElementType type) {
  if (!hlo::IsFloating(type)) return ir::Cast(payload, ValueType(type).element);
  const Expr raw = type == ElementType::kBF16 ? ir::Binary(ir::Op::kShl, payload, ir::Int(16, kU32)) : payload;
  return ir::BitCast(raw, ElementType::kF32);
}

SortKey::SortKey(const Instruction* parameter, const Instruction* key, bool descending, bool is_partial)
    : parameter_(parameter),
      key_(key),
      operand_(parameter->parameter_number() / 2),
      bits_(OrderedBits(key->shape().element_type())),
      descending_(descending),
      is_partial_(is_partial) {}

std::optional<SortKey> SortKey::Of(const Instruction& comparison, Nan nan) {
  if (!comparison.Is(Opcode::kCompare)) return std::nullopt;
  const auto& compare = comparison.As<hlo::attr::Compare>();
  const bool less = compare.direction == ComparisonDirection::kLt;
  if (!less && compare.direction != ComparisonDirection::kGt) return std::nullopt;
  const auto key = passes::KeyComparison::Of(comparison);
  if (!key) return std::nullopt;
  const bool is_partial = passes::IsPartialOrder(comparison);
  if (is_partial && nan == Nan::kNoKey) return std::nullopt;
  return SortKey(key->parameter, key->key, less != key->begins_with_first, is_partial);
}

Expr SortKey::Bits(FusedValues& values, const Value& element) const {
  Frame& frame = values.NewFrame();
  frame.Bind(parameter_, Values{element});
  Expr key = values.Get(frame, *key_, {}).re;
  if (is_partial_) {
    const Expr zero = ir::Zero(key->type), nan = ir::Real(std::numeric_limits<double>::quiet_NaN(), key->type);
    key = ir::Select(ir::Compare(ir::Op::kEq, key, zero), zero, key);
    key = values.body().Name(ir::Select(ir::Compare(ir::Op::kNe, key, key), nan, key), "key");
  }
  Expr ordered = ToOrderedBits(key, key_->shape().element_type(), values.body());
  if (!descending_) return ordered;
  const Expr flipped = ir::Unary(ir::Op::kNot, ordered);
  return bits_ >= 32 ? flipped : ir::Binary(ir::Op::kAnd, flipped, ir::Int((int64_t{1} << bits_) - 1, kU32));
}

}  // namespace hlorun::opencl
