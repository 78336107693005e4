#include "backends/opencl/kernels/block_copy.h"

#include <algorithm>
#include <numeric>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/integer_dot.h"
#include "backends/opencl/codegen/narrow_indices.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

bool IsWideInteger(const hlo::Instruction& instruction) {
  const std::vector<hlo::Shape> leaves = hlo::FlattenShape(instruction.shape());
  return std::any_of(leaves.begin(), leaves.end(), [](const hlo::Shape& leaf) {
    return leaf.element_type() == hlo::ElementType::kS64 || leaf.element_type() == hlo::ElementType::kU64;
  });
}

bool ComputesWideIntegers(const hlo::Instruction& instruction) {
  const auto& operands = instruction.operands();
  const auto& called = instruction.called_computations();
  return IsWideInteger(instruction) ||
         std::any_of(operands.begin(), operands.end(),
                     [](const hlo::Instruction* operand) { return IsWideInteger(*operand); }) ||
         std::any_of(called.begin(), called.end(), [](const hlo::Computation* computation) {
           const auto& ops = computation->instructions();
           return std::any_of(ops.begin(), ops.end(), [](const auto& op) { return ComputesWideIntegers(*op); });
         });
}

}  // namespace

BlockCopy::BlockCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from, const BlockShape& shape,
                     hlo::ElementType type, const char* copy_function)
    : OperandCopy(name, shape, type),
      operand_(operand),
      from_(std::move(from)),
      copy_function_(copy_function),
      lanes_(std::gcd(std::gcd(operand.run, LanesOf16Bytes(type)), operand.k_is_fastest ? shape.depth : shape.width)) {
  if (copy_function_ == nullptr) SetRegisters(name, CeilDiv(vectors(), shape.items), lanes_);
}

Stmt BlockCopy::Load(const Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const {
  return ForVectors(item, [&](size_t number, const Expr& outer, const Expr& k, const Expr& is_there) {
    const ElementPlace place = operand_.place(origin.batch, origin.outer + outer, origin.k + k);
    Expr inside = place.inside ? place.inside : ir::Pred(true);
    inside = AndBelow(inside, origin.outer + outer, outer_end, shape().width);
    inside = AndBelow(inside, origin.k + k, k_end, shape().depth);
    if (copy_function_ != nullptr) {
      const Expr to = ir::Address(block(), Buffer(origin.k) + Place(outer, k));
      const Expr bytes = ir::Select(inside, ir::Int(16), ir::Int(0));
      const Expr copy = ir::Call(ir::kIndex32, copy_function_, {to, ir::Address(from_, place.index), bytes});
      return ir::If(is_there, ir::CallStatement(copy));
    }
    const ir::Var& next = registers()[number];
    const Expr at = ir::Ramp(place.index, static_cast<int>(lanes_));
    return ir::Assign(next, ir::Cast(ir::Load(from_, at, ir::And(is_there, inside)), next->type.element));
  });
}

Stmt BlockCopy::Store(const Expr& item, const Expr& first_k) const {
  if (copy_function_ != nullptr) return nullptr;
  return ForVectors(item, [&](size_t number, const Expr& outer, const Expr& k, const Expr& is_there) {
    const ir::Var& next = registers()[number];
    const Expr at = Buffer(first_k) + Place(outer, k);
    if (shape().has_quads) return ir::If(is_there, StoreQuads(at, ir::Ref(next)));
    std::vector<Stmt> stores;
    if (operand_.k_is_fastest == HasKFastest()) {
      stores.push_back(ir::Store(block(), ir::Ramp(at, static_cast<int>(lanes_)), ir::Ref(next)));
    } else {
      for (int64_t l = 0; l < lanes_; ++l)
        stores.push_back(ir::Store(block(), at + l * stride(), ir::Lane(ir::Ref(next), l)));
    }
    return ir::If(is_there, ir::Block(std::move(stores)));
  });
}

Stmt BlockCopy::StoreQuads(const Expr& at, const Expr& values) const {
  const int lanes = values->type.lanes;
  // Neighbours in k are one word or several, of one line each; neighbours in outer are of one line, a word apart.
  if (operand_.k_is_fastest && lanes > kBytesOfQuad) {
    return ir::Block({StoreQuads(at, ir::Half(values, ir::kLowerHalf)),
                      StoreQuads(at + lanes / 2 / kBytesOfQuad * stride(), ir::Half(values, ir::kUpperHalf))});
  }
  if (operand_.k_is_fastest) return ir::Store(block(), ir::Ramp(at, lanes), values);
  std::vector<Stmt> stores;
  for (int l = 0; l < lanes; ++l) stores.push_back(ir::Store(block(), at + l * kBytesOfQuad, ir::Lane(values, l)));
  return ir::Block(std::move(stores));
}

Stmt BlockCopy::ForVectors(const Expr& item, const Body& body) const {
  std::vector<Stmt> statements;
  const int64_t line = (operand_.k_is_fastest ? shape().depth : shape().width) / lanes_;
  for (int64_t j = 0; j < CeilDiv(vectors(), shape().items); ++j) {
    const ir::Var along = IndexVar("along", line * lanes_), across = IndexVar("across", CeilDiv(vectors(), line));
    along->factor = lanes_;
    const Expr i = item + j * shape().items;
    const bool are_all = (j + 1) * shape().items <= vectors();
    const Expr is_there = are_all ? ir::Pred(true) : i < Index(vectors());
    const Expr a = ir::Ref(along), c = ir::Ref(across);
    const auto number = static_cast<size_t>(j);
    statements.push_back(
        ir::Scope(ir::Block({ir::Let(along, Remainder(i, line) * lanes_), ir::Let(across, Quotient(i, line)),
                             operand_.k_is_fastest ? body(number, c, a, is_there) : body(number, a, c, is_there)})));
  }
  return ir::Block(std::move(statements));
}

KernelDraft WithNarrowIndices(KernelDraft draft, const TiledProduct& product, const TileExtents& tile) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  // Indices of elements that are not there are computed too, where tiles reach beyond the matrices: those of a
  // convolution's input go by its pixels, each of which may stand for more elements than it multiplies (strides).
  const int64_t m = product.m + tile.rows, n = product.n + tile.columns, k = product.k + tile.depth;
  const int64_t input = CeilDiv(product.lhs.elements, std::max<int64_t>(1, product.m)) * m;
  const int64_t last = std::max({product.batch * tile.k_parts * m * n, product.batch * m * k, product.batch * n * k,
                                 input, product.rhs.elements});
  if (last >= kLimit || !FitsIndex32(product.instruction) || ComputesWideIntegers(product.instruction)) return draft;
  draft.function = WithNarrowIndices(draft.function);
  return draft;
}

}  // namespace hlorun::opencl
