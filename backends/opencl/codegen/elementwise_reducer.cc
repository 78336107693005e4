#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/opencl_c.h"

namespace hlorun::opencl {

EmittedLaunch EmitElementwiseReducer(const hlo::Computation& reducer, hlo::ElementType type, int64_t count,
                                     const EmitContext& context) {
  const hlo::Shape shape(type, {count});
  const bool complex = hlo::IsComplex(type);
  IndexMath math(count < (int64_t{1} << 29) ? ir::kIndex32 : ir::kIndex);
  Body body;
  FusedValues values(math, body);
  ir::Function function{.name = kKernelName, .parameters = {}, .body = nullptr, .helpers = {}, .grain = 4};
  EmittedLaunch launch;
  for (const char* name : {"a", "b", "out"}) {
    const bool written = std::string_view(name) == "out";
    const ir::BufferRef buffer =
        ir::MakeBuffer(name, hlo::RealOf(type), count * (complex ? 2 : 1), ir::Buffer::Space::kGlobal, written);
    buffer->restrict_ = false;  // collectives reduce in place
    function.parameters.push_back(buffer);
    launch.arguments.push_back({.kind = written ? ArgumentRef::Kind::kResult : ArgumentRef::Kind::kOperand,
                                .number = written ? 0 : static_cast<int64_t>(launch.arguments.size()),
                                .written = written});
  }
  const ir::Var i = ir::MakeIndex("i", 0, count - 1, math.type());
  const Indices at = {math.Of(i)};
  const auto load = [&](size_t p) {
    const ir::Expr place = math.ToExpr(at[0]);
    if (!complex) return Value{body.Name(ir::Load(function.parameters[p], place)), nullptr};
    return Value{body.Name(ir::Load(function.parameters[p], place * 2)),
                 body.Name(ir::Load(function.parameters[p], place * 2 + 1))};
  };
  values.Open();
  const Values result = values.Apply(reducer, {load(0), load(1)});
  StoreElement(values, function.parameters[2], shape, at, result[0]);
  // Parallel over tiles, each of vectors.
  constexpr int64_t kTile = 4096;
  const int64_t tiles = (count + kTile - 1) / kTile;
  const ir::Var tile = ir::MakeIndex("tile", 0, tiles - 1, math.type());
  const ir::Expr begin = ir::Ref(tile) * kTile;
  const ir::Expr end = tiles == 1 ? ir::Int(count, math.type()) : ir::Min(begin + kTile, ir::Int(count, math.type()));
  const int lanes = VectorLanes(context.device, hlo::BytesOf(hlo::RealOf(type)));
  const ir::Stmt loop =
      ir::For(ir::LoopRole::kVector, i, tiles == 1 ? ir::Int(0, math.type()) : begin, end, values.Close(), 1, lanes);
  function.body = ir::For(ir::LoopRole::kParallel, tile, ir::Int(0, math.type()), ir::Int(tiles, math.type()), loop);
  const ScheduledKernel scheduled = Schedule(function, context.device);
  launch.source = ToOpenClC(scheduled, context.device);
  launch.kernel_ir = ir::ToString(function);
  launch.grid = scheduled.grid;
  return launch;
}

}  // namespace hlorun::opencl
