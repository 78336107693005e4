#include "backends/opencl/codegen/kernel_ir.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hlo/error.h"
#include "hlo/number_types.h"

namespace hlorun::opencl::ir {
namespace {

Expr Make(ExprNode node) { return std::make_shared<const ExprNode>(std::move(node)); }
Stmt MakeStmt(StmtNode node) { return std::make_shared<const StmtNode>(std::move(node)); }

bool IsInt(const Expr& x) { return x->kind == ExprKind::kIntConstant; }
bool IsReal(const Expr& x) { return x->kind == ExprKind::kFloatConstant; }

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

std::optional<int64_t> FoldInts(Op op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd: return static_cast<int64_t>(ua + ub);
    case Op::kSub: return static_cast<int64_t>(ua - ub);
    case Op::kMul: return static_cast<int64_t>(ua * ub);
    case Op::kDiv: return b == 0 || b == -1 ? std::nullopt : std::optional(a / b);
    case Op::kMod: return b == 0 || b == -1 ? std::nullopt : std::optional(a % b);
    case Op::kFloorDiv: return b <= 0 ? std::nullopt : std::optional(FloorDivide(a, b));
    case Op::kFloorMod: return b <= 0 ? std::nullopt : std::optional(a - FloorDivide(a, b) * b);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kAnd: return a & b;
    case Op::kOr: return a | b;
    case Op::kXor: return a ^ b;
    default: return std::nullopt;
  }
}

bool CompareInts(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kEq: return a == b;
    case Op::kNe: return a != b;
    case Op::kLt: return a < b;
    case Op::kLe: return a <= b;
    case Op::kGt: return a > b;
    default: return a >= b;
  }
}

// Signed folding is right for unsigned 64-bit constants only where both lie below 2^63.
bool FoldsAsSigned(const Expr& x, const Expr& y) {
  return x->type.element != ElementType::kU64 || (x->integer >= 0 && y->integer >= 0);
}

// x op y where one of them is a neutral or absorbing integer; null when nothing applies.
Expr FoldNeutral(Op op, const Expr& x, const Expr& y) {
  const bool is_pred = x->type.element == ElementType::kPred;
  switch (op) {
    case Op::kAdd:
      if (IsIntConstant(y, 0)) return x;
      if (IsIntConstant(x, 0)) return y;
      break;
    case Op::kSub:
      if (IsIntConstant(y, 0)) return x;
      break;
    case Op::kMul:
      if (IsIntConstant(y, 1) || IsIntConstant(x, 0)) return x;
      if (IsIntConstant(x, 1) || IsIntConstant(y, 0)) return y;
      break;
    case Op::kDiv:
    case Op::kFloorDiv:
      if (IsIntConstant(y, 1)) return x;
      break;
    case Op::kMod:
    case Op::kFloorMod:
      if (IsIntConstant(y, 1)) return Zero(x->type);
      break;
    case Op::kAnd:
      if (is_pred && IsInt(x)) return x->integer != 0 ? y : x;
      if (is_pred && IsInt(y)) return y->integer != 0 ? x : y;
      break;
    case Op::kOr:
      if (is_pred && IsInt(x)) return x->integer != 0 ? x : y;
      if (is_pred && IsInt(y)) return y->integer != 0 ? y : x;
      break;
    default: break;
  }
  return nullptr;
}

// Gives both the same number of lanes.
void MatchLanes(Expr& x, Expr& y) {
  const int lanes = std::max(x->type.lanes, y->type.lanes);
  x = Splat(x, lanes);
  y = Splat(y, lanes);
}

}  // namespace

// --- expressions -----------------------------------------------------------------------------------------------------

Expr Int(int64_t value, Type type) {
  if (type.element == ElementType::kPred)
    value = value != 0 ? 1 : 0;
  else
    value = hlo::WrapInteger(type.element, value);
  return Make({.kind = ExprKind::kIntConstant, .type = type, .integer = value});
}

Expr Real(double value, Type type) {
  if (type.element == ElementType::kF32) value = static_cast<float>(value);
  return Make({.kind = ExprKind::kFloatConstant, .type = type, .real = value});
}

