// The statements of a kernel while they are being written: a stack of open blocks, and names.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

class Body {
 public:
  Body() { Open(); }

  void Add(ir::Stmt statement) { blocks_.back().push_back(std::move(statement)); }
  void Open() { blocks_.emplace_back(); }
  ir::Stmt Close();  // what was added since the matching Open

  std::string FreshName(const std::string& prefix) { return prefix + std::to_string(next_++); }
  // A variable that holds `x`, so that it is written, and computed, once. Constants and variables stay what they are.
  ir::Expr Name(const ir::Expr& x, const std::string& prefix = "v");
  // A variable to be assigned later.
  ir::Var Mutable(const ir::Expr& initial, const std::string& prefix = "acc");

 private:
  std::vector<std::vector<ir::Stmt>> blocks_;
  int64_t next_ = 0;
};

}  // namespace hlorun::opencl
