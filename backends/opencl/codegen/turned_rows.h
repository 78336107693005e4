// Reductions of short rows whose lanes are rows: a serial loop over elements that lie side by side, which vectors
// across the rows would gather one by one. The rows of a vector's lanes are read whole instead, transposed by squares
// in registers (turned_loads.h) and left in private memory, from where the loop reads whole vectors. Each row's
// elements come in their order, so any reducer's bits stay.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"
#include "backends/opencl/codegen/turned_loads.h"

namespace hlorun::opencl {

class TurnedRows {
 public:
  // Of a nest's body whose vectors run along `along`, `lanes` at a time; nullopt where it has no such loop.
  static std::optional<TurnedRows> Of(const ir::Stmt& body, const ir::Var& along, int lanes);

  // Elements begin .. end of `along`, at least `lanes`: the last ones may come twice.
  ir::Stmt Loop(const ir::Expr& begin, const ir::Expr& end);
  std::vector<ir::Helper> Helpers(bool inline_assembly) const { return loads_.Helpers(lanes_, inline_assembly); }

 private:
  TurnedRows(ir::Stmt body, ir::Var along, int lanes, size_t loop, TurnedLoads loads);
  int64_t Length() const;  // of a row
  // Reads the rows from `rows` on, `count` of them, that lie in the arrays.
  std::vector<ir::Stmt> Filled(const ir::Expr& rows, int64_t count) const;
  // What is made of a vector's rows from `first` on, of the `count` from `rows` on that are filled.
  ir::Stmt Reduced(const ir::Expr& first, const ir::Expr& rows, int64_t count) const;

  ir::Stmt body_;
  ir::Var along_;
  int lanes_;
  size_t loop_;  // of the body's statements
  TurnedLoads loads_;
};

}  // namespace hlorun::opencl
