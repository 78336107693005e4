#include "backends/opencl/kernels/computed_operand.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "backends/opencl/codegen/fused_values.h"
#include "backends/opencl/codegen/widener.h"
#include "hlo/computation.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// What `value` is made of, itself included.
std::unordered_set<const hlo::Instruction*> MadeOf(const hlo::Instruction& value) {
  std::unordered_set<const hlo::Instruction*> seen = {&value};
  std::vector<const hlo::Instruction*> work = {&value};
  while (!work.empty()) {
    const hlo::Instruction* at = work.back();
    work.pop_back();
    for (const hlo::Instruction* operand : at->operands()) {
      if (seen.insert(operand).second) work.push_back(operand);
    }
  }
  return seen;
}

// A vector's loads with another predicate too. Numbers that are the same for all lanes lie in a line that is there.
Stmt Guarded(const Stmt& s, const Expr& predicate, int lanes) {
  return ir::Rewrite(s, [&](const Expr& x) -> Expr {
    if (x->kind != ir::ExprKind::kLoad || x->type.lanes != lanes || x->buffer->space != ir::Buffer::Space::kGlobal)
      return nullptr;
    const Expr both = x->args.size() > 1 ? ir::And(x->args[1], predicate) : predicate;
    return ir::Load(x->buffer, x->args[0], both);
  });
}

// The linear form that an index of a kernel is, of its loops' variables; nullopt: it is something else.
std::optional<Index> LinearForm(IndexMath& math, const Expr& x) {
  if (x->kind == ir::ExprKind::kIntConstant) return Index(x->integer);
  if (x->type != math.type()) return std::nullopt;
  if (x->kind == ir::ExprKind::kVar) return x->var->max >= x->var->min ? std::optional(math.Of(x->var)) : std::nullopt;
  if (x->kind != ir::ExprKind::kBinary) return std::nullopt;
  const std::optional<Index> a = LinearForm(math, x->args[0]), b = LinearForm(math, x->args[1]);
  if (!a || !b) return std::nullopt;
  switch (x->op) {
    case ir::Op::kAdd: return math.Add(*a, *b);
    case ir::Op::kSub: return math.Sub(*a, *b);
    case ir::Op::kMul:
      if (b->IsConstant()) return math.Mul(*a, b->constant);
      return a->IsConstant() ? std::optional(math.Mul(*b, a->constant)) : std::nullopt;
    default: return std::nullopt;
  }
}

// One computed operand of one kernel.
class Computation {
 public:
  Computation(const hlo::Instruction& value, ir::BufferRef placeholder, Body& body)
      : value_(value), placeholder_(std::move(placeholder)), body_(body) {
    const std::unordered_set<const hlo::Instruction*> all = MadeOf(value);
    for (const hlo::Instruction* parameter : value.parent()->parameters()) {
      if (!all.contains(parameter)) continue;
      const hlo::Shape& shape = parameter->shape();
      const int64_t number = parameter->parameter_number();
      const ir::BufferRef buffer = parameters_.Add(fmt::format("{}_{}", placeholder_->name, number),
                                                   shape.element_type(), shape.ElementCount(), {.number = number});
      buffers_.emplace_back(parameter, buffer);
      if (shape.ElementCount() == value.shape().ElementCount() && main_ == nullptr) main_ = buffer;
      has_far_elements_ |= shape.ElementCount() > std::numeric_limits<int32_t>::max();
    }
  }

  const KernelParameters& parameters() const { return parameters_; }

