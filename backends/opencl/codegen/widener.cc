#include "backends/opencl/codegen/widener.h"

#include <algorithm>
#include <numeric>

#include "hlo/error.h"

namespace hlorun::opencl {

using namespace ir;  // NOLINT: this file is about nothing else

namespace {

void Collect(const Expr& x, LoopEffects& effects) {
  if (x->kind == ExprKind::kLoad) effects.loaded.insert(x->buffer.get());
  for (const Expr& a : x->args) Collect(a, effects);
}

void Collect(const Stmt& s, LoopEffects& effects) {
  if (s->kind == StmtKind::kAssign) effects.assigned.insert(s->var.get());
  if (s->kind == StmtKind::kStore) effects.stored.insert(s->buffer.get());
  for (const Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*e) Collect(*e, effects);
  }
  for (const Stmt& b : s->body) Collect(b, effects);
}

Expr MakeRamp(const Expr& base, const Expr& stride, int lanes) {
  return IsIntConstant(stride, 0) ? base : Ramp(base, stride, lanes);
}

// Sums and products of ramps and scalars are ramps.
Expr RampOf(const Expr& x, const std::vector<Expr>& args) {
  const auto is_ramp = [](const Expr& e) { return e->kind == ExprKind::kRamp; };
  const auto is_scalar = [](const Expr& e) { return e->type.lanes == 1; };
  if (x->kind == ExprKind::kCast && is_ramp(args[0]) &&
      hlo::BitsOf(x->type.element) > hlo::BitsOf(args[0]->type.element) && hlo::IsSigned(x->type.element) &&
      hlo::IsSigned(args[0]->type.element)) {
    return MakeRamp(Cast(args[0]->args[0], x->type.element), Cast(args[0]->args[1], x->type.element),
                    args[0]->type.lanes);
  }
  if (x->kind != ExprKind::kBinary || !hlo::IsInteger(x->type.element)) return nullptr;
  const Expr &a = args[0], &b = args[1];
  const int lanes = std::max(a->type.lanes, b->type.lanes);
  if (x->op == Op::kAdd || x->op == Op::kSub) {
    if (is_ramp(a) && is_scalar(b)) return MakeRamp(Binary(x->op, a->args[0], b), a->args[1], lanes);
    if (is_scalar(a) && is_ramp(b))
      return MakeRamp(Binary(x->op, a, b->args[0]), Binary(x->op, Zero(a->type), b->args[1]), lanes);
    if (is_ramp(a) && is_ramp(b))
      return MakeRamp(Binary(x->op, a->args[0], b->args[0]), Binary(x->op, a->args[1], b->args[1]), lanes);
  }
  if (x->op == Op::kMul) {
    if (is_ramp(a) && is_scalar(b)) return MakeRamp(Mul(a->args[0], b), Mul(a->args[1], b), lanes);
    if (is_scalar(a) && is_ramp(b)) return MakeRamp(Mul(a, b->args[0]), Mul(a, b->args[1]), lanes);
  }
  return nullptr;
}

// Whether neighbouring lanes lie below a bound, where the first lane answers for all: the bound and the first lane are
// multiples of their number. The pieces of a concatenation of whole vectors are told apart so.
Expr UniformBound(const Expr& x, const std::vector<Expr>& args) {
  if (x->kind != ExprKind::kCompare) return nullptr;
  const bool ramp_first = args[0]->kind == ExprKind::kRamp;
  const Expr &ramp = args[ramp_first ? 0 : 1], &bound = args[ramp_first ? 1 : 0];
  const bool tells = ramp_first ? x->op == Op::kLt || x->op == Op::kGe : x->op == Op::kGt || x->op == Op::kLe;
  if (!tells || ramp->kind != ExprKind::kRamp || !IsIntConstant(ramp->args[1], 1) || bound->type.lanes != 1)
    return nullptr;
  const int lanes = ramp->type.lanes;
  if (KnownFactor(ramp->args[0], lanes) != lanes || KnownFactor(bound, lanes) != lanes) return nullptr;
  return ramp_first ? Compare(x->op, ramp->args[0], bound) : Compare(x->op, bound, ramp->args[0]);
}
}  // namespace

LoopEffects EffectsOf(const Stmt& body) {
  LoopEffects effects;
  Collect(body, effects);
  return effects;
}

bool IsRepeatable(const LoopEffects& effects) {
  return std::all_of(effects.stored.begin(), effects.stored.end(), [&](const Buffer* b) {
    return b->restrict_ && b->space == Buffer::Space::kGlobal && effects.loaded.count(b) == 0;
  });
}

