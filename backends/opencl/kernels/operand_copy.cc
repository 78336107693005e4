#include "backends/opencl/kernels/operand_copy.h"

#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

int64_t LanesOf16Bytes(hlo::ElementType type) { return 16 / hlo::BytesOf(type); }

int64_t LineStride(int64_t length, hlo::ElementType type) { return length + LanesOf16Bytes(type); }

Expr AndBelow(const Expr& condition, const Expr& x, int64_t end, int64_t side) {
  return end % side == 0 ? condition : ir::And(condition, x < Index(end));
}

OperandCopy::OperandCopy(const std::string& name, const BlockShape& shape, hlo::ElementType type)
    : shape_(shape),
      stride_(LineStride(shape.k_is_fastest ? shape.depth : shape.width, type)),
      elements_((shape.k_is_fastest ? shape.width : shape.depth) * stride_),
      block_(ir::MakeBuffer(name + "_block", type, shape.buffers * elements_, ir::Buffer::Space::kLocal, true)) {}

Expr OperandCopy::Place(const Expr& outer, const Expr& k) const {
  return shape_.k_is_fastest ? outer * stride_ + k : k * stride_ + outer;
}

Expr OperandCopy::Buffer(const Expr& k) const {
  return shape_.buffers == 1 ? Index(0) : Remainder(Quotient(k, shape_.depth), shape_.buffers) * elements_;
}

Stmt OperandCopy::Declare() const {
  std::vector<Stmt> statements;
  statements.reserve(next_.size());
  for (const ir::Var& next : next_) statements.push_back(ir::Let(next, ir::Zero(next->type)));
  return ir::Block(std::move(statements));
}

void OperandCopy::SetRegisters(const std::string& name, int64_t number, int64_t lanes) {
  for (int64_t j = 0; j < number; ++j)
    next_.push_back(ir::MakeVar(fmt::format("{}_next_{}", name, j), {block_->storage, static_cast<int>(lanes)}));
}

}  // namespace hlorun::opencl
