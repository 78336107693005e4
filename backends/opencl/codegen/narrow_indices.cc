#include "backends/opencl/codegen/narrow_indices.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

bool IsWide(const Type& type) { return type.element == ElementType::kS64; }

bool TakesBitsAsWide(const Expr& x) {
  return (x->kind == ExprKind::kBitCast && IsWide(x->type)) ||
         std::any_of(x->args.begin(), x->args.end(), [](const Expr& a) { return TakesBitsAsWide(a); });
}
bool TakesBitsAsWide(const Stmt& s) {
  for (const Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*e && TakesBitsAsWide(*e)) return true;
  }
  return std::any_of(s->body.begin(), s->body.end(), [](const Stmt& b) { return TakesBitsAsWide(b); });
}

class Narrowing {
 public:
  Stmt Narrow(const Stmt& s) {
    StmtNode node = *s;
    if (node.var) node.var = Narrow(node.var);
    for (Expr* e : {&node.value, &node.index, &node.begin, &node.end, &node.step}) {
      if (*e) *e = Narrow(*e);
    }
    for (Stmt& b : node.body) b = Narrow(b);
    return std::make_shared<const StmtNode>(std::move(node));
  }

 private:
  Var Narrow(const Var& var) {
    if (!IsWide(var->type)) return var;
    Var& narrow = variables_[var];
    if (!narrow) {
      narrow = std::make_shared<Variable>(*var);
      narrow->type.element = ElementType::kS32;
    }
    return narrow;
  }

  Expr Narrow(const Expr& x) {
    if (x->kind == ExprKind::kVar) return Ref(Narrow(x->var));
    if (x->kind == ExprKind::kIntConstant && IsWide(x->type))
      return Int(x->integer, {ElementType::kS32, x->type.lanes});
    if (x->args.empty()) return x;
    std::vector<Expr> args;
    args.reserve(x->args.size());
    for (const Expr& a : x->args) args.push_back(Narrow(a));
    if (IsWide(x->type) && x->kind == ExprKind::kCast) return Cast(args[0], ElementType::kS32);
    if (x->kind == ExprKind::kCall) {
      const ElementType element = IsWide(x->type) ? ElementType::kS32 : x->type.element;
      return Call({element, x->type.lanes}, x->function, std::move(args));
    }
    return WithArgs(x, std::move(args));
  }

  std::map<Var, Var> variables_;
};

}  // namespace

Function WithNarrowIndices(const Function& function) {
  if (TakesBitsAsWide(function.body)) return function;
  Function narrow = function;
  narrow.body = Narrowing().Narrow(function.body);
  return narrow;
}

}  // namespace hlorun::opencl