Expr Pred(bool value) { return Int(value ? 1 : 0, kPredType); }
Expr Zero(Type type) { return hlo::IsFloating(type.element) ? Real(0, type) : Int(0, type); }
Expr Constant(double value, Type type) {
  return hlo::IsFloating(type.element) ? Real(value, type) : Int(static_cast<int64_t>(value), type);
}

Expr Ref(const Var& var) { return Make({.kind = ExprKind::kVar, .type = var->type, .var = var}); }

Expr Unary(Op op, const Expr& x) {
  HLORUN_CHECK(op == Op::kNeg || op == Op::kNot);
  if (op == Op::kNot && x->type.element == ElementType::kPred && IsInt(x)) return Int(1 - x->integer, x->type);
  if (op == Op::kNeg && IsInt(x)) return Int(FoldInts(Op::kSub, 0, x->integer).value(), x->type);
  if (op == Op::kNeg && IsReal(x)) return Real(-x->real, x->type);
  return Make({.kind = ExprKind::kUnary, .type = x->type, .op = op, .args = {x}});
}
Expr Not(const Expr& x) { return Unary(Op::kNot, x); }

Expr Binary(Op op, const Expr& x0, const Expr& y0) {
  Expr x = x0, y = y0;
  HLORUN_CHECK(x->type.element == y->type.element);
  HLORUN_CHECK(op <= Op::kShr);
  MatchLanes(x, y);
  if (IsInt(x) && IsInt(y) && FoldsAsSigned(x, y)) {
    if (auto folded = FoldInts(op, x->integer, y->integer)) return Int(*folded, x->type);
  }
  if (Expr folded = FoldNeutral(op, x, y)) return folded;
  // (x + c) + d, which index arithmetic is full of.
  if ((op == Op::kAdd || op == Op::kSub) && IsInt(y) && x->kind == ExprKind::kBinary && x->op == Op::kAdd &&
      IsInt(x->args[1])) {
    const int64_t sum = FoldInts(op, x->args[1]->integer, y->integer).value();
    return Binary(Op::kAdd, x->args[0], Int(sum, x->type));
  }
  if (op == Op::kAdd && IsInt(x)) std::swap(x, y);
  return Make({.kind = ExprKind::kBinary, .type = x->type, .op = op, .args = {x, y}});
}

Expr Compare(Op op, const Expr& x0, const Expr& y0) {
  Expr x = x0, y = y0;
  HLORUN_CHECK(x->type.element == y->type.element);
  HLORUN_CHECK(op >= Op::kEq && op <= Op::kGe);
  MatchLanes(x, y);
  const Type type{ElementType::kPred, x->type.lanes};
  if (IsInt(x) && IsInt(y) && FoldsAsSigned(x, y)) return Int(CompareInts(op, x->integer, y->integer), type);
  return Make({.kind = ExprKind::kCompare, .type = type, .op = op, .args = {x, y}});
}

Expr Select(const Expr& condition, const Expr& on_true, const Expr& on_false) {
  HLORUN_CHECK(condition->type.element == ElementType::kPred);
  HLORUN_CHECK(on_true->type.element == on_false->type.element);
  Expr a = on_true, b = on_false;
  MatchLanes(a, b);
  if (IsInt(condition) && condition->type.lanes <= a->type.lanes) return condition->integer != 0 ? a : b;
  if (a == b && condition->type.lanes <= a->type.lanes) return a;
  const int lanes = std::max(condition->type.lanes, a->type.lanes);
  a = Splat(a, lanes);
  b = Splat(b, lanes);
  // A scalar condition picks whole vectors.
  return Make({.kind = ExprKind::kSelect, .type = a->type, .args = {condition, a, b}});
}

