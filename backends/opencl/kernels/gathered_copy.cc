#include "backends/opencl/kernels/gathered_copy.h"

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using ir::Expr;
using ir::Op;
using ir::Stmt;

}  // namespace

GatheredCopy::GatheredCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from,
                           const BlockShape& shape)
    : OperandCopy(name, shape, ElementType::kU32), operand_(operand), from_(std::move(from)) {
  SetRegisters(name, CeilDiv(words(), shape.items), 1);
}

Stmt GatheredCopy::Load(const Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const {
  return ForWords(item, [&](const ir::Var& next, const Expr& in_block, const Expr& k_word, const Expr& is_there) {
    const Expr outer = origin.outer + in_block;
    Expr word;
    for (int64_t i = 0; i < kBytesOfWord; ++i) {
      const Expr k = origin.k + (k_word * kBytesOfWord + i);
      const ElementPlace place = operand_.place(origin.batch, outer, k);
      Expr inside = place.inside ? ir::And(is_there, place.inside) : is_there;
      inside = AndBelow(inside, outer, outer_end, shape().width);
      inside = AndBelow(inside, k, k_end, shape().depth * kBytesOfWord);
      const Expr byte = ir::Cast(ir::Load(from_, place.index, inside), ElementType::kU32);
      const Expr part = i == 0 ? byte : ir::Binary(Op::kShl, byte, ir::Int(8 * i, byte->type));
      word = word ? ir::Binary(Op::kOr, word, part) : part;
    }
    return ir::Assign(next, word);
  });
}

Stmt GatheredCopy::Store(const Expr& item, const Expr& first_k) const {
  return ForWords(item, [&](const ir::Var& next, const Expr& outer, const Expr& k_word, const Expr& is_there) {
    return ir::If(is_there, ir::Store(block(), Buffer(first_k) + Place(outer, k_word), ir::Ref(next)));
  });
}

// Neighbours along whichever of k and outer has neighbours side by side in memory.
Stmt GatheredCopy::ForWords(const Expr& item, const Body& body) const {
  const int64_t line = operand_.k_is_fastest ? shape().depth : shape().width;
  std::vector<Stmt> statements;
  for (size_t j = 0; j < registers().size(); ++j) {
    const ir::Var along = IndexVar("along", line), across = IndexVar("across", CeilDiv(words(), line));
    const Expr i = item + static_cast<int64_t>(j) * shape().items;
    const bool are_all = (static_cast<int64_t>(j) + 1) * shape().items <= words();
    const Expr is_there = are_all ? ir::Pred(true) : i < Index(words());
    const Expr a = ir::Ref(along), c = ir::Ref(across);
    statements.push_back(ir::Scope(ir::Block(
        {ir::Let(along, Remainder(i, line)), ir::Let(across, Quotient(i, line)),
         operand_.k_is_fastest ? body(registers()[j], c, a, is_there) : body(registers()[j], a, c, is_there)})));
  }
  return ir::Block(std::move(statements));
}

}  // namespace hlorun::opencl
