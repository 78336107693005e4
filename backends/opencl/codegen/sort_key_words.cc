#include "backends/opencl/codegen/sort_key_words.h"

#include "passes/expand/lexicographic_keys.h"

namespace hlorun::opencl {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;

namespace {

constexpr int kPositionBits = 32, kMostBits = 64;

// `above` and below it the `bits` of `below`, which has no others. above: null where there is nothing yet.
Expr Append(const Expr& above, const Expr& below, int bits, const ir::Type& type) {
  const Expr lower = ir::Cast(below, type.element);
  return above ? ir::Binary(Op::kOr, ir::Binary(Op::kShl, above, ir::Int(bits, type)), lower) : lower;
}

}  // namespace

int SortKeyWords::Word::bits() const {
  int bits = has_position ? kPositionBits : 0;
  for (const SortKey& key : keys) bits += key.bits();
  return bits;
}

ir::Type SortKeyWords::Word::type() const { return {bits() <= 32 ? ElementType::kU32 : ElementType::kU64, 1}; }

std::optional<SortKeyWords> SortKeyWords::Of(const Instruction& sort) {
  SortKeyWords form;
  form.words_.emplace_back();
  const auto begin_word_without = [&](int bits) {
    if (form.words_.back().bits() + bits > kMostBits) form.words_.emplace_back();
  };
  const std::vector<const Instruction*> comparisons = passes::LexicographicKeys(*sort.called());
  if (comparisons.empty()) return std::nullopt;
  for (const Instruction* comparison : comparisons) {
    const std::optional<SortKey> key = SortKey::Of(*comparison);
    if (!key) return std::nullopt;
    begin_word_without(key->bits());
    form.words_.back().keys.push_back(*key);
  }
  begin_word_without(kPositionBits);
  form.words_.back().has_position = true;
  return form;
}

std::vector<ElementType> SortKeyWords::types() const {
  std::vector<ElementType> types;
  types.reserve(words_.size());
  for (const Word& word : words_) types.push_back(word.type().element);
  return types;
}

SortKeyWords::Words SortKeyWords::At(Emission& e, const Instruction& sort, const Indices& place, const Index& j) const {
  Words words;
  for (const Word& word : words_) {
    Expr bits;
    for (const SortKey& key : word.keys) {
      const Value element = e.values().Get(e.frame(), *sort.operand(key.operand()), place);
      bits = Append(bits, key.Bits(e.values(), element), key.bits(), word.type());
    }
    if (word.has_position)
      bits = Append(bits, ir::Cast(e.math().ToExpr(j), ElementType::kU32), kPositionBits, word.type());
    words.push_back(e.body().Name(bits, "word"));
  }
  return words;
}

Expr SortKeyWords::Before(const Words& later, const Words& earlier) const {
  Expr before;
  for (size_t w = words_.size(); w-- > 0;) {
    if (words_[w].keys.empty()) continue;  // the position, which decides nothing
    const Expr less = ir::Compare(Op::kLt, later[w], earlier[w]);
    before = before ? ir::Or(less, ir::And(ir::Compare(Op::kEq, later[w], earlier[w]), before)) : less;
  }
  return before;
}

Expr SortKeyWords::Position(const Words& words) const {
  return words.back()->type.element == ElementType::kU32 ? words.back() : ir::Cast(words.back(), ElementType::kU32);
}

}  // namespace hlorun::opencl
