#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/row_shape.h"
#include "hlo/builder.h"
#include "passes/fusion/blocks.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;

// Added to a column's accumulator each time that it is loaded.
constexpr int64_t kRowsTogether = 4;
constexpr int64_t kShortVector = 4;  // shorter minor dimensions are walked element by element

// One block after another, of each the steps in their order. What a step makes lies in private memory, of one block,
// unless it is a result.
class BlockKernel {
 public:
  explicit BlockKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        blocks_(e_.outputs()[0].shape.dimension(0)),
        block_(e_.IndexVar("block", blocks_)) {}

  EmittedLaunch Emit() {
    e_.values().Open();
    for (const Instruction* step : e_.instruction().called()->PostOrder()) {
      if (passes::HeroOf(*step).kind != passes::KernelKind::kNone) Run(*step);
    }
    // Results that only reinterpret what a step has made.
    for (const Emission::Output& output : e_.outputs()) {
      if (passes::HeroOf(*output.root).kind == passes::KernelKind::kNone) StoreResult(output);
    }
    const ir::Stmt steps = e_.values().Close();
    return e_.Finish(ir::For(ir::LoopRole::kParallel, block_, e_.IndexInt(0), e_.IndexInt(blocks_), steps), 1);
  }

 private:
  static Dims Inner(const hlo::Shape& shape) { return {shape.dimensions().begin() + 1, shape.dimensions().end()}; }
  // How a value of this shape, of two dimensions or more, lies where memory holds one block of it.
  static Frame::InMemory OneBlock(const ir::BufferRef& buffer, const hlo::Shape& shape) {
    Frame::InMemory memory{buffer};
    for (int64_t d = 1; d < shape.rank(); ++d) memory.dimensions.push_back(static_cast<size_t>(d));
    return memory;
  }

  Indices Whole(const Indices& inner) {
    Indices at = {e_.math().Of(block_)};
    at.insert(at.end(), inner.begin(), inner.end());
    return at;
  }

  void Run(const Instruction& step) {
    const auto is_this = [&](const Emission::Output& output) { return output.root == &step; };
    const auto output = std::find_if(e_.outputs().begin(), e_.outputs().end(), is_this);
    const bool is_result = output != e_.outputs().end();
    if (const Instruction* reduce = passes::ColumnReduceOf(step)) {
      const bool is_fusion = step.Is(hlo::Opcode::kFusion);
      const Frame& frame = is_fusion ? e_.values().Enter(e_.frame(), step) : e_.frame();
      const Frame::InMemory sums = SumColumns(frame, *reduce);
      const bool is_whole_step = reduce == &step || (is_fusion && step.called()->root() == reduce);
      if (is_whole_step && !is_result) return e_.values().Keep(e_.frame(), step, sums);
    }
    if (is_result) {
      StoreResult(*output);
      return e_.values().Keep(e_.frame(), step, Frame::InMemory{output->buffer});
    }
    // One element a block is known from here on.
    if (step.shape().rank() == 1) return static_cast<void>(e_.values().Get(e_.frame(), step, Whole({})));
    const hlo::Shape inner(step.shape().element_type(), Inner(step.shape()));
    const ir::BufferRef buffer = e_.PrivateArray("step", step.shape().element_type(), inner.ElementCount());
    Over(inner.dimensions(), [&](const Indices& at) {
      StoreElement(e_.values(), buffer, inner, at, e_.values().Get(e_.frame(), step, Whole(at)));
    });
    e_.values().Keep(e_.frame(), step, OneBlock(buffer, step.shape()));
  }

  void StoreResult(const Emission::Output& output) {
    Over(Inner(output.shape), [&](const Indices& inner) {
      const Indices at = Whole(inner);
      e_.Store(output, at, e_.ValueOf(output, at));
    });
  }

