#include "backends/opencl/kernels/operand_copy.h"

#include <algorithm>

#include "backends/opencl/codegen/integer_dot.h"
#include "backends/opencl/codegen/widener.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

int64_t LanesOf16Bytes(hlo::ElementType type) { return 16 / hlo::BytesOf(type); }

int64_t LineStride(int64_t length, hlo::ElementType type) { return length + LanesOf16Bytes(type); }

Expr AndBelow(const Expr& condition, const Expr& x, int64_t end, int64_t side) {
  return end % side == 0 ? condition : ir::And(condition, x < Index(end));
}

namespace {

constexpr int64_t kBytesOfBanks = 128;

int64_t LineLength(const BlockShape& shape) {
  if (shape.has_quads) return shape.width * kBytesOfQuad;
  return shape.k_is_fastest ? shape.depth : shape.width;
}
int64_t Lines(const BlockShape& shape) {
  if (shape.has_quads) return shape.depth / kBytesOfQuad;
  return shape.k_is_fastest ? shape.width : shape.depth;
}

int64_t StrideOf(const BlockShape& shape, hlo::ElementType type) {
  return shape.swizzled ? std::min(LineLength(shape), kBytesOfBanks / hlo::BytesOf(type))
                        : LineStride(LineLength(shape), type);
}

}  // namespace

OperandCopy::OperandCopy(const std::string& name, const BlockShape& shape, hlo::ElementType type)
    : shape_(shape),
      stride_(StrideOf(shape, type)),
      elements_(shape.swizzled ? shape.width * shape.depth : Lines(shape) * stride_),
      block_(ir::MakeBuffer(name + "_block", type, shape.buffers * elements_, ir::Buffer::Space::kLocal, true)) {}

Expr OperandCopy::Place(const Expr& outer, const Expr& k) const {
  if (!shape_.swizzled) return PlaceInOrder(outer, k);
  // Lines that fill the banks differ from each other; of shorter ones, those do that fill them together.
  const int64_t vectors = stride_ / LanesOf16Bytes(block_->storage);
  const int64_t lines = kBytesOfBanks / hlo::BytesOf(block_->storage) / stride_;
  return PlaceOf(outer, k, [&](const Expr& line, const Expr& vector) {
    return ir::Binary(ir::Op::kXor, vector, Remainder(Quotient(line, lines), vectors));
  });
}

Expr OperandCopy::PlaceInOrder(const Expr& outer, const Expr& k) const { return PlaceOf(outer, k, nullptr); }

Expr OperandCopy::PlaceOf(const Expr& outer, const Expr& k, const Turn& turn) const {
  if (shape_.has_quads) {
    const Expr first = Quotient(k, kBytesOfQuad) * stride_ + outer * kBytesOfQuad;
    return KnownFactor(k, kBytesOfQuad) == kBytesOfQuad ? first : first + Remainder(k, kBytesOfQuad);
  }
  const Expr &line = shape_.k_is_fastest ? outer : k, &along = shape_.k_is_fastest ? k : outer;
  const bool has_pieces = LineLength(shape_) > stride_;
  Expr in_piece = has_pieces ? Remainder(along, stride_) : along;
  if (turn) {
    const int64_t vector = LanesOf16Bytes(block_->storage);
    in_piece = turn(line, Quotient(in_piece, vector)) * vector + Remainder(in_piece, vector);
  }
  const Expr in_lines = line * stride_ + in_piece;
  if (!has_pieces) return in_lines;
  return Quotient(along, stride_) * (Lines(shape_) * stride_) + in_lines;
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