Expr Cast(const Expr& x, ElementType to) {
  if (x->type.element == to) return x;
  const Type type{to, x->type.lanes};
  if (IsInt(x)) {
    if (to == ElementType::kPred) return Int(x->integer != 0, type);
    if (hlo::IsInteger(to)) return Int(x->integer, type);
    constexpr int64_t kExact = 1 << 24;
    const bool is_small = x->integer > -kExact && x->integer < kExact;
    const bool is_huge = x->type.element == ElementType::kU64 && x->integer < 0;  // 2^63 and more
    if (hlo::IsFloating(to) && is_small && !is_huge) return Real(static_cast<double>(x->integer), type);
  }
  if (IsReal(x) && hlo::IsFloating(to) && to != ElementType::kF16) return Real(x->real, type);
  return Make({.kind = ExprKind::kCast, .type = type, .args = {x}});
}

Expr BitCast(const Expr& x, ElementType to) {
  if (x->type.element == to) return x;
  HLORUN_CHECK(hlo::BitsOf(x->type.element) == hlo::BitsOf(to));
  if (x->kind == ExprKind::kBitCast) return BitCast(x->args[0], to);
  return Make({.kind = ExprKind::kBitCast, .type = {to, x->type.lanes}, .args = {x}});
}

Expr Call(Type type, const std::string& function, std::vector<Expr> args) {
  return Make({.kind = ExprKind::kCall, .type = type, .function = function, .args = std::move(args)});
}

Expr Half(const Expr& x, const char* which) {
  HLORUN_CHECK(x->type.lanes > 1);
  return Call(x->type.WithLanes(x->type.lanes / 2), which, {x});
}

Expr ShiftedLanes(const Expr& x, int64_t by) {
  HLORUN_CHECK(x->type.lanes > 1);
  return Call(x->type, kShiftedLanes, {x, Int(by)});
}

Expr Address(const BufferRef& buffer, const Expr& index) {
  return Call({ElementType::kU64, 1}, kAddress, {Load(buffer, index)});
}

Expr Load(const BufferRef& buffer, const Expr& index, const Expr& predicate) {
  HLORUN_CHECK(hlo::IsInteger(index->type.element));
  std::vector<Expr> args = {index};
  int lanes = index->type.lanes;
  if (predicate && IsInt(predicate) && predicate->integer == 0) {
    return Zero({ComputeType(buffer->storage), std::max(lanes, predicate->type.lanes)});
  }
  if (predicate && !IsInt(predicate)) {
    args.push_back(predicate);
    lanes = std::max(lanes, predicate->type.lanes);
    args[0] = Splat(index, lanes);
  }
  return Make({.kind = ExprKind::kLoad,
               .type = {ComputeType(buffer->storage), lanes},
               .buffer = buffer,
               .args = std::move(args)});
}

Expr Ramp(const Expr& base, const Expr& stride, int lanes) {
  HLORUN_CHECK(base->type.lanes == 1 && stride->type == base->type);
  if (lanes == 1) return base;
  return Make({.kind = ExprKind::kRamp, .type = base->type.WithLanes(lanes), .args = {base, stride}});
}
Expr Ramp(const Expr& base, int lanes) { return Ramp(base, Int(1, base->type), lanes); }

Expr Splat(const Expr& x, int lanes) {
  if (x->type.lanes == lanes) return x;
  HLORUN_CHECK(x->type.lanes == 1);
  const Type type = x->type.WithLanes(lanes);
  if (IsInt(x)) return Int(x->integer, type);
  if (IsReal(x)) return Real(x->real, type);
  return Make({.kind = ExprKind::kBroadcast, .type = type, .args = {x}});
}

Expr ReduceLanes(Op op, const Expr& x) {
  if (x->type.lanes == 1) return x;
  return Make({.kind = ExprKind::kReduceLanes, .type = x->type.WithLanes(1), .op = op, .args = {x}});
}

Expr Lane(const Expr& x, int64_t lane) {
  if (x->type.lanes == 1) return x;
  HLORUN_CHECK(lane >= 0 && lane < x->type.lanes);
  if (IsInt(x)) return Int(x->integer, x->type.WithLanes(1));
  if (IsReal(x)) return Real(x->real, x->type.WithLanes(1));
  if (x->kind == ExprKind::kBroadcast) return x->args[0];
  if (x->kind == ExprKind::kRamp) return Add(x->args[0], Mul(x->args[1], Int(lane, x->args[1]->type)));
  return Make({.kind = ExprKind::kLane, .type = x->type.WithLanes(1), .integer = lane, .args = {x}});
}

