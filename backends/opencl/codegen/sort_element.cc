#include "backends/opencl/codegen/sort_element.h"

#include "backends/opencl/codegen/element_expr.h"

namespace hlorun::opencl {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;

namespace {

bool IsRead(const hlo::Computation& comparator, int64_t parameter) {
  const Instruction* p = comparator.parameter(parameter);
  return !p->users().empty() || comparator.root() == p;
}

}  // namespace

// Merging along paths loses elements where they have no order: the most common of such comparators is made one that
// has.
SortElementForm::SortElementForm(const Instruction& sort)
    : sort_(sort), words_(WordForm::Of(sort, SortKey::Nan::kAnyPlace)) {
  if (words_) {
    fields_.push_back(words_->word);
    if (words_->has_positions()) fields_.push_back(ElementType::kU32);
    return;
  }
  if ((key_words_ = SortKeyWords::Of(sort))) {
    fields_ = key_words_->types();
    return;
  }
  for (int64_t i = 0; i < sort.operand_count(); ++i) {
    const bool travels = IsRead(*sort.called(), 2 * i) || IsRead(*sort.called(), 2 * i + 1);
    has_position_ |= !travels;
    first_field_.push_back(travels ? static_cast<int64_t>(fields_.size()) : -1);
    if (!travels) continue;
    const ElementType type = sort.operand(i)->shape().element_type();
    fields_.insert(fields_.end(), hlo::IsComplex(type) ? 2 : 1, ValueType(type).element);
  }
  if (has_position_) fields_.push_back(ElementType::kU32);
}

int64_t SortElementForm::bytes() const {
  int64_t bytes = 0;
  for (const ElementType field : fields_) bytes += hlo::BytesOf(field);
  return bytes;
}

SortElementForm::Element SortElementForm::At(Emission& e, const Indices& place, const Index& j) const {
  if (words_) {
    const Word word = words_->At(e, sort_, place, j);
    return words_->has_positions() ? Element{word.word, word.position} : Element{word.word};
  }
  if (key_words_) return key_words_->At(e, sort_, place, j);
  Element element;
  for (size_t i = 0; i < first_field_.size(); ++i) {
    if (first_field_[i] < 0) continue;
    const Value value = e.values().Get(e.frame(), *sort_.operand(static_cast<int64_t>(i)), place);
    element.push_back(value.re);
    if (value.im) element.push_back(value.im);
  }
  if (has_position_) element.push_back(ir::Cast(e.math().ToExpr(j), ElementType::kU32));
  return element;
}

// What does not travel is not read either.
Values SortElementForm::CompareArguments(const Element& a, const Element& b) const {
  Values arguments;
  for (size_t i = 0; i < first_field_.size(); ++i) {
    const ElementType type = sort_.operand(static_cast<int64_t>(i))->shape().element_type();
    for (const Element* element : {&a, &b}) {
      if (first_field_[i] < 0) {
        arguments.push_back({ir::Zero(ValueType(type)), hlo::IsComplex(type) ? ir::Zero(ValueType(type)) : nullptr});
        continue;
      }
      const auto first = static_cast<size_t>(first_field_[i]);
      arguments.push_back({(*element)[first], hlo::IsComplex(type) ? (*element)[first + 1] : nullptr});
    }
  }
  return arguments;
}

Expr SortElementForm::Before(Emission& e, const Element& later, const Element& earlier) const {
  if (words_) return ir::Compare(ir::Op::kLt, words_->Order(later[0]), words_->Order(earlier[0]));
  if (key_words_) return key_words_->Before(later, earlier);
  return e.values().Apply(*sort_.called(), CompareArguments(later, earlier))[0].re;
}

void SortElementForm::StoreResults(Emission& e, const Element& sorted, const WordForm::PlaceOf& place, const Index& j,
                                   int64_t length) const {
  if (words_) {
    const Word word{sorted[0], words_->has_positions() ? sorted[1] : nullptr};
    return words_->StoreResults(e, sort_, word, place, j, length);
  }
  if (key_words_) return GatherResults(e, sort_, key_words_->Position(sorted), place, place(j), length);
  if (has_position_) return GatherResults(e, sort_, sorted.back(), place, place(j), length);
  const Indices to = place(j);
  for (const auto& output : e.outputs()) {
    const auto first = static_cast<size_t>(first_field_[static_cast<size_t>(output.leaf)]);
    const bool complex = hlo::IsComplex(output.shape.element_type());
    e.Store(output, to, {sorted[first], complex ? sorted[first + 1] : nullptr});
  }
}

}  // namespace hlorun::opencl
