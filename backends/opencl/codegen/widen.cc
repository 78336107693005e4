#include "backends/opencl/codegen/widen.h"

#include <optional>

#include "backends/opencl/codegen/bf16_pairs.h"
#include "backends/opencl/codegen/widener.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

Stmt Serial(const Stmt& loop, const Expr& begin, const Expr& end) {
  return For(LoopRole::kSerial, loop->var, begin, end, loop->body[0]);
}

}  // namespace

Stmt WidenVectorLoop(const Stmt& loop) {
  const LoopEffects effects = EffectsOf(loop->body[0]);
  const Type type = loop->var->type;
  const std::optional<int64_t> extent = ConstantDifference(loop->end, loop->begin);
  int width = loop->width;
  if (extent) {
    while (width > 1 && width > *extent) width /= 2;
  }
  if (width == 1) return Serial(loop, loop->begin, loop->end);
  const auto widened = [&](const Expr& base) {
    return Widener(loop->var, base, 1, width, effects).Widen(loop->body[0]);
  };
  try {
    if (const std::optional<Stmt> pairs = WidenToPairs(loop)) return *pairs;
    if (extent && *extent == width) return widened(loop->begin);
    const Var at = MakeVar(loop->var->name, type);
    at->factor = KnownFactor(loop->begin, width);
    if (extent && *extent % width == 0) {
      return For(LoopRole::kSerial, at, loop->begin, loop->end, widened(Ref(at)), width);
    }
    if (extent && IsRepeatable(effects)) {
      // The last vector reaches back over elements already done, instead of a scalar tail.
      const Var last = MakeVar(loop->var->name + "_v", type);
      const Stmt body = Block({Let(last, Min(Ref(at), loop->end - width)), widened(Ref(last))});
      return For(LoopRole::kSerial, at, loop->begin, loop->end, body, width);
    }
    const Var split = MakeVar(loop->var->name + "_split", type);
    const Expr whole = Mul(Binary(Op::kDiv, Sub(loop->end, loop->begin), Int(width, type)), Int(width, type));
    return Block({Let(split, Add(loop->begin, whole)),
                  For(LoopRole::kSerial, at, loop->begin, Ref(split), widened(Ref(at)), width),
                  Serial(loop, Ref(split), loop->end)});
  } catch (const CannotWiden&) {
    return Serial(loop, loop->begin, loop->end);
  }
}

}  // namespace hlorun::opencl
