// Matrix products that are none.
#include <algorithm>

#include "passes/simplify/rule.h"

namespace hlorun::passes {

using namespace pattern;  // NOLINT: rules are written in it
using hlo::Instruction;
using hlo::Opcode;

namespace {

const hlo::attr::Dot& DotOf(const Match& m) { return m.root->As<hlo::attr::Dot>(); }

int64_t ContractedSize(const Match& m) {
  int64_t size = 1;
  for (int64_t d : DotOf(m).lhs_contracting) size *= m[X]->shape().dimension(d);
  return size;
}

bool IsIn(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The operand without its contracted unit dimensions, converted and broadcast to the result. Free dimensions of the
// operand start at result dimension `free_start`.
Instruction* Spread(Match& m, Instruction* operand, const std::vector<int64_t>& batch,
                    const std::vector<int64_t>& contracting, int64_t free_start) {
  hlo::Dims sizes;
  std::vector<int64_t> dimensions;
  int64_t free = free_start;
  for (int64_t d = 0; d < operand->shape().rank(); ++d) {
    if (IsIn(contracting, d)) continue;
    sizes.push_back(operand->shape().dimension(d));
    dimensions.push_back(IsIn(batch, d) ? std::find(batch.begin(), batch.end(), d) - batch.begin() : free++);
  }
  Instruction* x = operand->shape().dimensions() == sizes ? operand : m.build.Reshape(operand, sizes);
  if (x->shape().element_type() != m.shape().element_type()) x = m.build.Convert(x, m.shape().element_type());
  return m.build.Broadcast(x, m.dimensions(), dimensions);
}

Instruction* OuterProduct(Match& m) {
  const hlo::attr::Dot& dot = DotOf(m);
  const auto batch = static_cast<int64_t>(dot.lhs_batch.size());
  const int64_t lhs_free = m[X]->shape().rank() - batch - static_cast<int64_t>(dot.lhs_contracting.size());
  Instruction* lhs = Spread(m, m[X], dot.lhs_batch, dot.lhs_contracting, batch);
  Instruction* rhs = Spread(m, m[Y], dot.rhs_batch, dot.rhs_contracting, batch + lhs_free);
  return m.build.Binary(Opcode::kMultiply, lhs, rhs);
}

// The product is rounded to the result's type either way.
bool MultipliesInResultType(const Match& m) {
  const hlo::ElementType type = m.shape().element_type();
  return hlo::BitsOf(type) >= 16 && hlo::BitsOf(type) >= hlo::BitsOf(m[X]->shape().element_type()) &&
         hlo::BitsOf(type) >= hlo::BitsOf(m[Y]->shape().element_type());
}

}  // namespace

std::vector<Rule> DotRules() {
  return {
      {"dot_over_nothing", Exactness::kExact, Op(Opcode::kDot, X, Y),
       [](const Match& m) { return ContractedSize(m) == 0; }, [](Match& m) { return m.Fill(0.0); },
       R"(x = f32[2,0] parameter(0)
          y = f32[0,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
       R"(x = f32[2,1] parameter(0)
          y = f32[1,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
      {"dot_over_one", Exactness::kReassociating, Op(Opcode::kDot, X, Y),
       [](const Match& m) { return ContractedSize(m) == 1 && MultipliesInResultType(m); }, OuterProduct,
       R"(x = f32[2,1] parameter(0)
          y = f32[1,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
       R"(x = f32[2,2] parameter(0)
          y = f32[2,3] parameter(1)
          ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})"},
  };
}

}  // namespace hlorun::passes
