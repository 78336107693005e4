// A sort's elements as words, where its comparator orders by one key (sort_key.h): the key above, and below either the
// element itself (one operand, at most 32 bits) or its position, by which the operands are gathered at the end.
#pragma once

#include <functional>
#include <optional>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/sort_key.h"

namespace hlorun::opencl {

struct Word {
  ir::Expr word, position;  // position: null where the word holds what is needed
};

// How a sort's elements travel, from its operands and comparator alone.
struct WordForm {
  SortKey key;
  bool by_position;  // the payload is a position
  int payload_bits;  // 16 or 32, below the key; 0: the position lies in a second array
  hlo::ElementType word;

  static std::optional<WordForm> Of(const hlo::Instruction& sort, SortKey::Nan nan = SortKey::Nan::kNoKey);

  bool has_positions() const { return payload_bits == 0; }
  int64_t bytes() const { return hlo::BytesOf(word) + (has_positions() ? 4 : 0); }
  ir::Type type() const { return {word, 1}; }

  // The word of the element at `place`, which is number `j` of its row.
  Word At(Emission& e, const hlo::Instruction& sort, const Indices& place, const Index& j) const;
  // What sorts first is least; equal only where the elements are equal to the sort.
  ir::Expr Order(const ir::Expr& word) const;

  // Where an element of the row that is being sorted lies.
  using PlaceOf = std::function<Indices(const Index& j)>;
  // Writes the results' elements number `j` of a row of `length`, from their word.
  void StoreResults(Emission& e, const hlo::Instruction& sort, const Word& sorted, const PlaceOf& place, const Index& j,
                    int64_t length) const;
};

// The results' elements at `to`, from the operands' at number `from` of a row of `length`.
void GatherResults(Emission& e, const hlo::Instruction& sort, const ir::Expr& from, const WordForm::PlaceOf& place,
                   const Indices& to, int64_t length);

}  // namespace hlorun::opencl
