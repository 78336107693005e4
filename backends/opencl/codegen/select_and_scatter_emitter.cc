#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/window_place.h"

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
          const WindowPlace at = PlaceInWindow(e_.math(), window_[d], place[d], j[d], operand_.dimensions()[d]);
          from.push_back(at.index);
          inside = ir::And(inside, at.inside);
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
    for (const auto& w : window_) windows.push_back(IsDilated(w) ? w.size : (w.size + w.stride - 1) / w.stride);
    e_.values().SerialLoops(windows, [&](const Indices& k) {
      Indices place;
      Expr there = mask ? mask : ir::Pred(true);
      for (size_t d = 0; d < window_.size(); ++d) {
        const hlo::WindowDimension& w = window_[d];
        const Index in_base = e_.math().Add(e_.math().Mul(at[d], w.base_dilation), w.padding_low);
        // How many windows, or taps of dilated ones, come behind.
        const Index behind = e_.math().Sub(windows[d] - 1, k[d]);
        if (IsDilated(w)) {
          const Index begin = e_.math().Sub(in_base, e_.math().Mul(behind, w.window_dilation));
          const Expr rest = e_.math().ToExpr(e_.math().Mod(begin, w.stride));
          there = ir::And(there, ir::Compare(ir::Op::kEq, rest, e_.IndexInt(0)));
          place.push_back(e_.math().FloorDiv(begin, w.stride));
        } else {
          place.push_back(e_.math().Sub(e_.math().FloorDiv(in_base, w.stride), behind));
        }
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

  static bool IsDilated(const hlo::WindowDimension& w) { return w.window_dilation > 1 || w.base_dilation > 1; }

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
