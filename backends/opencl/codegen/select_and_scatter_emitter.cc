#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using ir::Expr;

// A value in variables.
struct Slot {
  ir::Var re, im;
  Slot(Body& body, const Value& initial, const char* name)
      : re(body.Mutable(initial.re, name)), im(initial.im ? body.Mutable(initial.im, name) : nullptr) {}
  Value Get() const { return {ir::Ref(re), im ? ir::Ref(im) : nullptr}; }
  void Set(Body& body, const Value& v) const {
    body.Add(ir::Assign(re, v.re));
    if (im) body.Add(ir::Assign(im, v.im));
  }
};

// Two launches: which element each window selects, as a linear index in scratch; then each element of what is wanted of
// the result asks the windows over it, in ascending order, whether it was selected. No two work-items write one place.
class SelectAndScatterKernel {
 public:
  explicit SelectAndScatterKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        op_(*request.hero.instruction),
        window_(op_.As<hlo::attr::Windowed>().window),
        operand_(op_.operand(0)->shape()),
        source_(op_.operand(1)->shape()) {
    for (const auto& w : window_) sizes_.push_back(w.size);
  }

  EmittedLaunch Select() {
    const ir::BufferRef chosen = Chosen(true);
    return OverElements(e_, source_.dimensions(), [&](const Indices& place) {
      const Slot best(e_.body(), ConstantValue(hlo::Literal(hlo::Shape::Scalar(operand_.element_type())), 0), "best");
      const ir::Var best_at = e_.body().Mutable(e_.IndexInt(-1), "best_at");
      e_.values().SerialLoops(sizes_, [&](const Indices& j) {
        Indices from;
        Expr inside = ir::Pred(true);
        for (size_t d = 0; d < window_.size(); ++d) {
          from.push_back(
              e_.math().Add(e_.math().Add(e_.math().Mul(place[d], window_[d].stride), j[d]), -window_[d].padding_low));
          inside = ir::And(inside, e_.math().Within(from[d], 0, operand_.dimensions()[d]));
        }
        inside = e_.body().Name(inside, "m");
        const Value candidate = e_.values().Get(e_.frame(), *op_.operand(0), from, inside);
        const Expr keep = e_.values().Apply(*op_.called(0), {best.Get(), candidate})[0].re;
        const Expr first = ir::Compare(ir::Op::kLt, ir::Ref(best_at), e_.IndexInt(0));
        const Expr take = e_.body().Name(ir::And(inside, ir::Or(first, ir::Not(keep))), "take");
        best.Set(e_.body(), SelectValue(take, candidate, best.Get()));
        e_.body().Add(ir::Assign(best_at, ir::Select(take, LinearIn(operand_, from), ir::Ref(best_at))));
      });
      e_.body().Add(ir::Store(chosen, LinearIn(source_, place), ir::Ref(best_at)));
    });
  }

  EmittedLaunch Scatter() {
    const ir::BufferRef chosen = Chosen(false);
    e_.values().Keep(e_.frame(), op_, [this, chosen](const Indices& at, const Expr& mask) {
      return Values{SumOfWindows(chosen, at, mask)};
    });
    const auto& output = e_.outputs()[0];
    return OverElements(e_, output.shape.dimensions(),
                        [&](const Indices& at) { e_.Store(output, at, e_.ValueOf(output, at)); });
  }

 private:
  // Element `at` of the result.
  Value SumOfWindows(const ir::BufferRef& chosen, const Indices& at, const Expr& mask) {
    const Slot sum(e_.body(), e_.values().Get(e_.frame(), *op_.operand(2), {}), "sum");
    const Expr self = e_.body().Name(LinearIn(operand_, at));
    // Only every stride-th window position reaches an element: count windows, not positions.
    hlo::Dims windows;
    for (const auto& w : window_) windows.push_back((w.size + w.stride - 1) / w.stride);
    e_.values().SerialLoops(windows, [&](const Indices& k) {
      Indices place;
      Expr there = mask ? mask : ir::Pred(true);
      for (size_t d = 0; d < window_.size(); ++d) {
        const hlo::WindowDimension& w = window_[d];
        // The last window that begins at or before the element, less those to come.
        const Index last = e_.math().FloorDiv(e_.math().Add(at[d], w.padding_low), w.stride);
        place.push_back(e_.math().Sub(e_.math().Add(last, k[d]), windows[d] - 1));
        there = ir::And(there, e_.math().Within(place[d], 0, source_.dimensions()[d]));
      }
      there = e_.body().Name(there, "m");
      const Expr selected = e_.body().Name(ir::Load(chosen, LinearIn(source_, place), there));
      const Expr mine = e_.body().Name(ir::And(there, ir::Compare(ir::Op::kEq, selected, self)), "mine");
      const Value after =
          e_.values().Apply(*op_.called(1), {sum.Get(), e_.values().Get(e_.frame(), *op_.operand(1), place, there)})[0];
      sum.Set(e_.body(), SelectValue(mine, after, sum.Get()));
    });
    return sum.Get();
  }

  Expr LinearIn(const hlo::Shape& shape, const Indices& at) {
    return e_.math().ToExpr(e_.math().Linearize(at, shape.dimensions()));
  }
  ir::BufferRef Chosen(bool written) {
    return e_.Scratch("chosen", e_.math().type().element, source_.ElementCount(), 0, written);
  }

  Emission e_;
  const Instruction& op_;
  const hlo::Window& window_;
  const hlo::Shape &operand_, &source_;
  hlo::Dims sizes_;
};

}  // namespace

int64_t SelectAndScatterScratchBytes(const Instruction& instruction, const Instruction& op) {
  return op.operand(1)->shape().ElementCount() * (FitsIndex32(instruction) ? 4 : 8);
}

Launches EmitSelectAndScatter(const EmitRequest& request) {
  const Instruction& op = *request.hero.instruction;
  Launches launches;
  if (op.operand(1)->shape().ElementCount() > 0) launches.push_back(SelectAndScatterKernel(request).Select());
  launches.push_back(SelectAndScatterKernel(request).Scatter());
  return launches;
}

}  // namespace hlorun::opencl
