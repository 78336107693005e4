#include "backends/opencl/kernels/epilogue.h"

#include "hlo/computation.h"
#include "hlo/error.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

Epilogue::Epilogue(const hlo::Instruction& instruction, const hlo::Instruction& hero, const AliasPattern& aliases,
                   KernelParameters& parameters)
    : instruction_(instruction), hero_(hero) {
  (void)aliases;
  const hlo::Shape& shape = instruction.shape();
  result_ = parameters.Add("result", shape.element_type(), shape.ElementCount(),
                           {.kind = ArgumentRef::Kind::kResult, .number = 0, .written = true});
}

bool Epilogue::Supports(const hlo::Instruction& instruction, const hlo::Instruction& hero) { return &instruction == &hero; }

Stmt Epilogue::Store(const std::vector<Expr>& index, const Expr& value) const {
  const hlo::Dims strides = hero_.shape().Strides();
  Expr linear = ir::Int(0, ir::kIndex);
  for (size_t d = 0; d < index.size(); ++d) linear = linear + index[d] * strides[d];
  const Expr stored = ir::Cast(value, ir::ComputeType(result_->storage));
  return ir::Store(result_, ir::Ramp(linear, value->type.lanes), stored);
}

ir::BufferRef MakeStaging(const std::string& name, hlo::ElementType type, int64_t elements) {
  ir::BufferRef staging = ir::MakeBuffer(name, type, elements, ir::Buffer::Space::kPrivate, true);
  staging->alignment = 64;
  return staging;
}

Stmt TileStore::EmitDirect(const RegisterTile& tile, const Index& index) const {
  std::vector<Stmt> statements;
  for (int64_t row = 0; row < tile.rows(); ++row) {
    for (int64_t vector = 0; vector < tile.vectors(); ++vector) {
      const std::vector<Expr> at = index(ir::Int(row, ir::kIndex), ir::Int(vector * tile.lanes(), ir::kIndex));
      statements.push_back(epilogue_.Store(at, tile.At(row, vector)));
    }
  }
  return ir::Block(std::move(statements));
}

Stmt TileStore::EmitRow(const RegisterTile& tile, const ir::BufferRef& staging, const Expr& row, int64_t columns,
                        const Index& index) const {
  const int64_t whole = columns / tile.lanes() * tile.lanes();
  std::vector<Stmt> statements;
  if (whole > 0) {
    const ir::Var column = ir::MakeIndex("column", 0, whole - 1, ir::kIndex);
    const Expr at = row * tile.columns() + ir::Ref(column);
    const ir::Var value = ir::MakeVar("value", {staging->storage, static_cast<int>(tile.lanes())});
    const Stmt body = ir::Block({ir::Let(value, ir::Load(staging, ir::Ramp(at, static_cast<int>(tile.lanes())))),
                                 epilogue_.Store(index(row, ir::Ref(column)), ir::Ref(value))});
    statements.push_back(ir::For(ir::LoopRole::kSerial, column, ir::Int(0, ir::kIndex), ir::Int(whole, ir::kIndex), body,
                                 tile.lanes()));
  }
  if (whole < columns) {
    const ir::Var column = ir::MakeIndex("column", whole, columns - 1, ir::kIndex);
    const ir::Var value = ir::MakeVar("value", {staging->storage, 1});
    const Stmt body = ir::Block({ir::Let(value, ir::Load(staging, row * tile.columns() + ir::Ref(column))),
                                 epilogue_.Store(index(row, ir::Ref(column)), ir::Ref(value))});
    statements.push_back(
        ir::For(ir::LoopRole::kSerial, column, ir::Int(whole, ir::kIndex), ir::Int(columns, ir::kIndex), body));
  }
  return ir::Block(std::move(statements));
}

Stmt TileStore::Emit(const RegisterTile& tile, const ir::BufferRef& staging, const Expr& first, const Expr& end,
                     int64_t columns, const Index& index) const {
  const bool all_rows = ir::IsIntConstant(first, 0) && ir::IsIntConstant(end, tile.rows());
  if (epilogue_.IsPlain() && all_rows && columns == tile.columns()) return EmitDirect(tile, index);
  const ir::Var row = ir::MakeIndex("row", 0, tile.rows() - 1, ir::kIndex);
  const Stmt save = tile.Store(staging, [&](int64_t r, int64_t v) {
    return ir::Int(r * tile.columns() + v * tile.lanes(), ir::kIndex);
  });
  const Stmt general = ir::For(ir::LoopRole::kSerial, row, first, end, EmitRow(tile, staging, ir::Ref(row), columns, index));
  if (!epilogue_.IsPlain() || all_rows || columns != tile.columns()) return ir::Block({save, general});
  // Most tiles are whole: only the last one of a column of tiles recomputes rows of the one before.
  const Expr whole = ir::And(ir::Compare(ir::Op::kEq, first, ir::Int(0, first->type)),
                             ir::Compare(ir::Op::kEq, end, ir::Int(tile.rows(), end->type)));
  return ir::If(whole, EmitDirect(tile, index), ir::Block({save, general}));
}

}  // namespace hlorun::opencl
