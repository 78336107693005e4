#include "backends/opencl/kernels/turned_copy.h"

#include <numeric>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/fragments.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

}  // namespace

TurnedCopy::TurnedCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from,
                       const BlockShape& shape)
    : OperandCopy(name, shape, hlo::ElementType::kU32),
      operand_(operand),
      from_(std::move(from)),
      lanes_(std::gcd(std::gcd(operand.run, shape.width) / kBytesOfWord, LanesOf16Bytes(hlo::ElementType::kU32))) {
  SetRegisters(name, CeilDiv(pieces(), shape.items) * kBytesOfWord, lanes_);
}

Stmt TurnedCopy::Load(const Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const {
  return ForPieces(item, [&](size_t first, const Expr& outer_word, const Expr& k_word, const Expr& is_there) {
    const Expr outer = origin.outer + outer_word * kBytesOfWord;
    std::vector<Stmt> loads;
    for (int64_t line = 0; line < kBytesOfWord; ++line) {
      const Expr k = origin.k + (k_word * kBytesOfWord + line);
      const ElementPlace place = operand_.place(origin.batch, outer, k);
      Expr inside = place.inside ? ir::And(is_there, place.inside) : is_there;
      inside = AndBelow(inside, outer, outer_end, shape().width);
      inside = AndBelow(inside, k, k_end, shape().depth * kBytesOfWord);
      const Expr at = ir::Ramp(Quotient(place.index, kBytesOfWord), static_cast<int>(lanes_));
      loads.push_back(ir::Assign(registers()[first + static_cast<size_t>(line)], ir::Load(from_, at, inside)));
    }
    return ir::Block(std::move(loads));
  });
}

Stmt TurnedCopy::Store(const Expr& item, const Expr& first_k) const {
  return ForPieces(item, [&](size_t first, const Expr& outer_word, const Expr& k_word, const Expr& is_there) {
    const Expr at = Buffer(first_k) + Place(outer_word * kBytesOfWord, k_word);
    std::vector<Stmt> stores;
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      std::vector<Expr> lines;
      for (size_t line = 0; line < kBytesOfWord; ++line)
        lines.push_back(ir::Lane(ir::Ref(registers()[first + line]), lane));
      const ir::Var turned = ir::MakeVar(fmt::format("turned_{}", lane), {hlo::ElementType::kU32, kBytesOfWord});
      stores.push_back(ir::Let(turned, ir::Call(turned->type, kFragmentTurn, std::move(lines))));
      for (int64_t column = 0; column < kBytesOfWord; ++column) {
        stores.push_back(
            ir::Store(block(), at + (lane * kBytesOfWord + column) * stride(), ir::Lane(ir::Ref(turned), column)));
      }
    }
    return ir::If(is_there, ir::Block(std::move(stores)));
  });
}

// As many neighbours as read a sector of 32 bytes lie along outer; those behind them along k, since words of different
// k lie in different banks of local memory.
Stmt TurnedCopy::ForPieces(const Expr& item, const Body& body) const {
  constexpr int64_t kSectorWords = 8;
  const int64_t side = std::gcd(across(), kSectorWords / lanes_);
  std::vector<Stmt> statements;
  for (size_t j = 0; j * kBytesOfWord < registers().size(); ++j) {
    const ir::Var outer = IndexVar("outer", shape().width / kBytesOfWord), k = IndexVar("words", shape().depth);
    outer->factor = lanes_;
    const Expr i = item + static_cast<int64_t>(j) * shape().items;
    const bool are_all = (static_cast<int64_t>(j) + 1) * shape().items <= pieces();
    const Expr is_there = are_all ? ir::Pred(true) : i < Index(pieces());
    const Expr column = Quotient(i, side * shape().depth) * side + Remainder(i, side);
    statements.push_back(
        ir::Scope(ir::Block({ir::Let(outer, column * lanes_), ir::Let(k, Remainder(Quotient(i, side), shape().depth)),
                             body(j * kBytesOfWord, ir::Ref(outer), ir::Ref(k), is_there)})));
  }
  return ir::Block(std::move(statements));
}

}  // namespace hlorun::opencl
