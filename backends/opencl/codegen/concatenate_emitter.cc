#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/interleaved.h"
#include "passes/fusion/recompute.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kFewestPlaces = 16;  // before the concatenated dimension, to keep all cores busy

const Instruction& Root(const Instruction& instruction) {
  return instruction.Is(Opcode::kFusion) ? *instruction.called()->root() : instruction;
}

// Elements of operand `k` at the outer place `outer`, written where they belong.
ir::Stmt OperandLoop(Emission& e, const Instruction& root, int64_t k, int64_t begin, const Indices& outer) {
  const auto& output = e.outputs()[0];
  const hlo::Shape& shape = root.operand(k)->shape();
  const auto d = static_cast<size_t>(root.dimensions()[0]);
  const Dims inner(shape.dimensions().begin() + static_cast<ptrdiff_t>(d), shape.dimensions().end());
  const auto build = [&](const Dims& loops) {
    std::vector<ir::Var> variables;
    Indices at;
    for (size_t i = 0; i < loops.size(); ++i) {
      variables.push_back(e.IndexVar(e.body().FreshName("j"), loops[i]));
      at.push_back(e.math().Of(variables.back()));
    }
    const Indices rest = e.math().Delinearize(e.math().Linearize(at, loops), inner);
    Indices from = outer;
    from.insert(from.end(), rest.begin(), rest.end());
    Indices to = from;
    to[d] = e.math().Add(to[d], begin);
    e.values().Open();
    e.Store(output, to, e.values().Get(e.frame(), *root.operand(k), from));
    ir::Stmt body = e.values().Close();
    const int64_t divisions = DivisionsIn(body);
    for (size_t i = loops.size(); i-- > 0;) {
      const bool minor = i + 1 == loops.size();
      body = ir::For(minor ? ir::LoopRole::kVector : ir::LoopRole::kSerial, variables[i], e.IndexInt(0),
                     e.IndexInt(loops[i]), body, 1, minor ? e.Lanes() : 1);
    }
    return std::pair{body, divisions};
  };
  const auto [flat, divisions] = build({hlo::CheckedProduct(inner)});
  return divisions == 0 || inner.size() == 1 ? flat : build(inner).first;
}

// Each group takes a tile of every operand: work-items side by side along it, however short its rows are.
EmittedLaunch ConcatenateOnGpu(const EmitRequest& request) {
  const Instruction& root = Root(request.instruction);
  Emission e(request.instruction, request.aliases, request.context);
  const auto& output = e.outputs()[0];
  const auto d = static_cast<size_t>(root.dimensions()[0]);
  const int64_t size = GroupLanes(e.device()) * kTogether;
  int64_t longest = 0;
  for (const Instruction* operand : root.operands()) longest = std::max(longest, operand->shape().ElementCount());
  const ir::Var tile = e.IndexVar("tile", CeilDiv(longest, size));
  std::vector<ir::Stmt> tiles;
  int64_t begin = 0;
  for (const Instruction* operand : root.operands()) {
    const hlo::Shape& shape = operand->shape();
    if (shape.ElementCount() > 0) {
      tiles.push_back(ir::Scope(TileOfElements(e, tile, size, shape.ElementCount(), [&](const Index& element) {
        const Indices from = e.math().Delinearize(element, shape.dimensions());
        Indices to = from;
        to[d] = e.math().Add(to[d], begin);
        e.Store(output, to, e.values().Get(e.frame(), *operand, from));
      })));
    }
    begin += shape.dimension(static_cast<int64_t>(d));
  }
  return e.Finish(
      ir::For(ir::LoopRole::kParallel, tile, e.IndexInt(0), e.IndexInt(tile->max + 1), ir::Block(std::move(tiles))), 1);
}

// Columns that become rows of a few elements.
bool JoinsColumns(const Instruction& concatenate) {
  const Dims& dims = concatenate.shape().dimensions();
  const size_t minor = dims.size() - 1;
  return static_cast<size_t>(concatenate.dimensions()[0]) == minor && minor > 0 && dims[minor] <= kLongestLine;
}

// Whether something that is fused into it is computed by a loop for each element.
bool FusesLoops(const Instruction& instruction) {
  if (!instruction.Is(Opcode::kFusion)) return false;
  const auto& fused = instruction.called()->PostOrder();
  return std::any_of(fused.begin(), fused.end(), [](const Instruction* op) {
    return !passes::IsLoopOp(*op) && !op->Is(Opcode::kParameter) && !op->Is(Opcode::kConstant);
  });
}

}  // namespace

bool HasConcatenateRoot(const Instruction& instruction, const DeviceSpec& device) {
  const Instruction& root = Root(instruction);
  if (!root.Is(Opcode::kConcatenate)) return false;
  const Dims& dims = root.shape().dimensions();
  const bool is_loop = device.device_class == DeviceClass::kCpu && JoinsColumns(root) && !FusesLoops(instruction);
  int64_t places = 1;
  for (int64_t d = 0; d < root.dimensions()[0]; ++d) places *= dims[static_cast<size_t>(d)];
  return places >= kFewestPlaces && !is_loop;
}

Launches EmitConcatenate(const EmitRequest& request) {
  Launches launches;
  if (request.context.device.device_class == DeviceClass::kGpu) {
    launches.push_back(ConcatenateOnGpu(request));
    return launches;
  }
  const Instruction& root = Root(request.instruction);
  Emission e(request.instruction, request.aliases, request.context);
  const int64_t dimension = root.dimensions()[0];
  std::vector<ir::Var> variables;
  Indices outer;
  for (int64_t d = 0; d < dimension; ++d) {
    variables.push_back(e.IndexVar("i" + std::to_string(d), root.shape().dimension(d)));
    outer.push_back(e.math().Of(variables.back()));
  }
  e.values().Open();
  int64_t begin = 0;
  for (int64_t k = 0; k < root.operand_count(); ++k) {
    const int64_t size = root.operand(k)->shape().dimension(dimension);
    if (size > 0) e.body().Add(OperandLoop(e, root, k, begin, outer));
    begin += size;
  }
  ir::Stmt body = e.values().Close();
  const int64_t grain = GrainOfVectors(WorkOf(body), e.Lanes());
  for (size_t d = variables.size(); d-- > 0;) {
    body = ir::For(ir::LoopRole::kParallel, variables[d], e.IndexInt(0),
                   e.IndexInt(root.shape().dimension(static_cast<int64_t>(d))), body);
  }
  launches.push_back(e.Finish(body, grain));
  return launches;
}

}  // namespace hlorun::opencl
