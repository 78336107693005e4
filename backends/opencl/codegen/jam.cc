#include "backends/opencl/codegen/jam.h"

#include <map>
#include <utility>

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

// A body's copy, with variables and arrays of its own for those that it declares.
class Copy {
 public:
  explicit Copy(const Stmt& body) { Declare(body); }

  Stmt Of(const Stmt& s) const {
    ir::StmtNode node = *s;
    for (Stmt& b : node.body) b = Of(b);
    for (Expr* e : {&node.value, &node.index, &node.begin, &node.end, &node.step}) {
      if (*e) *e = Of(*e);
    }
    if (node.var) node.var = OwnOr(vars_, node.var);
    if (node.buffer) node.buffer = OwnOr(buffers_, node.buffer);
    return std::make_shared<const ir::StmtNode>(std::move(node));
  }

 private:
  void Declare(const Stmt& s) {
    if (s->kind == StmtKind::kLet || s->kind == StmtKind::kFor) vars_.emplace(s->var, Renamed(*s->var));
    if (s->kind == StmtKind::kDeclareArray) buffers_.emplace(s->buffer, Renamed(*s->buffer));
    for (const Stmt& b : s->body) Declare(b);
  }

  // Fresh names end with a number.
  template <typename Named>
  static std::shared_ptr<Named> Renamed(const Named& named) {
    auto copy = std::make_shared<Named>(named);
    copy->name += "b";
    return copy;
  }

  template <typename Named>
  static std::shared_ptr<Named> OwnOr(const std::map<std::shared_ptr<Named>, std::shared_ptr<Named>>& own,
                                      const std::shared_ptr<Named>& named) {
    const auto found = own.find(named);
    return found == own.end() ? named : found->second;
  }

  Expr Of(const Expr& x) const {
    if (x->kind == ir::ExprKind::kVar) return ir::Ref(OwnOr(vars_, x->var));
    if (x->args.empty()) return x;
    ir::ExprNode node = *x;
    for (Expr& a : node.args) a = Of(a);
    if (node.buffer) node.buffer = OwnOr(buffers_, node.buffer);
    return std::make_shared<const ir::ExprNode>(std::move(node));
  }

  std::map<ir::Var, ir::Var> vars_;
  std::map<ir::BufferRef, ir::BufferRef> buffers_;
};

bool HaveSameEnds(const Stmt& a, const Stmt& b) {
  return ir::Equal(a->begin, b->begin) && ir::Equal(a->end, b->end) && ir::Equal(a->step, b->step);
}

// `a` and its copy `b` in turns.
Stmt InTurns(const Stmt& a, const Stmt& b) {
  if (a->kind == StmtKind::kBlock && b->kind == StmtKind::kBlock && a->body.size() == b->body.size()) {
    std::vector<Stmt> turns;
    for (size_t i = 0; i < a->body.size(); ++i) turns.push_back(InTurns(a->body[i], b->body[i]));
    return ir::Block(std::move(turns));
  }
  if (a->kind == StmtKind::kFor && b->kind == StmtKind::kFor && HaveSameEnds(a, b)) {
    ir::StmtNode both = *a;
    both.body = {InTurns(a->body[0], ir::Substitute(b->body[0], b->var, ir::Ref(a->var)))};
    return std::make_shared<const ir::StmtNode>(std::move(both));
  }
  return ir::Block({a, b});
}

}  // namespace

Stmt Jammed(const Stmt& body, const ir::Var& item, const Expr& first, const Expr& second) {
  return InTurns(ir::Substitute(body, item, first), ir::Substitute(Copy(body).Of(body), item, second));
}

}  // namespace hlorun::opencl
