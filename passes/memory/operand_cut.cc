#include "passes/memory/operand_cut.h"

#include <algorithm>
#include <span>

#include "passes/spmd/factor_rule.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

int64_t Product(const Dims& dims, size_t from, size_t to) {
  return hlo::CheckedProduct(std::span(dims).subspan(from, to - from));
}

// The dimension of `from` whose indices are those of dimension `d` of `to`.
std::optional<int64_t> SameDimension(const Shape& from, const Shape& to, int64_t d) {
  if (from.element_type() != to.element_type()) return std::nullopt;
  for (int64_t e = 0; e < from.rank(); ++e) {
    if (from.dimension(e) == to.dimension(d) && Around(from, e) == Around(to, d)) return e;
  }
  return std::nullopt;
}

}  // namespace

std::pair<int64_t, int64_t> Around(const Shape& shape, int64_t dimension) {
  const Dims& dims = shape.dimensions();
  const auto d = static_cast<size_t>(dimension);
  return {Product(dims, 0, d), Product(dims, d + 1, dims.size()) * hlo::BytesOf(shape.element_type())};
}

std::optional<std::vector<int64_t>> OperandCuts(const Instruction& value, int64_t leaf, int64_t d) {
  std::vector<int64_t> cuts(static_cast<size_t>(value.operand_count()), kWhole);
  if (d == kWhole) return cuts;
  if (value.Is(Opcode::kBitcast)) {
    const std::optional<int64_t> same = SameDimension(value.operand(0)->shape(), value.shape(), d);
    return same ? std::optional(std::vector<int64_t>{*same}) : std::nullopt;
  }
  const spmd::FactorRule rule = spmd::FactorRuleOf(value);
  if (!rule.is_known) return std::nullopt;
  const auto& factors = rule.results[static_cast<size_t>(leaf)][static_cast<size_t>(d)];
  if (factors.size() != 1) return std::nullopt;
  const int cut = factors[0];
  if (rule.factors[static_cast<size_t>(cut)].kind != spmd::FactorKind::kParallel) return std::nullopt;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const spmd::FactorRule::Tensor& operand = rule.operands[i];
    for (size_t e = 0; e < operand.size(); ++e) {
      if (std::find(operand[e].begin(), operand[e].end(), cut) == operand[e].end()) continue;
      if (operand[e].size() != 1 || cuts[i] != kWhole) return std::nullopt;
      cuts[i] = static_cast<int64_t>(e);
    }
  }
  return cuts;
}

}  // namespace hlorun::passes
