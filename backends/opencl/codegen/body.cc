#include "backends/opencl/codegen/body.h"

#include "hlo/error.h"

namespace hlorun::opencl {

ir::Stmt Body::Close() {
  HLORUN_CHECK(!blocks_.empty());
  ir::Stmt block = ir::Block(std::move(blocks_.back()));
  blocks_.pop_back();
  return block;
}

ir::Expr Body::Name(const ir::Expr& x, const std::string& prefix) {
  if (ir::IsConstant(x) || x->kind == ir::ExprKind::kVar) return x;
  const ir::Var var = ir::MakeVar(FreshName(prefix), x->type);
  Add(ir::Let(var, x));
  return ir::Ref(var);
}

ir::Var Body::Mutable(const ir::Expr& initial, const std::string& prefix) {
  const ir::Var var = ir::MakeVar(FreshName(prefix), initial->type);
  Add(ir::Let(var, initial));
  return var;
}

}  // namespace hlorun::opencl
