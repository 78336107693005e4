#include "passes/expand/complex_dot.h"

#include <algorithm>

#include "hlo/builder.h"
#include "passes/expand/dot_form.h"
#include "passes/simplify/rewrite_each.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Taking operands apart costs as much as so many multiplications of each of their elements.
constexpr int64_t kFewestUses = 8;
constexpr int64_t kFewestProducts = 1 << 15;

bool IsWorthSplitting(const Instruction& dot) {
  const std::optional<DotForm> form = DotFormOf(dot);
  if (!form || !hlo::IsComplex(dot.shape().element_type())) return false;
  for (const Instruction* operand : dot.operands()) {
    if (operand->shape().element_type() != dot.shape().element_type()) return false;
  }
  return std::min({form->m, form->n, form->k}) >= kFewestUses &&
         form->batch * form->m * form->n * form->k >= kFewestProducts;
}

bool Split(Instruction* dot) {
  if (!dot->Is(Opcode::kDot) || !IsWorthSplitting(*dot)) return false;
  hlo::Builder build(dot->parent(), dot);
  Instruction* parts[2][2];  // [operand][imaginary]
  for (int64_t i = 0; i < 2; ++i) {
    parts[i][0] = build.Unary(Opcode::kReal, dot->operand(i));
    parts[i][1] = build.Unary(Opcode::kImag, dot->operand(i));
  }
  const hlo::Shape shape(hlo::RealOf(dot->shape().element_type()), dot->shape().dimensions());
  const auto product = [&](int x, int y) {
    return dot->parent()->Add(dot->CloneWithOperands(shape, {parts[0][x], parts[1][y]}), dot);
  };
  Instruction* real = build.Binary(Opcode::kSubtract, product(0, 0), product(1, 1));
  Instruction* imaginary = build.Binary(Opcode::kAdd, product(0, 1), product(1, 0));
  dot->ReplaceAllUsesWith(build.Binary(Opcode::kComplex, real, imaginary));
  dot->parent()->Remove(dot);
  return true;
}

}  // namespace

bool SplitComplexDots::Run(hlo::Module& module, PassContext&) { return RewriteEach(module, Split); }

}  // namespace hlorun::passes
