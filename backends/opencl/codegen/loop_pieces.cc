#include "backends/opencl/codegen/loop_pieces.h"

#include <algorithm>
#include <optional>
#include <set>

#include "backends/opencl/codegen/index_math.h"
#include "backends/opencl/codegen/load_strides.h"
#include "backends/opencl/codegen/widener.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

constexpr int64_t kFewestVectors = 4;  // that a loop must have to be worth several, where masks cost little
// Each cut makes up to three pieces more, each a body that the device's compiler reads.
constexpr size_t kMostCuts = 4;

// variable + shift, compared with a number on either side.
struct Comparison {
  Expr expr;
  bool number_first = false;
  int64_t shift = 0, number = 0;

  // The answer where the variable has this value: a constant.
  Expr At(int64_t variable) const {
    std::vector<Expr> args = expr->args;
    Expr& side = args[number_first ? 1 : 0];
    side = Int(variable + shift, side->type);
    return WithArgs(expr, std::move(args));
  }

  // The variable's values at which the answer differs from that of the value before.
  std::vector<int64_t> Cuts() const {
    const int64_t equal = number - shift;
    std::vector<int64_t> cuts;
    for (const int64_t at : {equal, equal + 1}) {
      if (!Equal(At(at - 1), At(at))) cuts.push_back(at);
    }
    return cuts;
  }
};

std::optional<Comparison> ComparisonOf(const Expr& x, const Var& variable) {
  if (x->kind != ExprKind::kCompare || x->args[0]->type != variable->type || !hlo::IsSigned(variable->type.element))
    return std::nullopt;
  const bool number_first = x->args[0]->kind == ExprKind::kIntConstant;
  const Expr &number = x->args[number_first ? 0 : 1], &side = x->args[number_first ? 1 : 0];
  if (number->kind != ExprKind::kIntConstant || !Uses(side, variable)) return std::nullopt;
  const std::optional<int64_t> shift = ConstantDifference(side, Ref(variable));
  if (!shift) return std::nullopt;
  return Comparison{x, number_first, *shift, number->integer};
}

void Collect(const Expr& x, const Var& variable, std::vector<Comparison>& found) {
  if (const auto comparison = ComparisonOf(x, variable)) {
    const auto is_known = [&](const Comparison& known) { return Equal(known.expr, x); };
    if (std::none_of(found.begin(), found.end(), is_known)) found.push_back(*comparison);
    return;
  }
  for (const Expr& a : x->args) Collect(a, variable, found);
}

void Collect(const Stmt& s, const Var& variable, std::vector<Comparison>& found) {
  for (const Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*e) Collect(*e, variable, found);
  }
  for (const Stmt& b : s->body) Collect(b, variable, found);
}

// Whether the body asks for each lane of a load that is no whole vector: every one of them is a branch.
bool AsksForLanes(const Stmt& body, const Var& variable) {
  const LoadStrides strides(body);
  return std::any_of(strides.loads().begin(), strides.loads().end(),
                     [&](const Expr& load) { return load->args.size() > 1 && strides.Of(load, variable) != 1; });
}

// Names of numbers become the numbers, which folds what they decide.
Stmt WithoutNamedNumbers(const Stmt& body, const LoopEffects& effects) {
  if (body->kind == StmtKind::kFor) {
    auto inner = std::make_shared<StmtNode>(*body);
    inner->body[0] = WithoutNamedNumbers(body->body[0], effects);
    return inner;
  }
  if (body->kind != StmtKind::kBlock) return body;
  std::vector<Stmt> left = body->body, kept;
  for (size_t i = 0; i < left.size(); ++i) {
    const Stmt s = left[i];
    if (s->kind != StmtKind::kLet || !IsConstant(s->value) || effects.assigned.count(s->var.get()) != 0) {
      kept.push_back(WithoutNamedNumbers(s, effects));
      continue;
    }
    for (size_t j = i + 1; j < left.size(); ++j) left[j] = Substitute(left[j], s->var, s->value);
  }
  return Block(std::move(kept));
}