Expr Fma(const Expr& a, const Expr& b, const Expr& c) {
  const int lanes = std::max({a->type.lanes, b->type.lanes, c->type.lanes});
  return Call(c->type.WithLanes(lanes), "fma", {Splat(a, lanes), Splat(b, lanes), Splat(c, lanes)});
}

Expr operator+(const Expr& x, int64_t y) { return Add(x, Int(y, x->type)); }
Expr operator-(const Expr& x, int64_t y) { return Sub(x, Int(y, x->type)); }
Expr operator*(const Expr& x, int64_t y) { return Mul(x, Int(y, x->type)); }

bool IsIntConstant(const Expr& x, int64_t value) { return IsInt(x) && x->integer == value; }
bool IsConstant(const Expr& x) { return IsInt(x) || IsReal(x); }

bool Equal(const Expr& x, const Expr& y) {
  if (x == y) return true;
  if (x->kind != y->kind || x->type != y->type || x->op != y->op || x->integer != y->integer ||
      x->function != y->function || x->var != y->var || x->buffer != y->buffer || x->args.size() != y->args.size()) {
    return false;
  }
  if (IsReal(x) && std::signbit(x->real) != std::signbit(y->real)) return false;
  if (IsReal(x) && !(x->real == y->real || (std::isnan(x->real) && std::isnan(y->real)))) return false;
  return std::equal(x->args.begin(), x->args.end(), y->args.begin(), Equal);
}

namespace {

// What is added up, constants apart.
struct Sum {
  std::vector<Expr> terms;
  int64_t constant = 0;

  void Add(const Expr& x) {
    if (IsInt(x)) {
      constant += x->integer;
    } else if (x->kind == ExprKind::kBinary && x->op == Op::kAdd) {
      for (const Expr& a : x->args) Add(a);
    } else {
      terms.push_back(x);
    }
  }
};

}  // namespace

std::optional<int64_t> ConstantDifference(const Expr& x, const Expr& y) {
  if (!hlo::IsInteger(x->type.element)) return std::nullopt;
  Sum a, b;
  a.Add(x);
  b.Add(y);
  if (a.terms.size() != b.terms.size()) return std::nullopt;
  for (const Expr& term : a.terms) {
    const auto same =
        std::find_if(b.terms.begin(), b.terms.end(), [&](const Expr& other) { return Equal(term, other); });
    if (same == b.terms.end()) return std::nullopt;
    b.terms.erase(same);
  }
  return a.constant - b.constant;
}

ElementType ComputeType(ElementType storage) {
  switch (storage) {
    case ElementType::kS1:
    case ElementType::kS2:
    case ElementType::kS4: return ElementType::kS8;
    case ElementType::kU1:
    case ElementType::kU2:
    case ElementType::kU4: return ElementType::kU8;
    case ElementType::kF64: return ElementType::kF64;
    default: return hlo::IsFloating(storage) ? ElementType::kF32 : storage;
  }
}

// --- statements ------------------------------------------------------------------------------------------------------

Var MakeVar(const std::string& name, Type type) { return std::make_shared<Variable>(Variable{name, type}); }
Var MakeIndex(const std::string& name, int64_t min, int64_t max, Type type) {
  return std::make_shared<Variable>(Variable{name, type, min, max});
}
BufferRef MakeBuffer(const std::string& name, ElementType storage, int64_t size, Buffer::Space space, bool written) {
  HLORUN_CHECK(!hlo::IsComplex(storage));
  return std::make_shared<Buffer>(
      Buffer{.name = name, .storage = storage, .space = space, .size = size, .written = written});
}

Stmt Block(std::vector<Stmt> statements) {
  std::vector<Stmt> flat;
  for (Stmt& s : statements) {
    if (!s) continue;
    if (s->kind == StmtKind::kBlock)
      flat.insert(flat.end(), s->body.begin(), s->body.end());
    else
      flat.push_back(std::move(s));
  }
  return MakeStmt({.kind = StmtKind::kBlock, .body = std::move(flat)});
}

