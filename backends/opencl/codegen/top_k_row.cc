#include "backends/opencl/codegen/top_k_row.h"

#include "backends/opencl/codegen/sort_key.h"

namespace hlorun::opencl {

using hlo::ElementType;
using ir::Expr;
using ir::Op;
using ir::Var;

constexpr ir::Type kU32{ElementType::kU32, 1};
constexpr ir::Type kU64{ElementType::kU64, 1};

TopKRow::TopKRow(Emission& e, const hlo::Instruction& top, Indices row)
    : e_(e), top_(top), x_(*top.operand(0)), row_(std::move(row)) {}

Expr TopKRow::KeyAt(const Index& j) {
  Indices at = row_;
  at.push_back(j);
  const ElementType type = x_.shape().element_type();
  Expr key = ToOrderedBits(e_.values().Get(e_.frame(), x_, at).re, type, e_.body());
  if (top_.As<hlo::attr::TopK>().largest) return key;
  const int bits = OrderedBits(type);
  return ir::Binary(Op::kXor, key, ir::Int(bits >= 32 ? -1 : (int64_t{1} << bits) - 1, kU32));
}

Expr TopKRow::Entry(const Expr& key, const Expr& position) {
  const Expr complement = ir::Unary(Op::kNot, ir::Cast(position, ElementType::kU32));
  const Expr high = ir::Binary(Op::kShl, ir::Cast(key, ElementType::kU64), ir::Int(32, kU64));
  return ir::Binary(Op::kOr, high, ir::Cast(complement, ElementType::kU64));
}

void TopKRow::StoreResult(const Emission::Output& output, const Index& i, const Expr& entry) {
  Indices to = row_;
  to.push_back(i);
  const Expr position = ir::Unary(Op::kNot, ir::Cast(entry, ElementType::kU32));
  Value value{ir::Cast(position, ElementType::kS32), nullptr};
  if (output.leaf == 0) {
    const int64_t length = x_.shape().dimensions().back();
    const Var from = ir::MakeIndex(e_.body().FreshName("from"), 0, length - 1, e_.math().type());
    e_.body().Add(ir::Let(from, ir::Cast(position, e_.math().type().element)));
    Indices at = row_;
    at.push_back(e_.math().Of(from));
    value = e_.values().Get(e_.frame(), x_, at);
  }
  e_.Store(output, to, value);
}

}  // namespace hlorun::opencl
