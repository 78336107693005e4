#include "backends/opencl/kernels/block_copy.h"

#include <algorithm>
#include <numeric>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
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

int64_t LanesOf16Bytes(hlo::ElementType type) { return 16 / hlo::BytesOf(type); }

int64_t LineStride(int64_t length, hlo::ElementType type) { return length + LanesOf16Bytes(type); }

BlockCopy::BlockCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from, const BlockShape& shape,
                     hlo::ElementType type)
    : operand_(operand),
      from_(std::move(from)),
      shape_(shape),
      lanes_(std::gcd(std::gcd(operand.run, LanesOf16Bytes(type)), operand.k_is_fastest ? shape.depth : shape.width)) {
  stride_ = LineStride(HasKFastest() ? shape.depth : shape.width, type);
  const int64_t lines = HasKFastest() ? shape.width : shape.depth;
  elements_ = lines * stride_;
  block_ = ir::MakeBuffer(name + "_block", type, shape.buffers * elements_, ir::Buffer::Space::kLocal, true);
  for (int64_t j = 0; j < CeilDiv(vectors(), shape.items); ++j)
    next_.push_back(ir::MakeVar(fmt::format("{}_next_{}", name, j), {type, static_cast<int>(lanes_)}));
}

Expr BlockCopy::Place(const Expr& outer, const Expr& k) const {
  return HasKFastest() ? outer * stride_ + k : k * stride_ + outer;
}

Expr BlockCopy::Buffer(const Expr& k) const {
  return shape_.buffers == 1 ? Index(0) : Remainder(Quotient(k, shape_.depth), shape_.buffers) * elements_;
}

Stmt BlockCopy::Declare() const {
  std::vector<Stmt> statements;
  statements.reserve(next_.size());
  for (const ir::Var& next : next_) statements.push_back(ir::Let(next, ir::Zero(next->type)));
  return ir::Block(std::move(statements));
}

Stmt BlockCopy::Load(const Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const {
  return ForVectors(item, [&](const ir::Var& next, const Expr& outer, const Expr& k, const Expr& is_there) {
    const ElementPlace place = operand_.place(origin.batch, origin.outer + outer, origin.k + k);
    Expr inside = is_there;
    if (place.inside) inside = ir::And(inside, place.inside);
    if (outer_end % shape_.width != 0) inside = ir::And(inside, origin.outer + outer < Index(outer_end));
    if (k_end % shape_.depth != 0) inside = ir::And(inside, origin.k + k < Index(k_end));
    const Expr at = ir::Ramp(place.index, static_cast<int>(lanes_));
    return ir::Assign(next, ir::Cast(ir::Load(from_, at, inside), next->type.element));
  });
}

Stmt BlockCopy::Store(const Expr& item, const Expr& first_k) const {
  return ForVectors(item, [&](const ir::Var& next, const Expr& outer, const Expr& k, const Expr& is_there) {
    const Expr at = Buffer(first_k) + Place(outer, k);
    std::vector<Stmt> stores;
    if (operand_.k_is_fastest == HasKFastest()) {
      stores.push_back(ir::Store(block_, ir::Ramp(at, static_cast<int>(lanes_)), ir::Ref(next)));
    } else {
      for (int64_t l = 0; l < lanes_; ++l)
        stores.push_back(ir::Store(block_, at + l * stride_, ir::Lane(ir::Ref(next), l)));
    }
    return ir::If(is_there, ir::Block(std::move(stores)));
  });
}

Stmt BlockCopy::ForVectors(const Expr& item, const Body& body) const {
  std::vector<Stmt> statements;
  const int64_t line = (operand_.k_is_fastest ? shape_.depth : shape_.width) / lanes_;
  for (size_t j = 0; j < next_.size(); ++j) {
    const ir::Var along = IndexVar("along", line * lanes_), across = IndexVar("across", CeilDiv(vectors(), line));
    along->factor = lanes_;
    const Expr i = item + static_cast<int64_t>(j) * shape_.items;
    const bool are_all = (static_cast<int64_t>(j) + 1) * shape_.items <= vectors();
    const Expr is_there = are_all ? ir::Pred(true) : i < Index(vectors());
    const Expr a = ir::Ref(along), c = ir::Ref(across);
    statements.push_back(ir::Scope(
        ir::Block({ir::Let(along, Remainder(i, line) * lanes_), ir::Let(across, Quotient(i, line)),
                   operand_.k_is_fastest ? body(next_[j], c, a, is_there) : body(next_[j], a, c, is_there)})));
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
