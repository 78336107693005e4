// How far apart in memory a kernel body's loads are when a loop variable goes on by one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

class LoadStrides {
 public:
  explicit LoadStrides(const ir::Stmt& body);

  // The loads of global memory in `body`, in order.
  const std::vector<ir::Expr>& loads() const { return loads_; }
  // Elements that a load's place moves by when `var` grows by one; nullopt where that is not constant.
  std::optional<int64_t> Of(const ir::Expr& load, const ir::Var& var) const;
  // A load's place by variables from outside `body` alone; nullopt where it depends on others.
  std::optional<ir::Expr> PlaceOf(const ir::Expr& load) const;

 private:
  void Collect(const ir::Stmt& s);
  void Collect(const ir::Expr& x);
  std::optional<int64_t> StrideOf(const ir::Expr& x, const ir::Var& var) const;
  std::optional<ir::Expr> FromOutside(const ir::Expr& x) const;

  std::vector<ir::Expr> loads_;
  std::map<const ir::Variable*, ir::Expr>
      lets_;  // what a variable that is not assigned again stands for; null: several
};

}  // namespace hlorun::opencl