Stmt Let(const Var& var, const Expr& value) {
  HLORUN_CHECK(var->type.element == value->type.element);
  return MakeStmt({.kind = StmtKind::kLet, .var = var, .value = Splat(value, var->type.lanes)});
}

Stmt Assign(const Var& var, const Expr& value) {
  HLORUN_CHECK(var->type.element == value->type.element);
  return MakeStmt({.kind = StmtKind::kAssign, .var = var, .value = Splat(value, var->type.lanes)});
}

Stmt Store(const BufferRef& buffer, const Expr& index, const Expr& value, bool streaming) {
  const bool is_pairs = buffer->storage == ElementType::kBF16 && value->type.element == ElementType::kU32;
  HLORUN_CHECK(is_pairs || value->type.element == ComputeType(buffer->storage));
  const int lanes = std::max(index->type.lanes, value->type.lanes);
  return MakeStmt({.kind = StmtKind::kStore,
                   .value = Splat(value, lanes),
                   .index = Splat(index, lanes),
                   .buffer = buffer,
                   .streaming = streaming});
}

Stmt For(LoopRole role, const Var& var, const Expr& begin, const Expr& end, const Stmt& body, int64_t step, int width) {
  HLORUN_CHECK(begin->type == var->type && end->type == var->type && step > 0);
  return MakeStmt({.kind = StmtKind::kFor,
                   .body = {body},
                   .var = var,
                   .begin = begin,
                   .end = end,
                   .step = Int(step, var->type),
                   .role = role,
                   .width = width});
}

Stmt WithPairs(const Stmt& vector_loop) {
  StmtNode node = *vector_loop;
  HLORUN_CHECK(node.kind == StmtKind::kFor && node.role == LoopRole::kVector);
  node.pairs = true;
  return MakeStmt(std::move(node));
}

Stmt Unrolled(const Stmt& serial_loop, int times) {
  StmtNode node = *serial_loop;
  HLORUN_CHECK(node.kind == StmtKind::kFor && node.role == LoopRole::kSerial);
  node.unroll = times;
  return MakeStmt(std::move(node));
}

Stmt If(const Expr& condition, const Stmt& then, const Stmt& otherwise) {
  HLORUN_CHECK(condition->type == kPredType);
  if (IsInt(condition)) return condition->integer != 0 ? then : (otherwise ? otherwise : Block({}));
  std::vector<Stmt> body = {then};
  if (otherwise) body.push_back(otherwise);
  return MakeStmt({.kind = StmtKind::kIf, .body = std::move(body), .value = condition});
}

Stmt While(const Expr& condition, const Stmt& body) {
  HLORUN_CHECK(condition->type == kPredType);
  return MakeStmt({.kind = StmtKind::kWhile, .body = {body}, .value = condition});
}

Stmt Barrier() { return MakeStmt({.kind = StmtKind::kBarrier}); }
Stmt DeclareArray(const BufferRef& buffer) { return MakeStmt({.kind = StmtKind::kDeclareArray, .buffer = buffer}); }
Stmt Prefetch(const BufferRef& buffer, const Expr& index, CacheLevel level) {
  return MakeStmt({.kind = StmtKind::kPrefetch, .index = index, .buffer = buffer, .level = level});
}
Stmt CallStatement(const Expr& call) { return MakeStmt({.kind = StmtKind::kCall, .value = call}); }
Stmt SetBits(const BufferRef& buffer, const Expr& index, const Expr& bits) {
  return CallStatement(Call({ElementType::kU32, 1}, kSetBits, {Load(buffer, index), bits}));
}
Stmt Scope(const Stmt& body) { return MakeStmt({.kind = StmtKind::kScope, .body = {body}}); }
Stmt Outline(const Stmt& body) { return MakeStmt({.kind = StmtKind::kOutline, .body = {body}}); }
Stmt Comment(const std::string& text) { return MakeStmt({.kind = StmtKind::kComment, .text = text}); }

