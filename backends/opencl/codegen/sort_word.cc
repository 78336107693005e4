#include "backends/opencl/codegen/sort_word.h"

#include <vector>

namespace hlorun::opencl {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;
using ir::Var;

std::optional<WordForm> WordForm::Of(const Instruction& sort, SortKey::Nan nan) {
  const auto key = SortKey::Of(*sort.called()->root(), nan);
  if (!key) return std::nullopt;
  const ElementType first = sort.operand(0)->shape().element_type();
  const bool by_position = sort.operand_count() > 1 || !FitsPayload(first);
  if (key->bits() == 64) return WordForm{*key, true, 0, ElementType::kU64};
  const int payload = by_position ? 32 : PayloadBits(first);
  return WordForm{*key, by_position, payload, payload + key->bits() <= 32 ? ElementType::kU32 : ElementType::kU64};
}

Word WordForm::At(Emission& e, const Instruction& sort, const Indices& place, const Index& j) const {
  const Instruction& operand = *sort.operand(key.operand());
  const Value element = e.values().Get(e.frame(), operand, place);
  const Expr order = key.Bits(e.values(), element);
  const Expr position = ir::Cast(e.math().ToExpr(j), ElementType::kU32);
  if (has_positions()) return {order, position};
  const Expr payload = by_position ? position : ToPayload(element.re, operand.shape().element_type());
  const Expr high = ir::Binary(Op::kShl, ir::Cast(order, word), ir::Int(payload_bits, type()));
  return {ir::Binary(Op::kOr, high, ir::Cast(payload, word)), nullptr};
}

Expr WordForm::Order(const Expr& x) const {
  return by_position ? x : ir::Binary(Op::kShr, x, ir::Int(payload_bits, type()));
}

void WordForm::StoreResults(Emission& e, const Instruction& sort, const Word& sorted, const PlaceOf& place,
                            const Index& j, int64_t length) const {
  Expr payload = sorted.position;
  if (!payload) {
    payload = sorted.word;
    if (word == ElementType::kU64) payload = ir::Cast(payload, ElementType::kU32);
    if (payload_bits == 16) payload = ir::Binary(Op::kAnd, payload, ir::Int(0xffff, payload->type));
  }
  if (by_position) return GatherResults(e, sort, payload, place, place(j), length);
  const auto& output = e.outputs()[0];
  const Expr element = FromPayload(payload, output.shape.element_type());
  e.Store(output, place(j), {element, nullptr});
}

void GatherResults(Emission& e, const Instruction& sort, const Expr& position, const WordForm::PlaceOf& place,
                   const Indices& to, int64_t length) {
  const Var from = ir::MakeIndex(e.body().FreshName("from"), 0, length - 1, e.math().type());
  e.body().Add(ir::Let(from, ir::Cast(position, e.math().type().element)));
  const Indices at = place(e.math().Of(from));
  std::vector<Value> elements;
  for (const auto& output : e.outputs()) elements.push_back(e.values().Get(e.frame(), *sort.operand(output.leaf), at));
  for (const auto& output : e.outputs()) {
    e.Store(output, to, elements[static_cast<size_t>(output.leaf)]);
  }
}

}  // namespace hlorun::opencl
