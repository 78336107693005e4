#include "backends/opencl/kernels/matrix_unit_helpers.h"

#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/codegen/transpose_square.h"
#include "backends/opencl/kernels/kernel_draft.h"

namespace hlorun::opencl {
namespace {

ir::Type RowOf(hlo::ElementType type) { return {type, 16}; }

}  // namespace

std::vector<ir::Helper> UnitHelpers(std::initializer_list<std::string_view> names) {
  return HelpersNamed(kUnitFunctions, std::span(names.begin(), names.size()));
}

ir::Stmt CallUnit(const char* function, std::vector<ir::Expr> arguments) {
  return ir::CallStatement(ir::Call(ir::kIndex, function, std::move(arguments)));
}

ir::Stmt TurnSquare(const Square& from, const Square& to) {
  const ir::Type row_type = RowOf(from.buffer->storage);
  return TransposeSquare(
      row_type, false,
      [&](int64_t row, int64_t place, int64_t count) {
        return ir::Load(from.buffer, ir::Ramp(from.first + (row * from.pitch + place), static_cast<int>(count)));
      },
      [&](int64_t i, const ir::Expr& column) {
        return ir::Store(to.buffer, ir::Ramp(to.first + i * to.pitch, row_type.lanes), column);
      });
}

std::vector<ir::Helper> TurnHelpers(hlo::ElementType type, bool inline_assembly) {
  return TransposeHelpers(RowOf(type), false, inline_assembly);
}

ir::Stmt MendSums(const ir::Expr& sums, const ir::Expr& first_sums, const ir::Stmt& sum_first_parts) {
  const ir::Expr has_nan = ir::Call({hlo::ElementType::kS32, 1}, kUnitHasNan, {sums});
  return ir::If(ir::Compare(ir::Op::kNe, has_nan, ir::Int(0, has_nan->type)),
                ir::Block({CallUnit(kUnitZero), sum_first_parts, CallUnit(kUnitStore, {first_sums}),
                           CallUnit(kUnitReplaceNan, {sums, first_sums})}));
}

}  // namespace hlorun::opencl
