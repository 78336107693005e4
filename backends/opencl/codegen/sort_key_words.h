// A sort's elements as words, where its comparator orders by several keys, of which each decides where those before it
// are equal: the keys side by side, what decides first above, and below all the element's position, by which the
// operands are gathered at the end. As many words as these fill, none of them split.
//
// To compare two elements is then to compare words, whatever the comparator computes of its keys.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/sort_key.h"

namespace hlorun::opencl {

class SortKeyWords {
 public:
  using Words = std::vector<ir::Expr>;

  static std::optional<SortKeyWords> Of(const hlo::Instruction& sort);

  // Of each word, u32 or u64.
  std::vector<hlo::ElementType> types() const;

  // The words of the element at `place`, which is number `j` of its row.
  Words At(Emission& e, const hlo::Instruction& sort, const Indices& place, const Index& j) const;
  // Whether `later`, which has the greater position, belongs before `earlier`.
  ir::Expr Before(const Words& later, const Words& earlier) const;
  ir::Expr Position(const Words& words) const;  // u32

 private:
  struct Word {
    std::vector<SortKey> keys;  // the first one above
    bool has_position = false;  // below them
    int bits() const;
    ir::Type type() const;
  };

  std::vector<Word> words_;
};

}  // namespace hlorun::opencl