  // All rows of the block in whole, so that memory is read as one run.
  Frame::InMemory SumColumns(const Frame& frame, const Instruction& reduce) {
    const hlo::ElementType type = reduce.shape().element_type();
    const RowShape shape = RowShapeOf(reduce);  // the last dimension stays: all that are reduced are outer ones
    const Dims columns = Inner(reduce.shape()), rows = shape.Of(shape.outer);
    const int64_t count = hlo::CheckedProduct(rows), whole = count / kRowsTogether * kRowsTogether;
    const ir::BufferRef sums = e_.PrivateArray("sums", PartialType(type), hlo::CheckedProduct(columns));
    const auto place = [&](const Indices& at) { return e_.math().ToExpr(e_.math().Linearize(at, columns)); };
    Over(columns, [&](const Indices& at) {
      e_.body().Add(ir::Store(sums, place(at), e_.values().Get(frame, *reduce.operand(1), {}).re));
    });
    const auto add = [&](int64_t begin, int64_t end, int64_t together) {
      if (begin == end) return;
      const ir::Var row = e_.IndexVar(e_.body().FreshName("row"), count - together + 1);
      e_.values().Open();
      Over(columns, [&](const Indices& at) {
        const Indices kept = Whole(at);
        Indices from(shape.dimensions.size());
        for (size_t i = 0; i < kept.size(); ++i) from[shape.kept[i]] = kept[i];
        Value sum{e_.body().Name(ir::Load(sums, place(at))), nullptr};
        for (int64_t r = 0; r < together; ++r) {
          const Indices numbers = e_.math().Delinearize(e_.math().Add(e_.math().Of(row), r), rows);
          for (size_t i = 0; i < numbers.size(); ++i) from[shape.outer[i]] = numbers[i];
          const Value element = e_.values().Get(frame, *reduce.operand(0), from);
          sum = EmitBinary(*hlo::ReducerOpcode(*reduce.called()), type, sum, element, e_.body());
        }
        e_.body().Add(ir::Store(sums, place(at), sum.re));
      });
      e_.body().Add(
          ir::For(ir::LoopRole::kSerial, row, e_.IndexInt(begin), e_.IndexInt(end), e_.values().Close(), together));
    };
    add(0, whole, kRowsTogether);
    add(whole, count, 1);
    Frame::InMemory memory = OneBlock(sums, reduce.shape());
    e_.values().Keep(frame, reduce, memory);
    return memory;
  }

  // Loops over all elements: vectors along as many of the last dimensions as are one run without a division.
  void Over(const Dims& dims, const std::function<void(const Indices&)>& element) {
    for (size_t first = 0;; ++first) {
      std::vector<std::pair<ir::Var, int64_t>> loops;
      const auto loop = [&](int64_t extent) {
        loops.emplace_back(e_.IndexVar(e_.body().FreshName("i"), extent), extent);
        return e_.math().Of(loops.back().first);
      };
      Indices at;
      for (size_t d = 0; d < std::min(first, dims.size()); ++d) at.push_back(loop(dims[d]));
      const Dims run(dims.begin() + static_cast<std::ptrdiff_t>(std::min(first, dims.size())), dims.end());
      if (!run.empty()) {
        for (Index& index : e_.math().Delinearize(loop(hlo::CheckedProduct(run)), run)) at.push_back(std::move(index));
      }
      e_.values().Open();
      element(at);
      ir::Stmt body = e_.values().Close();
      if (run.size() > 1 && DivisionsIn(body) > 0) continue;
      for (size_t l = loops.size(); l-- > 0;) {
        const auto& [variable, extent] = loops[l];
        const bool is_vector = l + 1 == loops.size() && extent >= kShortVector;
        body = ir::For(is_vector ? ir::LoopRole::kVector : ir::LoopRole::kSerial, variable, e_.IndexInt(0),
                       e_.IndexInt(extent), body, 1, is_vector ? e_.Lanes() : 1);
      }
      return e_.body().Add(body);
    }
  }

  Emission e_;
  const int64_t blocks_;
  const ir::Var block_;
};

}  // namespace

Launches EmitBlocks(const EmitRequest& request) {
  Launches launches;
  launches.push_back(BlockKernel(request).Emit());
  return launches;
}

}  // namespace hlorun::opencl
