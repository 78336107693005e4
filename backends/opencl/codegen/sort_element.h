// What travels of a sort's elements while they are moved about: a few values of computation types, side by side.
//
// Words where the comparator orders by one key (sort_word.h) or by several (sort_key_words.h); otherwise the operands
// that the comparator reads, and the position where there are others.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/codegen/sort_key_words.h"
#include "backends/opencl/codegen/sort_word.h"

namespace hlorun::opencl {

class SortElementForm {
 public:
  using Element = std::vector<ir::Expr>;  // one a field

  explicit SortElementForm(const hlo::Instruction& sort);

  const std::vector<hlo::ElementType>& fields() const { return fields_; }
  int64_t bytes() const;

  // The element at `place`, which is number `j` of its row.
  Element At(Emission& e, const Indices& place, const Index& j) const;
  // Whether `later`, which comes behind `earlier` in the operands, belongs before it. Equal elements stay.
  ir::Expr Before(Emission& e, const Element& later, const Element& earlier) const;
  void StoreResults(Emission& e, const Element& sorted, const WordForm::PlaceOf& place, const Index& j,
                    int64_t length) const;

 private:
  Values CompareArguments(const Element& a, const Element& b) const;

  const hlo::Instruction& sort_;
  std::optional<WordForm> words_;
  std::optional<SortKeyWords> key_words_;  // without words
  std::vector<hlo::ElementType> fields_;
  // Without either: by operand the number of its first field, -1 where it does not travel.
  std::vector<int64_t> first_field_;
  bool has_position_ = false;  // the last field
};

}  // namespace hlorun::opencl