  // The statement, with what it loads of the operand computed in front of it.
  Stmt Rewrite(const Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::kBlock:
      case ir::StmtKind::kFor:
      case ir::StmtKind::kIf:
      case ir::StmtKind::kWhile:
      case ir::StmtKind::kOutline:
      case ir::StmtKind::kScope: return RewriteInside(s);
      case ir::StmtKind::kPrefetch:
        if (s->buffer != placeholder_) return s;
        return main_ == nullptr ? ir::Block({}) : ir::Prefetch(main_, s->index, s->level);
      default: return RewriteLoads(s);
    }
  }

 private:
  Stmt RewriteInside(const Stmt& s) {
    auto copy = std::make_shared<ir::StmtNode>(*s);
    for (Stmt& inner : copy->body) {
      if (inner != nullptr) inner = Rewrite(inner);
    }
    return copy;
  }

  Stmt RewriteLoads(const Stmt& s) {
    std::vector<Stmt> statements;
    const Stmt rewritten = ir::Rewrite(s, [&](const Expr& x) -> Expr {
      if (x->kind != ir::ExprKind::kLoad || x->buffer != placeholder_) return nullptr;
      return Compute(x, statements);
    });
    statements.push_back(rewritten);
    return statements.size() == 1 ? rewritten : ir::Block(std::move(statements));
  }

  // Adds statements that compute what `load` would read, and returns it.
  Expr Compute(const Expr& load, std::vector<Stmt>& statements) {
    const int lanes = load->type.lanes;
    const Expr& index = load->args[0];
    HLORUN_CHECK(lanes == 1 || (index->kind == ir::ExprKind::kRamp && ir::IsIntConstant(index->args[1], 1)));
    const Expr first = lanes == 1 ? index : index->args[0];
    // The kernel's own indices may be of 32 bits, which need not reach all of what the operand is made of.
    const ir::Type type = has_far_elements_ ? ir::kIndex : first->type;
    const hlo::Dims& dimensions = value_.shape().dimensions();
    const int64_t elements = value_.shape().ElementCount(), along = dimensions.empty() ? 1 : dimensions.back();
    const auto place_of = [&](const char* name, int64_t end, int64_t factor, const Expr& value) {
      const ir::Var var = ir::MakeIndex(body_.FreshName(name), 0, end - 1, type);
      var->factor = factor;
      statements.push_back(ir::Let(var, value));
      return var;
    };
    const int64_t factor = KnownFactor(first, lanes);
    IndexMath math(type);
    std::optional<Index> start = LinearForm(math, first);
    if (!start) start = math.Of(place_of("start", elements, factor, ir::Cast(first, type.element)));
    const Expr predicate = load->args.size() > 1 ? load->args[1] : nullptr;
    Expr line_of = math.ToExpr(math.FloorDiv(*start, along));
    // Of lanes none of which is there, the line need not be either.
    if (predicate) line_of = ir::Min(line_of, ir::Int(elements / along - 1, type));
    const ir::Var line = place_of("line", elements / along, 1, line_of);
    // All lanes that count are of one line, so that none of them goes round its end.
    const Index in_line = math.Mod(*start, along);
    const bool stays_in_line = math.RangeOf(in_line).max <= along - lanes;
    const ir::Var column =
        place_of("column", along > lanes ? along - lanes + 1 : along, std::gcd(factor, along), math.ToExpr(in_line));

    FusedValues values(math, body_);
    Frame& frame = values.NewFrame();
    for (const auto& [parameter, buffer] : buffers_) frame.Bind(parameter, Frame::InMemory{buffer});
    Indices at;
    if (!dimensions.empty()) {
      at = math.Delinearize(math.Of(line), hlo::Dims(dimensions.begin(), dimensions.end() - 1));
      at.push_back(math.Of(column));
    }
    const ir::Var place = ir::MakeIndex(body_.FreshName("place"), 0, lanes - 1, type);
    if (lanes > 1) at.back() = math.Add(at.back(), math.Of(place));
    body_.Open();
    const Expr result = body_.Name(values.Get(frame, value_, at).re, "made");
    Stmt makes = body_.Close();

    Expr made = result;
    if (lanes > 1) {
      const LoopEffects effects = EffectsOf(makes);
      Widener widener(place, ir::Int(0, type), 1, lanes, effects);
      makes = widener.Widen(makes);
      made = ir::Splat(widener.Widen(result), lanes);
    }
    if (predicate) {
      makes = Guarded(makes, predicate, lanes);
      made = ir::Select(predicate, made, ir::Zero(made->type));
    } else if (along % lanes != 0 && !stays_in_line) {
      // Kernels read beyond a line where more of the array lies, and leave those lanes out.
      makes = Guarded(makes, ir::Compare(ir::Op::kLt, ir::Ramp(ir::Ref(column), lanes), ir::Int(along, type)), lanes);
    }
    statements.push_back(makes);
    return ir::Cast(made, load->type.element);
  }

  const hlo::Instruction& value_;
  const ir::BufferRef placeholder_;
  Body& body_;
  KernelParameters parameters_;
  std::vector<std::pair<const hlo::Instruction*, ir::BufferRef>> buffers_;
  bool has_far_elements_ = false;
  ir::BufferRef main_;  // has an element for each of the operand's; null: none does
};

}  // namespace

bool IsComputed(const hlo::Instruction& instruction, const hlo::Instruction& hero, int64_t of_dot) {
  return &instruction != &hero && !hero.operand(of_dot)->Is(hlo::Opcode::kParameter);
}

bool IsForOperandsOnly(const hlo::Instruction& op, const hlo::Instruction& hero) {
  std::unordered_set<const hlo::Instruction*> before;
  for (const hlo::Instruction* operand : hero.operands()) before.merge(MadeOf(*operand));
  return !op.IsRoot() && std::all_of(op.users().begin(), op.users().end(), [&](const hlo::Instruction* user) {
    return user == &hero || before.contains(user);
  });
}

KernelDraft WithComputedOperands(KernelDraft draft, const hlo::Instruction& instruction, const hlo::Instruction& hero) {
  Body body;
  for (size_t i = 0; i < draft.arguments.size();) {
    if (draft.arguments[i].kind != ArgumentRef::Kind::kComputed) {
      ++i;
      continue;
    }
    HLORUN_CHECK(IsComputed(instruction, hero, draft.arguments[i].number));
    Computation computation(*hero.operand(draft.arguments[i].number), draft.function.parameters[i], body);
    draft.function.body = computation.Rewrite(draft.function.body);
    const auto replace = [i](auto& list, const auto& with) {
      const auto place = list.erase(list.begin() + static_cast<int64_t>(i));
      list.insert(place, with.begin(), with.end());
    };
    replace(draft.function.parameters, computation.parameters().buffers());
    replace(draft.arguments, computation.parameters().arguments());
  }
  return draft;
}

}  // namespace hlorun::opencl
