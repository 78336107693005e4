// Kernel IR as text, for people: one line a statement, indented by nesting.
#include <fmt/format.h>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl::ir {
namespace {

constexpr const char* kOpNames[] = {"+", "-",  "*",  "/",  "%",  "//", "mod", "min", "max", "&", "|",
                                    "^", "<<", ">>", "==", "!=", "<",  "<=",  ">",   ">=",  "-", "!"};
constexpr const char* kRoleNames[] = {"parallel", "serial", "vector", "unroll"};

std::string Join(const std::vector<Expr>& args) {
  std::string text;
  for (const Expr& a : args) text += (text.empty() ? "" : ", ") + ToString(a);
  return text;
}

void Print(const Stmt& s, int depth, std::string& out) {
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
  const auto line = [&](const std::string& text) { out += indent + text + "\n"; };
  switch (s->kind) {
    case StmtKind::kBlock:
      for (const Stmt& b : s->body) Print(b, depth, out);
      break;
    case StmtKind::kLet:
      line(fmt::format("{} {} = {}", ToString(s->var->type), s->var->name, ToString(s->value)));
      break;
    case StmtKind::kAssign: line(fmt::format("{} = {}", s->var->name, ToString(s->value))); break;
    case StmtKind::kStore:
      line(fmt::format("{}{}[{}] = {}", s->streaming ? "stream " : "", s->buffer->name, ToString(s->index),
                       ToString(s->value)));
      break;
    case StmtKind::kFor:
      line(fmt::format("{}{} {} in {} .. {}{}:", kRoleNames[static_cast<int>(s->role)],
                       s->width > 1    ? fmt::format("x{}{}", s->width, s->pairs ? " pairs" : "")
                       : s->unroll > 1 ? fmt::format(" unrolled {}", s->unroll)
                                       : "",
                       s->var->name, ToString(s->begin), ToString(s->end),
                       IsIntConstant(s->step, 1) ? "" : " step " + ToString(s->step)));
      Print(s->body[0], depth + 1, out);
      break;
    case StmtKind::kIf:
      line(fmt::format("if {}:", ToString(s->value)));
      Print(s->body[0], depth + 1, out);
      if (s->body.size() > 1) {
        line("else:");
        Print(s->body[1], depth + 1, out);
      }
      break;
    case StmtKind::kWhile:
      line(fmt::format("while {}:", ToString(s->value)));
      Print(s->body[0], depth + 1, out);
      break;
    case StmtKind::kBarrier: line("barrier"); break;
    case StmtKind::kDeclareArray:
      line(fmt::format("{} {}[{}] {}", hlo::ElementTypeName(s->buffer->storage), s->buffer->name, s->buffer->size,
                       s->buffer->space == Buffer::Space::kLocal ? "local" : "private"));
      break;
    case StmtKind::kScope:
      line("scope:");
      Print(s->body[0], depth + 1, out);
      break;
    case StmtKind::kOutline:
      line("outlined:");
      Print(s->body[0], depth + 1, out);
      break;
    case StmtKind::kPrefetch:
      line(fmt::format("prefetch{} {}[{}]", s->level == CacheLevel::kFirst ? "" : "2", s->buffer->name,
                       ToString(s->index)));
      break;
    case StmtKind::kCall: line(ToString(s->value)); break;
    case StmtKind::kComment: line("# " + s->text); break;
  }
}

}  // namespace

std::string ToString(Op op) { return kOpNames[static_cast<int>(op)]; }

std::string ToString(const Type& type) {
  std::string text(hlo::ElementTypeName(type.element));
  return type.lanes == 1 ? text : fmt::format("{}x{}", text, type.lanes);
}

std::string ToString(const Expr& x) {
  switch (x->kind) {
    case ExprKind::kIntConstant: return std::to_string(x->integer);
    case ExprKind::kFloatConstant: return fmt::format("{}", x->real);
    case ExprKind::kVar: return x->var->name;
    case ExprKind::kUnary: return fmt::format("{}{}", ToString(x->op), ToString(x->args[0]));
    case ExprKind::kBinary:
    case ExprKind::kCompare:
      return fmt::format("({} {} {})", ToString(x->args[0]), ToString(x->op), ToString(x->args[1]));
    case ExprKind::kSelect:
      return fmt::format("({} ? {} : {})", ToString(x->args[0]), ToString(x->args[1]), ToString(x->args[2]));
    case ExprKind::kCast: return fmt::format("{}({})", ToString(x->type), ToString(x->args[0]));
    case ExprKind::kBitCast: return fmt::format("bits_as_{}({})", ToString(x->type), ToString(x->args[0]));
    case ExprKind::kCall: return fmt::format("{}({})", x->function, Join(x->args));
    case ExprKind::kLoad:
      return fmt::format("{}[{}{}]", x->buffer->name, ToString(x->args[0]),
                         x->args.size() > 1 ? " if " + ToString(x->args[1]) : "");
    case ExprKind::kRamp:
      return fmt::format("ramp({}, {}, {})", ToString(x->args[0]), ToString(x->args[1]), x->type.lanes);
    case ExprKind::kBroadcast: return fmt::format("splat({}, {})", ToString(x->args[0]), x->type.lanes);
    case ExprKind::kReduceLanes: return fmt::format("reduce_lanes({}, {})", ToString(x->op), ToString(x->args[0]));
    case ExprKind::kLane: return fmt::format("{}.{}", ToString(x->args[0]), x->integer);
  }
  return "";
}

std::string ToString(const Stmt& stmt) {
  std::string out;
  Print(stmt, 0, out);
  return out;
}

std::string ToString(const Function& function) {
  std::string parameters;
  for (const BufferRef& p : function.parameters) {
    parameters += fmt::format("{}{}{} {}[{}]", parameters.empty() ? "" : ", ", p->written ? "out " : "",
                              hlo::ElementTypeName(p->storage), p->name, p->size);
  }
  std::string out = fmt::format("{}({}):\n", function.name, parameters);
  Print(function.body, 1, out);
  return out;
}

}  // namespace hlorun::opencl::ir
