#include "backends/opencl/kernels/loop_ends.h"

#include "backends/opencl/codegen/extent_expr.h"

namespace hlorun::opencl {

using ir::Expr;

Expr LoopEnds::End(const SizedLoop& loop, const std::string& name) {
  if (!loop.extent) return ir::Int(loop.bound, ir::kIndex);
  ir::BufferRef buffer;
  for (const auto& [operand, known] : buffers_) {
    if (operand == loop.extent->operand) buffer = known;
  }
  if (!buffer) {
    buffer = parameters_.Add("size" + std::to_string(buffers_.size()), hlo::ElementType::kS32, 1,
                             {.number = loop.extent->operand});
    buffers_.emplace_back(loop.extent->operand, buffer);
  }
  const Expr size = ir::Cast(ir::Load(buffer, ir::Int(0)), ir::kIndex.element);
  const ir::Var end = ir::MakeIndex(name, 0, loop.bound, ir::kIndex);
  statements_.push_back(ir::Let(end, ExtentExpr(size, *loop.extent, loop.bound / loop.scale) * loop.scale));
  return ir::Ref(end);
}

Expr LoopEnds::Pieces(const SizedLoop& loop, int64_t size, const std::string& name) {
  if (!loop.extent) return ir::Int((loop.bound + size - 1) / size, ir::kIndex);
  return ir::Binary(ir::Op::kFloorDiv, End(loop, name) + (size - 1), ir::Int(size, ir::kIndex));
}

ir::Stmt LoopEnds::Before(const ir::Stmt& body) const {
  if (statements_.empty()) return body;
  std::vector<ir::Stmt> all = statements_;
  if (body->kind == ir::StmtKind::kBlock)
    all.insert(all.end(), body->body.begin(), body->body.end());
  else
    all.push_back(body);
  return ir::Block(std::move(all));
}

}  // namespace hlorun::opencl