// An index as a linear form; nullopt where it is none.
std::optional<Index> FormOf(const Expr& x, IndexMath& math) {
  if (x->kind == ExprKind::kIntConstant) return Index(x->integer);
  if (x->kind == ExprKind::kVar && x->type == math.type()) return math.Of(x->var);
  if (x->kind != ExprKind::kBinary || x->type != math.type()) return std::nullopt;
  const std::optional<Index> a = FormOf(x->args[0], math), b = FormOf(x->args[1], math);
  if (!a || !b) return std::nullopt;
  if (x->op == Op::kAdd) return math.Add(*a, *b);
  if (x->op == Op::kSub) return math.Sub(*a, *b);
  if (!b->IsConstant()) return std::nullopt;
  if (x->op == Op::kMul) return math.Mul(*a, b->constant);
  if (b->constant <= 0) return std::nullopt;
  if (x->op == Op::kFloorDiv) return math.FloorDiv(*a, b->constant);
  if (x->op == Op::kFloorMod) return math.Mod(*a, b->constant);
  return std::nullopt;
}

bool DividesBy(const Expr& x, const Var& variable) {
  if (x->kind == ExprKind::kBinary && (x->op == Op::kFloorDiv || x->op == Op::kFloorMod) && Uses(x, variable))
    return true;
  return std::any_of(x->args.begin(), x->args.end(), [&](const Expr& a) { return DividesBy(a, variable); });
}

// The body for a piece of the loop: what divided the variable may have nothing left to do in its shorter range.
Stmt OfPiece(const Stmt& body, const Var& variable, const Var& piece) {
  IndexMath math(variable->type);
  return Rewrite(Substitute(body, variable, Ref(piece)), [&](const Expr& x) -> Expr {
    if (x->kind != ExprKind::kBinary || x->type != math.type() || !DividesBy(x, piece)) return nullptr;
    const std::optional<Index> form = FormOf(x, math);
    return form ? math.ToExpr(*form) : nullptr;
  });
}

// A comparison of which the variable is not all: within a window it is the variable's place and the tap's.
struct RangedComparison {
  Expr expr;

  // The answer where the variable is in [from, to), or none that holds for all.
  std::optional<bool> In(const Var& variable, int64_t from, int64_t to) const {
    IndexMath math(variable->type);
    const Var part = MakeIndex(variable->name, from, to - 1, variable->type);
    const auto side = [&](size_t i) { return FormOf(ir::Substitute(expr->args[i], variable, Ref(part)), math); };
    const std::optional<Index> a = side(0), b = side(1);
    if (!a || !b) return std::nullopt;
    const Range difference = math.RangeOf(math.Sub(*a, *b));
    const bool is_less = expr->op == Op::kLt || expr->op == Op::kGe;
    // a < b, or a <= b, and their opposites.
    const int64_t bound = is_less ? 0 : 1;
    const bool opposite = expr->op == Op::kGe || expr->op == Op::kGt;
    if (difference.max < bound) return !opposite;
    if (difference.min >= bound) return opposite;
    return std::nullopt;
  }
};

void CollectRanged(const Expr& x, const Var& variable, std::vector<RangedComparison>& found) {
  constexpr Op kOrders[] = {Op::kLt, Op::kLe, Op::kGt, Op::kGe};
  if (x->kind == ExprKind::kCompare && x->args[0]->type == variable->type && Uses(x, variable) &&
      std::find(std::begin(kOrders), std::end(kOrders), x->op) != std::end(kOrders) && !ComparisonOf(x, variable)) {
    found.push_back({x});
    return;
  }
  for (const Expr& a : x->args) CollectRanged(a, variable, found);
}

void CollectRanged(const Stmt& s, const Var& variable, std::vector<RangedComparison>& found) {
  for (const Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
    if (*e) CollectRanged(*e, variable, found);
  }
  for (const Stmt& b : s->body) CollectRanged(b, variable, found);
}

// The whole vectors in the middle of a loop in which ranged comparisons have one answer, and the body there.
struct Interior {
  int64_t begin = 0, end = 0;
  std::vector<std::pair<Expr, bool>> answers;
};

