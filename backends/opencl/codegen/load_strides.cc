#include "backends/opencl/codegen/load_strides.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::ExprKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

LoadStrides::LoadStrides(const Stmt& body) { Collect(body); }

void LoadStrides::Collect(const Expr& x) {
  if (x->kind == ExprKind::kLoad && x->buffer->space == ir::Buffer::Space::kGlobal) loads_.push_back(x);
  for (const Expr& a : x->args) Collect(a);
}

void LoadStrides::Collect(const Stmt& s) {
  if (s->kind == StmtKind::kLet) lets_[s->var.get()] = s->value;
  if (s->kind == StmtKind::kAssign || s->kind == StmtKind::kFor) lets_[s->var.get()] = nullptr;
  for (const Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*e) Collect(*e);
  }
  for (const Stmt& b : s->body) Collect(b);
}

std::optional<int64_t> LoadStrides::Of(const Expr& load, const ir::Var& var) const {
  return StrideOf(load->args[0], var);
}

std::optional<Expr> LoadStrides::PlaceOf(const Expr& load) const { return FromOutside(load->args[0]); }

std::optional<Expr> LoadStrides::FromOutside(const Expr& x) const {
  if (x->kind == ExprKind::kVar) {
    const auto found = lets_.find(x->var.get());
    if (found == lets_.end()) return x;
    return found->second ? FromOutside(found->second) : std::nullopt;
  }
  const bool may_change = x->kind == ExprKind::kLoad && (x->buffer->written || x->args.size() > 1);
  if (may_change) return std::nullopt;
  std::vector<Expr> args;
  for (const Expr& a : x->args) {
    const auto outside = FromOutside(a);
    if (!outside) return std::nullopt;
    args.push_back(*outside);
  }
  return args.empty() ? x : WithArgs(x, std::move(args));
}

std::optional<int64_t> LoadStrides::StrideOf(const Expr& x, const ir::Var& var) const {
  if (x->kind == ExprKind::kVar) {
    if (x->var == var) return 1;
    const auto found = lets_.find(x->var.get());
    if (found == lets_.end()) return 0;  // another loop's variable
    return found->second ? StrideOf(found->second, var) : std::nullopt;
  }
  std::vector<int64_t> strides;
  bool constant = true;
  for (const Expr& a : x->args) {
    const auto stride = StrideOf(a, var);
    if (!stride) return std::nullopt;
    constant &= *stride == 0;
    strides.push_back(*stride);
  }
  if (constant) return 0;
  if (x->kind == ExprKind::kCast) return strides[0];
  if (x->kind != ExprKind::kBinary) return std::nullopt;
  if (x->op == Op::kAdd) return strides[0] + strides[1];
  if (x->op == Op::kSub) return strides[0] - strides[1];
  if (x->op != Op::kMul) return std::nullopt;
  if (x->args[1]->kind == ExprKind::kIntConstant) return strides[0] * x->args[1]->integer;
  if (x->args[0]->kind == ExprKind::kIntConstant) return strides[1] * x->args[0]->integer;
  return std::nullopt;
}

}  // namespace hlorun::opencl
