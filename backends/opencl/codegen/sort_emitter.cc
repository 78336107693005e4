#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/gpu_sort.h"
#include "backends/opencl/codegen/radix_sort.h"
#include "backends/opencl/codegen/scratch.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using ir::Expr;
using ir::Var;

// Arrays that are sorted together, in memory.
using Arrays = std::vector<ir::BufferRef>;

// A stable merge sort from the bottom up, one row a work-item, between the results and scratch.
class SortKernel {
 public:
  explicit SortKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        sort_(*request.hero.instruction),
        shape_(sort_.operand(0)->shape()),
        dimension_(sort_.As<hlo::attr::Sort>().dimension),
        length_(shape_.dimension(dimension_)) {}

  EmittedLaunch Emit() {
    hlo::Dims others = shape_.dimensions();
    others[static_cast<size_t>(dimension_)] = 1;
    const int64_t rows = hlo::CheckedProduct(others);
    const Var row = e_.IndexVar("row", rows);
    row_ = e_.math().Delinearize(e_.math().Of(row), others);

    Arrays results, scratch;
    int64_t offset = 0;
    for (const auto& output : e_.outputs()) {
      results.push_back(output.buffer);
      const auto bytes = AlignScratch(output.shape.ByteSize());
      scratch.push_back(e_.Scratch("scratch" + std::to_string(scratch.size()), output.shape.element_type(),
                                   output.shape.ElementCount(), offset, true));
      offset += bytes;
    }
    e_.values().Open();
    e_.values().SerialLoop(length_, [&](const Index& i) {
      const Indices at = Place(i);
      for (size_t k = 0; k < results.size(); ++k) {
        StoreElement(e_.values(), results[k], shape_of(k), at,
                     e_.values().Get(e_.frame(), *sort_.operand(static_cast<int64_t>(k)), at));
      }
    });
    // Two passes a step: into scratch and back. A last one that finds the row sorted copies it.
    int64_t pairs = 0;
    for (int64_t run = 1; run < length_; run *= 4) ++pairs;
    if (pairs > 0) {
      const Var run = e_.body().Mutable(e_.IndexInt(1), "run");
      const Var step = e_.IndexVar("step", pairs);
      e_.values().Open();
      Merge(results, scratch, ir::Ref(run));
      e_.body().Add(ir::Assign(run, ir::Ref(run) * 2));
      Merge(scratch, results, ir::Ref(run));
      e_.body().Add(ir::Assign(run, ir::Ref(run) * 2));
      e_.body().Add(ir::For(ir::LoopRole::kSerial, step, e_.IndexInt(0), e_.IndexInt(pairs), e_.values().Close()));
    }
    const ir::Stmt body = e_.values().Close();
    const int64_t work = WorkOf(body);
    return e_.Finish(ir::For(ir::LoopRole::kParallel, row, e_.IndexInt(0), e_.IndexInt(rows), body), GrainOf(work));
  }

 private:
  hlo::Shape shape_of(size_t k) const { return e_.outputs()[k].shape; }
  Indices Place(const Index& i) const {
    Indices at = row_;
    at[static_cast<size_t>(dimension_)] = i;
    return at;
  }

  Values LoadAll(const Arrays& arrays, const Expr& at) {
    const Var variable = ir::MakeIndex(e_.body().FreshName("at"), 0, length_ - 1, e_.math().type());
    e_.body().Add(ir::Let(variable, at));
    const Expr linear =
        e_.body().Name(e_.math().ToExpr(e_.math().Linearize(Place(e_.math().Of(variable)), shape_.dimensions())));
    Values values;
    for (size_t k = 0; k < arrays.size(); ++k) {
      const bool complex = hlo::IsComplex(shape_of(k).element_type());
      const Expr place = complex ? linear * 2 : linear;
      values.push_back({e_.body().Name(ir::Load(arrays[k], place)),
                        complex ? e_.body().Name(ir::Load(arrays[k], place + 1)) : nullptr});
    }
    return values;
  }

  // Runs of `run` elements of `from`, in pairs, into `into`.
  void Merge(const Arrays& from, const Arrays& into, const Expr& run) {
    const ir::Type type = e_.math().type();
    const Expr end = e_.IndexInt(length_);
    const Var first = e_.body().Mutable(e_.IndexInt(0), "first");
    e_.values().Open();
    const Expr middle = e_.body().Name(ir::Min(ir::Ref(first) + run, end), "middle");
    const Expr last = e_.body().Name(ir::Min(ir::Ref(first) + run * 2, end), "last");
    const Var left = e_.body().Mutable(ir::Ref(first), "left"), right = e_.body().Mutable(middle, "right");
    const Var out = ir::MakeIndex(e_.body().FreshName("out"), 0, length_ - 1, type);
    e_.values().Open();
    const Values l = LoadAll(from, ir::Min(ir::Ref(left), end - 1)),
                 r = LoadAll(from, ir::Min(ir::Ref(right), end - 1));
    Values arguments;
    for (size_t k = 0; k < l.size(); ++k) {
      arguments.push_back(r[k]);
      arguments.push_back(l[k]);
    }
    const Expr right_first = e_.values().Apply(*sort_.called(), arguments)[0].re;
    const Expr left_ended = ir::Compare(ir::Op::kGe, ir::Ref(left), middle),
               right_left = ir::Compare(ir::Op::kLt, ir::Ref(right), last);
    const Expr take_right = e_.body().Name(ir::Or(left_ended, ir::And(right_left, right_first)), "take_right");
    const Indices place = Place(e_.math().Of(out));
    for (size_t k = 0; k < l.size(); ++k)
      StoreElement(e_.values(), into[k], shape_of(k), place, SelectValue(take_right, r[k], l[k]));
    const Expr one = ir::Cast(take_right, type.element);
    e_.body().Add(ir::Assign(right, ir::Ref(right) + one));
    e_.body().Add(ir::Assign(left, ir::Ref(left) + (e_.IndexInt(1) - one)));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, out, ir::Ref(first), last, e_.values().Close()));
    e_.body().Add(ir::Assign(first, last));
    const ir::Stmt pair = e_.values().Close();
    e_.body().Add(ir::While(ir::Compare(ir::Op::kLt, ir::Ref(first), end), pair));
  }

  Emission e_;
  const Instruction& sort_;
  hlo::Shape shape_;
  int64_t dimension_, length_;
  Indices row_;
};

}  // namespace

int64_t SortScratchBytes(const Instruction& sort, const DeviceSpec& device) {
  if (const auto bytes = RadixSortScratchBytes(sort, device)) return *bytes;
  if (const auto bytes = GpuSortScratchBytes(sort, device)) return *bytes;
  int64_t bytes = 0;
  for (const Instruction* operand : sort.operands()) bytes += AlignScratch(operand->shape().ByteSize());
  return bytes;
}

Launches EmitSort(const EmitRequest& request) {
  if (request.instruction.Is(hlo::Opcode::kFusion) &&
      request.instruction.called()->root() != request.hero.instruction) {
    Fail(ErrorCode::kUnimplemented, "{}: a sort with consumers in its fusion has no kernel",
         request.instruction.name());
  }
  if (auto launches = EmitRadixSort(request)) return std::move(*launches);
  if (auto launches = EmitGpuSort(request)) return std::move(*launches);
  Launches launches;
  launches.push_back(SortKernel(request).Emit());
  return launches;
}

}  // namespace hlorun::opencl
