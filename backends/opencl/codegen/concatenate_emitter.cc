#include <algorithm>
#include <unordered_set>

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

// Whether it is made, in this fusion, by exponentials, sines and the like of elements at its own places.
bool IsFunction(const Instruction& operand) {
  std::vector<const Instruction*> work = {&operand};
  std::unordered_set<const Instruction*> seen = {&operand};
  while (!work.empty()) {
    const Instruction* at = work.back();
    work.pop_back();
    if (!at->Has(hlo::kElementwise)) continue;
    if (at->Has(hlo::kExpensive)) return true;
    for (const Instruction* input : at->operands()) {
      if (seen.insert(input).second) work.push_back(input);
    }
  }
  return false;
}

// A loop over the places in front of the concatenated dimension; at each, one operand after the other, by vectors along
// it. Operands that are functions of something and shorter than a vector (sines and cosines of the three coordinates of
// points) go by vectors across several places instead.
class ConcatenateKernel {
 public:
  explicit ConcatenateKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        root_(Root(request.instruction)),
        dimension_(static_cast<size_t>(root_.dimensions()[0])) {
    for (size_t d = 0; d < dimension_; ++d) {
      variables_.push_back(e_.IndexVar("i" + std::to_string(d), root_.shape().dimension(static_cast<int64_t>(d))));
      outer_.push_back(e_.math().Of(variables_.back()));
    }
    const bool goes_across = std::any_of(root_.operands().begin(), root_.operands().end(),
                                         [&](const Instruction* operand) { return GoesAcross(*operand); });
    if (goes_across) places_ = std::min(kPlacesTogether, LastPlaces()) / e_.Lanes() * e_.Lanes();
  }

  EmittedLaunch Emit() {
    ir::Var tile;
    e_.values().Open();
    if (places_ > 1) {
      tile = e_.IndexVar("tile", CeilDiv(LastPlaces(), places_));
      // The last ones reach back over places of those before.
      const ir::Var first = e_.IndexVar("first", LastPlaces() - places_ + 1);
      e_.body().Add(ir::Let(first, ir::Min(ir::Ref(tile) * places_, e_.IndexInt(LastPlaces() - places_))));
      outer_.back() = e_.math().Of(first);
    }
    int64_t begin = 0;
    for (const Instruction* operand : root_.operands()) {
      if (operand->shape().ElementCount() > 0) e_.body().Add(OperandAtPlaces(*operand, begin));
      begin += operand->shape().dimension(static_cast<int64_t>(dimension_));
    }
    ir::Stmt body = e_.values().Close();
    const int64_t grain = GrainOfVectors(WorkOf(body), e_.Lanes());
    if (tile) variables_.back() = tile;
    for (size_t d = variables_.size(); d-- > 0;) {
      body = ir::For(ir::LoopRole::kParallel, variables_[d], e_.IndexInt(0), e_.IndexInt(variables_[d]->max + 1), body);
    }
    return e_.Finish(body, grain);
  }

 private:
  static constexpr int64_t kPlacesTogether = 64;

  int64_t LastPlaces() const { return root_.shape().dimension(static_cast<int64_t>(dimension_) - 1); }
  Dims InnerOf(const Instruction& operand) const {
    const Dims& dims = operand.shape().dimensions();
    return Dims(dims.begin() + static_cast<ptrdiff_t>(dimension_), dims.end());
  }
  bool GoesAcross(const Instruction& operand) const {
    const int64_t run = hlo::CheckedProduct(InnerOf(operand));
    return e_.Lanes() > 1 && dimension_ > 0 && run > 0 && run < e_.Lanes() && LastPlaces() >= e_.Lanes() &&
           e_.instruction().Is(Opcode::kFusion) && IsFunction(operand);
  }

  ir::Stmt OperandAtPlaces(const Instruction& operand, int64_t begin) {
    if (places_ == 1) return OperandLoop(operand, begin, outer_);
    const ir::Var place = e_.IndexVar(e_.body().FreshName("l"), places_);
    Indices outer = outer_;
    outer.back() = e_.math().Add(outer.back(), e_.math().Of(place));
    const bool across = GoesAcross(operand);
    const auto over_places = [&](const ir::Stmt& body) {
      return ir::For(across ? ir::LoopRole::kVector : ir::LoopRole::kSerial, place, e_.IndexInt(0),
                     e_.IndexInt(places_), body, 1, across ? e_.Lanes() : 1);
    };
    if (!across) return over_places(OperandLoop(operand, begin, outer));
    const Dims inner = InnerOf(operand);
    const ir::Var j = e_.IndexVar(e_.body().FreshName("j"), hlo::CheckedProduct(inner));
    const ir::Stmt body = over_places(ElementAt(operand, begin, outer, e_.math().Delinearize(e_.math().Of(j), inner)));
    return ir::For(ir::LoopRole::kSerial, j, e_.IndexInt(0), e_.IndexInt(j->max + 1), body);
  }

  // Elements of an operand at one place.
  ir::Stmt OperandLoop(const Instruction& operand, int64_t begin, const Indices& outer) {
    const Dims inner = InnerOf(operand);
    const auto build = [&](const Dims& loops) {
      std::vector<ir::Var> variables;
      Indices at;
      for (const int64_t size : loops) {
        variables.push_back(e_.IndexVar(e_.body().FreshName("j"), size));
        at.push_back(e_.math().Of(variables.back()));
      }
      ir::Stmt body = ElementAt(operand, begin, outer, e_.math().Delinearize(e_.math().Linearize(at, loops), inner));
      const int64_t divisions = DivisionsIn(body);
      for (size_t i = loops.size(); i-- > 0;) {
        const bool minor = i + 1 == loops.size();
        body = ir::For(minor ? ir::LoopRole::kVector : ir::LoopRole::kSerial, variables[i], e_.IndexInt(0),
                       e_.IndexInt(loops[i]), body, 1, minor ? e_.Lanes() : 1);
      }
      return std::pair{body, divisions};
    };
    const auto [flat, divisions] = build({hlo::CheckedProduct(inner)});
    return divisions == 0 || inner.size() == 1 ? flat : build(inner).first;
  }

  // An element, written where it belongs.
  ir::Stmt ElementAt(const Instruction& operand, int64_t begin, const Indices& outer, const Indices& inner) {
    Indices from = outer;
    from.insert(from.end(), inner.begin(), inner.end());
    Indices to = from;
    to[dimension_] = e_.math().Add(to[dimension_], begin);
    e_.values().Open();
    e_.Store(e_.outputs()[0], to, e_.values().Get(e_.frame(), operand, from));
    return e_.values().Close();
  }

  Emission e_;
  const Instruction& root_;
  const size_t dimension_;
  std::vector<ir::Var> variables_;
  Indices outer_;
  int64_t places_ = 1;  // of the last dimension in front, done together
};

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
  } else {
    launches.push_back(ConcatenateKernel(request).Emit());
  }
  return launches;
}

}  // namespace hlorun::opencl