std::optional<Interior> InteriorOf(const Stmt& loop) {
  const int64_t begin = loop->begin->integer, end = loop->end->integer, width = loop->width;
  std::vector<RangedComparison> comparisons;
  CollectRanged(loop->body[0], loop->var, comparisons);
  Interior interior;
  interior.begin = begin + (end - begin) / width / 2 * width;
  interior.end = interior.begin + width;
  if (interior.end > end) return std::nullopt;
  std::vector<RangedComparison> decided;
  for (const RangedComparison& comparison : comparisons) {
    const std::optional<bool> answer = comparison.In(loop->var, interior.begin, interior.end);
    if (!answer) continue;
    decided.push_back(comparison);
    interior.answers.emplace_back(comparison.expr, *answer);
  }
  if (decided.empty()) return std::nullopt;
  const auto holds = [&](int64_t from, int64_t to) {
    for (size_t i = 0; i < decided.size(); ++i) {
      if (decided[i].In(loop->var, from, to) != interior.answers[i].second) return false;
    }
    return true;
  };
  // The furthest that it reaches, in vectors from the middle.
  const auto furthest = [](int64_t most, const auto& reaches) {
    int64_t least = 0;
    while (least < most) {
      const int64_t middle = least + (most - least + 1) / 2;
      if (reaches(middle))
        least = middle;
      else
        most = middle - 1;
    }
    return least;
  };
  const int64_t from = interior.begin, to = interior.end;
  interior.begin -= width * furthest((from - begin) / width, [&](int64_t v) { return holds(from - v * width, to); });
  interior.end += width * furthest((end - to) / width, [&](int64_t v) { return holds(from, to + v * width); });
  return interior;
}

// The loop in up to three: without what is decided in its interior there, as it is at its ends.
std::vector<Stmt> SplitAtInterior(const Stmt& loop) {
  const std::optional<Interior> interior = InteriorOf(loop);
  if (!interior || interior->end - interior->begin < kFewestVectors * loop->width) return {loop};
  const Type type = loop->var->type;
  std::vector<Stmt> pieces;
  const auto add = [&](int64_t from, int64_t to, const Stmt& body) {
    if (from == to) return;
    const Var variable = MakeIndex(loop->var->name, from, to - 1, type);
    pieces.push_back(For(LoopRole::kVector, variable, Int(from, type), Int(to, type),
                         Substitute(body, loop->var, Ref(variable)), 1, loop->width));
  };
  Stmt inside = loop->body[0];
  for (const auto& [comparison, answer] : interior->answers) inside = Replace(inside, comparison, Pred(answer));
  add(loop->begin->integer, interior->begin, loop->body[0]);
  add(interior->begin, interior->end, WithoutNamedNumbers(inside, EffectsOf(loop->body[0])));
  add(interior->end, loop->end->integer, loop->body[0]);
  return pieces;
}

// Pieces of one whose comparisons are with numbers.
std::vector<Stmt> PiecesAtNumbers(const Stmt& loop) {
  const int64_t begin = loop->begin->integer, end = loop->end->integer, width = loop->width;
  if (end - begin < kFewestVectors * width && !AsksForLanes(loop->body[0], loop->var)) return {loop};
  const LoopEffects effects = EffectsOf(loop->body[0]);
  std::vector<Comparison> comparisons;
  Collect(loop->body[0], loop->var, comparisons);
  std::set<int64_t> cuts;
  for (const Comparison& comparison : comparisons) {
    for (const int64_t cut : comparison.Cuts()) {
      if (begin < cut && cut < end) cuts.insert(cut);
    }
  }
  if (cuts.empty() || cuts.size() > kMostCuts) return {loop};
  std::set<int64_t> bounds = {begin, end};
  for (const int64_t cut : cuts) {
    const int64_t before = begin + (cut - begin) / width * width;
    for (const int64_t bound : {before, cut, cut == before ? cut : before + width}) bounds.insert(std::min(bound, end));
  }
  std::vector<Stmt> pieces;
  for (auto from = bounds.begin(); std::next(from) != bounds.end(); ++from) {
    Stmt body = loop->body[0];
    for (const Comparison& comparison : comparisons) body = Replace(body, comparison.expr, comparison.At(*from));
    const Type type = loop->var->type;
    const int64_t to = *std::next(from);
    const Var variable = MakeIndex(loop->var->name, *from, to - 1, type);
    body = OfPiece(WithoutNamedNumbers(body, effects), loop->var, variable);
    pieces.push_back(For(LoopRole::kVector, variable, Int(*from, type), Int(to, type), body, 1, loop->width));
  }
  return pieces;
}

}  // namespace

std::vector<Stmt> PiecesOf(const Stmt& loop) {
  if (loop->begin->kind != ExprKind::kIntConstant || loop->end->kind != ExprKind::kIntConstant) return {loop};
  std::vector<Stmt> pieces;
  for (const Stmt& part : SplitAtInterior(loop)) {
    const std::vector<Stmt> of_part = PiecesAtNumbers(part);
    pieces.insert(pieces.end(), of_part.begin(), of_part.end());
  }
  return pieces;
}

}  // namespace hlorun::opencl