int64_t KnownFactor(const Expr& x, int64_t width) {
  switch (x->kind) {
    case ExprKind::kIntConstant: return std::gcd(x->integer, width);
    case ExprKind::kVar: return std::gcd(x->var->factor, width);
    case ExprKind::kCast: return KnownFactor(x->args[0], width);
    case ExprKind::kBinary: break;
    default: return 1;
  }
  if (x->op == Op::kFloorDiv && x->args[1]->kind == ExprKind::kIntConstant) {
    const int64_t by = x->args[1]->integer, of_dividend = KnownFactor(x->args[0], width * by);
    return of_dividend % by == 0 ? of_dividend / by : 1;
  }
  const int64_t a = KnownFactor(x->args[0], width), b = KnownFactor(x->args[1], width);
  switch (x->op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMin:
    case Op::kMax:
    case Op::kFloorMod: return std::gcd(a, b);
    case Op::kMul: return std::gcd(a * b, width);
    default: return 1;
  }
}

Widener::Widener(Var loop_var, Expr base, int64_t stride, int width, const LoopEffects& effects, std::string suffix)
    : loop_var_(std::move(loop_var)),
      base_(std::move(base)),
      stride_(stride),
      width_(width),
      effects_(effects),
      suffix_(std::move(suffix)) {}

Stmt Widener::Widen(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::kBlock: {
      std::vector<Stmt> body;
      for (const Stmt& b : s->body) body.push_back(Widen(b));
      return Block(std::move(body));
    }
    case StmtKind::kLet: return WidenLet(s);
    case StmtKind::kAssign: {
      const auto found = widened_.find(s->var.get());
      if (found == widened_.end()) throw CannotWiden{};  // lives outside the loop: lanes would fight over it
      return Assign(found->second, Widen(s->value));
    }
    case StmtKind::kStore: {
      const Expr index = Widen(s->index), value = Widen(s->value);
      if (index->type.lanes == 1 && value->type.lanes > 1) throw CannotWiden{};
      return Store(s->buffer, index, value, s->streaming || Streams(*s->buffer, index));
    }
    case StmtKind::kFor: {
      if (s->role == LoopRole::kParallel || s->role == LoopRole::kVector) throw CannotWiden{};
      const Expr begin = Uniform(s->begin), end = Uniform(s->end);
      return For(s->role, s->var, begin, end, Widen(s->body[0]), s->step->integer);
    }
    case StmtKind::kIf: {
      const Expr condition = Uniform(s->value);
      return If(condition, Widen(s->body[0]), s->body.size() > 1 ? Widen(s->body[1]) : nullptr);
    }
    case StmtKind::kWhile: return While(Uniform(s->value), Widen(s->body[0]));
    case StmtKind::kPrefetch: return Prefetch(s->buffer, Lane(Widen(s->index), 0), s->level);
    case StmtKind::kBarrier:
    case StmtKind::kComment: return s;
    case StmtKind::kDeclareArray:
    case StmtKind::kOutline:
    case StmtKind::kScope:
    case StmtKind::kCall: throw CannotWiden{};
  }
  return s;
}

Stmt Widener::WidenLet(const Stmt& s) {
  const Expr value = Widen(s->value);
  if (value->type.lanes == 1 && effects_.assigned.count(s->var.get()) == 0) return Let(s->var, value);
  const Var wide = MakeVar(s->var->name + suffix_, s->var->type.WithLanes(width_));
  widened_[s->var.get()] = wide;
  // Ramps stay known as such, and what divides their start (pairs of halves twice the lanes): loads through the
  // variable must not become gathers.
  if (value->kind == ExprKind::kRamp && effects_.assigned.count(s->var.get()) == 0) {
    const Var base = MakeVar(s->var->name + suffix_, s->var->type);
    base->factor = KnownFactor(value->args[0], 2 * width_);
    ramps_[s->var.get()] = Ramp(Ref(base), value->args[1], width_);
    return Let(base, value->args[0]);
  }
  return Let(wide, value);
}

// Whole vectors at places that are a multiple of their lanes.
bool Widener::Streams(const Buffer& buffer, const Expr& index) const {
  return buffer.streams && index->kind == ExprKind::kRamp && index->type.lanes == width_ &&
         IsIntConstant(index->args[1], 1) && KnownFactor(index->args[0], width_) == width_;
}

Expr Widener::Uniform(const Expr& x) {
  Expr widened = Widen(x);
  if (widened->type.lanes != 1) throw CannotWiden{};
  return widened;
}

Expr Widener::Widen(const Expr& x) {
  if (x->kind == ExprKind::kVar) {
    if (x->var == loop_var_) return Ramp(base_, Int(stride_, base_->type), width_);
    if (const auto ramp = ramps_.find(x->var.get()); ramp != ramps_.end()) return ramp->second;
    const auto found = widened_.find(x->var.get());
    return found == widened_.end() ? x : Ref(found->second);
  }
  if (x->args.empty()) return x;
  HLORUN_CHECK(x->type.lanes == 1);
  std::vector<Expr> args;
  for (const Expr& a : x->args) args.push_back(Widen(a));
  if (Expr ramp = RampOf(x, args)) return ramp;
  if (Expr uniform = UniformBound(x, args)) return uniform;
  return WithArgs(x, std::move(args));
}

}  // namespace hlorun::opencl