// --- rewriting -------------------------------------------------------------------------------------------------------

Expr WithArgs(const Expr& x, std::vector<Expr> args) {
  switch (x->kind) {
    case ExprKind::kUnary: return Unary(x->op, args[0]);
    case ExprKind::kBinary: return Binary(x->op, args[0], args[1]);
    case ExprKind::kCompare: return Compare(x->op, args[0], args[1]);
    case ExprKind::kSelect: return Select(args[0], args[1], args[2]);
    case ExprKind::kCast: return Cast(args[0], x->type.element);
    case ExprKind::kBitCast: return BitCast(args[0], x->type.element);
    case ExprKind::kLoad: return Load(x->buffer, args[0], args.size() > 1 ? args[1] : nullptr);
    case ExprKind::kRamp: return Ramp(args[0], args[1], x->type.lanes);
    case ExprKind::kBroadcast: return Splat(args[0], x->type.lanes);
    case ExprKind::kReduceLanes: return ReduceLanes(x->op, args[0]);
    case ExprKind::kLane: return Lane(args[0], x->integer);
    case ExprKind::kCall: {
      int lanes = x->type.lanes;
      for (const Expr& a : args) lanes = std::max(lanes, a->type.lanes);
      for (size_t i = 0; i < args.size(); ++i) {
        // An argument that was as wide as the result stays so.
        if (x->args[i]->type.lanes == x->type.lanes) args[i] = Splat(args[i], lanes);
      }
      return Call(x->type.WithLanes(lanes), x->function, std::move(args));
    }
    default: return x;
  }
}

namespace {

Expr Rewrite(const Expr& x, const Rewriting& rewriting) {
  if (Expr with = rewriting(x)) return with;
  if (x->args.empty()) return x;
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& a : x->args) {
    args.push_back(Rewrite(a, rewriting));
    changed |= args.back() != a;
  }
  return changed ? WithArgs(x, std::move(args)) : x;
}

Rewriting VariableBy(const Var& var, const Expr& with) {
  return [&](const Expr& x) { return x->kind == ExprKind::kVar && x->var == var ? with : nullptr; };
}

}  // namespace

Stmt Rewrite(const Stmt& s, const Rewriting& rewriting) {
  StmtNode node = *s;
  for (Stmt& b : node.body) b = Rewrite(b, rewriting);
  for (Expr* e : {&node.value, &node.index, &node.begin, &node.end, &node.step}) {
    if (*e) *e = Rewrite(*e, rewriting);
  }
  return MakeStmt(std::move(node));
}

Expr Substitute(const Expr& x, const Var& var, const Expr& with) { return Rewrite(x, VariableBy(var, with)); }
Stmt Substitute(const Stmt& s, const Var& var, const Expr& with) { return Rewrite(s, VariableBy(var, with)); }
Stmt Replace(const Stmt& s, const Expr& what, const Expr& with) {
  return Rewrite(s, [&](const Expr& x) { return Equal(x, what) ? with : nullptr; });
}

bool Uses(const Expr& x, const Var& var) {
  if (x->kind == ExprKind::kVar) return x->var == var;
  return std::any_of(x->args.begin(), x->args.end(), [&](const Expr& a) { return Uses(a, var); });
}

namespace {

bool Names(const Expr& x, const Buffer* buffer) {
  return x->buffer.get() == buffer ||
         std::any_of(x->args.begin(), x->args.end(), [&](const Expr& a) { return Names(a, buffer); });
}

bool Loads(const Stmt& s, const Buffer* buffer) {
  for (const Expr* x : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*x && Names(*x, buffer)) return true;
  }
  return std::any_of(s->body.begin(), s->body.end(), [&](const Stmt& b) { return Loads(b, buffer); });
}

}  // namespace

std::vector<bool> OverwrittenParameters(const Function& function) {
  std::vector<bool> overwritten;
  for (const BufferRef& p : function.parameters) overwritten.push_back(p->written && !Loads(function.body, p.get()));
  return overwritten;
}

}  // namespace hlorun::opencl::ir
