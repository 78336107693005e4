#include "backends/opencl/kernels/section_sums.h"

#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

namespace {

// Adding a section costs a load, an addition and a store for each accumulator, one in a hundred of its steps: shorter
// sums lose too little to be worth it.
constexpr int64_t kFewestSections = 4;

}  // namespace

bool GoesBySections(hlo::ElementType type, int64_t steps) {
  return hlo::IsFloating(type) && steps >= kFewestSections * kSectionSteps;
}

Stmt SumSections(const RegisterTile& tile, const ir::BufferRef& waiting, const Expr& begin, const Expr& end,
                 int64_t section, int64_t limit, const std::function<Stmt(const Expr& begin, const Expr& end)>& steps) {
  const ir::Var first = IndexVar("section", limit);
  const RegisterTile::Position at = tile.RowByRow();
  const Stmt body = ir::Block({tile.Clear(), steps(ir::Ref(first), ir::Min(ir::Ref(first) + section, end)),
                               tile.Add(waiting, at), tile.Store(waiting, at)});
  return ir::For(ir::LoopRole::kSerial, first, begin, end, body, section);
}

}  // namespace hlorun::opencl
