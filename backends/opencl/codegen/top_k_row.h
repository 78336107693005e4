// A row of a topk: its elements as entries, of which the greater one comes first.
//
// An entry is the element's key above and the complement of its position below, so that equal elements keep their
// order. No entry is 0.
#pragma once

#include "backends/opencl/codegen/emission.h"

namespace hlorun::opencl {

class TopKRow {
 public:
  // `row`: the index without its last dimension.
  TopKRow(Emission& e, const hlo::Instruction& top, Indices row);

  // The key of element `j`, as a u32: greater is better.
  ir::Expr KeyAt(const Index& j);
  static ir::Expr Entry(const ir::Expr& key, const ir::Expr& position);
  // What place `i` of this output holds, given the entry of that place.
  void StoreResult(const Emission::Output& output, const Index& i, const ir::Expr& entry);

 private:
  Emission& e_;
  const hlo::Instruction& top_;
  const hlo::Instruction& x_;
  Indices row_;
};

}  // namespace hlorun::opencl
