#include "backends/opencl/kernels/bf16_parts.h"

#include <string>

#include "backends/opencl/codegen/matrix_unit.h"

namespace hlorun::opencl {

bool MayCutIntoParts(const CompileOptions& options) { return options.device_count == 1; }

ir::Stmt SaveBf16Parts(const ir::Expr& first, const ir::Expr& second, int64_t parts, const char* join,
                       const std::function<ir::Stmt(int64_t, const ir::Expr&)>& save) {
  const ir::Type numbers{hlo::ElementType::kF32, 16}, words{hlo::ElementType::kU32, 16};
  const ir::Var left[] = {ir::MakeVar("low", numbers), ir::MakeVar("high", numbers)};
  std::vector<ir::Stmt> body = {ir::Let(left[0], first), ir::Let(left[1], second)};
  // What one part leaves is rounded to the next; the last is a bf16 as it is.
  for (int64_t part = 0; part + 1 < parts; ++part) {
    std::vector<ir::Expr> rounded;
    for (const ir::Var& rest : left) {
      const ir::Var now = ir::MakeVar(rest->name + "_" + std::to_string(part), numbers);
      body.push_back(ir::Let(now, ir::Call(numbers, part == 0 ? kUnitFirstPart : kUnitPart, {ir::Ref(rest)})));
      body.push_back(ir::Assign(rest, ir::Ref(rest) - ir::Ref(now)));
      rounded.push_back(ir::Ref(now));
    }
    body.push_back(save(part, ir::Call(words, join, rounded)));
  }
  body.push_back(save(parts - 1, ir::Call(words, join, {ir::Ref(left[0]), ir::Ref(left[1])})));
  return ir::Block(std::move(body));
}

}  // namespace hlorun::opencl
