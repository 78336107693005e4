#include "backends/opencl/codegen/interleaved.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/opencl/codegen/widener.h"

namespace hlorun::opencl {
namespace {

using Lanes = std::vector<int64_t>;

// Lanes of `a`, and then of `b`; -1: any.
std::string Shuffle(const std::string& a, const std::string& b, const Lanes& lanes) {
  std::string text = fmt::format("__builtin_shufflevector({}, {}", a, b);
  for (const int64_t lane : lanes) text += fmt::format(", {}", lane);
  return text + ")";
}

// Where the vectors begin that hold the elements `wanted`, in ascending order.
Lanes BeginningsOf(const Lanes& wanted, int lanes, const EveryNth& which) {
  Lanes beginnings;
  if (which.phase) {
    for (int64_t v = 0; v < which.stride; ++v) beginnings.push_back(v * lanes);
    return beginnings;
  }
  for (const int64_t element : wanted) {
    if (beginnings.empty() || element >= beginnings.back() + lanes)
      beginnings.push_back(std::min(element, wanted.back() + 1 - lanes));
  }
  return beginnings;
}

// Of a place n elements behind a multiple of the row's length: n.
std::optional<int64_t> PhaseOf(const ir::Expr& first, int64_t stride) {
  if (first->kind == ir::ExprKind::kIntConstant) return first->integer % stride;
  if (KnownFactor(first, stride) == stride) return 0;
  const bool is_sum = first->kind == ir::ExprKind::kBinary && first->op == ir::Op::kAdd &&
                      first->args[1]->kind == ir::ExprKind::kIntConstant;
  if (!is_sum || KnownFactor(first->args[0], stride) != stride) return std::nullopt;
  return (first->args[1]->integer % stride + stride) % stride;
}

// The scalar that is in all lanes; null where they differ.
ir::Expr OfAllLanes(const ir::Expr& x) {
  if (x->kind == ir::ExprKind::kBroadcast) return x->args[0];
  return x->kind == ir::ExprKind::kIntConstant ? ir::Int(x->integer, x->type.WithLanes(1)) : nullptr;
}

}  // namespace

std::optional<EveryNth> EveryNthOf(const ir::Buffer& buffer, const ir::Expr& index) {
  if (index->kind != ir::ExprKind::kRamp || index->args[1]->kind != ir::ExprKind::kIntConstant) return std::nullopt;
  const int64_t stride = index->args[1]->integer;
  if (stride < 2 || stride > kLongestLoadedRow) return std::nullopt;
  const ir::Expr& first = index->args[0];
  // Of whole rows, the last one ends where the buffer does, or before.
  const std::optional<int64_t> phase = buffer.size % stride == 0 ? PhaseOf(first, stride) : std::nullopt;
  return EveryNth{stride, phase ? first - *phase : first, phase};
}

std::optional<Repeats> RepeatsOf(const ir::Expr& index) {
  if (index->kind != ir::ExprKind::kBinary) return std::nullopt;
  const ir::Expr &left = index->args[0], &right = index->args[1];
  if (index->op == ir::Op::kAdd) {
    const ir::Expr of_left = OfAllLanes(left), of_right = OfAllLanes(right);
    if (!of_left == !of_right) return std::nullopt;
    std::optional<Repeats> repeats = RepeatsOf(of_left ? right : left);
    if (repeats) repeats->first = repeats->first + (of_left ? of_left : of_right);
    return repeats;
  }
  const ir::Expr divisor = OfAllLanes(right);
  const bool is_quotient = index->op == ir::Op::kFloorDiv && left->kind == ir::ExprKind::kRamp &&
                           ir::IsIntConstant(left->args[1], 1) && divisor &&
                           divisor->kind == ir::ExprKind::kIntConstant;
  if (!is_quotient) return std::nullopt;
  const int64_t times = divisor->integer;
  if (times < 2 || left->type.lanes % times != 0 || KnownFactor(left->args[0], times) != times) return std::nullopt;
  return Repeats{times, ir::Binary(ir::Op::kFloorDiv, left->args[0], divisor)};
}

std::string LoadOfRepeats(const std::string& name, const VectorText& vector, int64_t times) {
  const int64_t elements = vector.lanes / times;
  const std::string load = elements == 1 ? "*p" : fmt::format("*({} const {}*)p", vector.space, vector.unaligned);
  std::string lanes;
  for (int64_t i = 0; i < vector.lanes; ++i) lanes += fmt::format(", {}", i / times);
  return fmt::format("static inline {1}{2} {0}({3} const {1}* p) {{\n  const {1}{4} v = {5};\n  return {6};\n}}\n",
                     name, vector.element, vector.lanes, vector.space, elements == 1 ? "" : std::to_string(elements),
                     load,
                     elements == 1 ? fmt::format("({}{})v", vector.element, vector.lanes)
                                   : fmt::format("__builtin_shufflevector(v, v{})", lanes));
}

std::string LoadOfEveryNth(const std::string& name, const VectorText& vector, const EveryNth& which) {
  const int64_t lanes = vector.lanes;
  Lanes wanted;
  for (int64_t i = 0; i < lanes; ++i) wanted.push_back(i * which.stride + which.phase.value_or(0));
  const Lanes beginnings = BeginningsOf(wanted, lanes, which);
  std::string text = fmt::format("static inline {1}{2} {0}({3} const {1}* p) {{\n  const {1}{2}", name, vector.element,
                                 lanes, vector.space);
  for (size_t v = 0; v < beginnings.size(); ++v) {
    text += fmt::format("{} v{} = *({} const {}*)(p + {})", v == 0 ? "" : ",", v, vector.space, vector.unaligned,
                        beginnings[v]);
  }
  // What the first vector holds, then what the next one holds of the rest, and so on.
  std::string joined = "v0";
  int64_t done = std::count_if(wanted.begin(), wanted.end(), [&](int64_t e) { return e < beginnings[0] + lanes; });
  for (size_t v = 1; v < beginnings.size(); ++v) {
    Lanes from(wanted.size(), -1);
    int64_t held = done;
    for (int64_t i = 0; i < lanes; ++i) {
      const int64_t element = wanted[static_cast<size_t>(i)];
      if (i < done) from[static_cast<size_t>(i)] = v == 1 ? element - beginnings[0] : i;
      if (i < done || element >= beginnings[v] + lanes) continue;
      from[static_cast<size_t>(i)] = lanes + element - beginnings[v];
      held = i + 1;
    }
    joined = Shuffle(joined, fmt::format("v{}", v), from);
    done = held;
  }
  return text + fmt::format(";\n  return {};\n}}\n", joined);
}

std::string StoreInTurns(const std::string& name, const VectorText& vector, int64_t stride) {
  const int64_t lanes = vector.lanes;
  std::string text = fmt::format("static inline void {}({} {}* p", name, vector.space, vector.element);
  for (int64_t x = 0; x < stride; ++x) text += fmt::format(", {}{} x{}", vector.element, lanes, x);
  text += ") {\n";
  for (int64_t v = 0; v < stride; ++v) {
    std::string joined = "x0";
    for (int64_t x = 1; x < stride; ++x) {
      Lanes from;
      for (int64_t i = 0; i < lanes; ++i) {
        const int64_t of = (v * lanes + i) % stride, lane = (v * lanes + i) / stride;
        from.push_back(of == x ? lanes + lane : of > x ? -1 : x == 1 ? lane : i);
      }
      joined = Shuffle(joined, fmt::format("x{}", x), from);
    }
    text += fmt::format("  *({} {}*)(p + {}) = {};\n", vector.space, vector.unaligned, v * lanes, joined);
  }
  return text + "}\n";
}

}  // namespace hlorun::opencl
