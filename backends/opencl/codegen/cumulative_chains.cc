#include "backends/opencl/codegen/cumulative_chains.h"

#include "backends/opencl/codegen/element_expr.h"

namespace hlorun::opencl {

using ir::Var;

Values Running::Current() const {
  Values values;
  for (size_t i = 0; i < re.size(); ++i) values.push_back({ir::Ref(re[i]), im[i] ? ir::Ref(im[i]) : nullptr});
  return values;
}

void Running::Set(Body& body, const Values& values) const {
  for (size_t i = 0; i < re.size(); ++i) {
    body.Add(ir::Assign(re[i], values[i].re));
    if (im[i]) body.Add(ir::Assign(im[i], values[i].im));
  }
}

CumulativeChains::CumulativeChains(const EmitRequest& request, const hlo::CumulativeWindow& form)
    : e_(request.instruction, request.aliases, request.context),
      op_(*request.hero.instruction),
      form_(form),
      arrays_(op_.operand_count() / 2),
      shape_(op_.operand(0)->shape()),
      length_(shape_.dimension(form.dimension)),
      outer_(SideOf(0, form.dimension)),
      inner_(SideOf(form.dimension + 1, shape_.rank())) {
  const auto extent = form.reverse ? passes::ExtentsOf(request.instruction).contraction : ExtentOf(form.dimension);
  is_sized_ = extent.has_value();
  end_ = extent ? e_.ValueOf(*extent, length_) : e_.IndexInt(length_);
}

std::optional<passes::OperandExtent> CumulativeChains::ExtentOf(int64_t dimension) {
  return e_.SharedExtent([dimension](const Emission::Output&) { return dimension; });
}

CumulativeChains::Side CumulativeChains::SideOf(int64_t begin, int64_t end) {
  Side side;
  int64_t first = begin;  // of those that are counted together
  for (int64_t d = begin; d < end; ++d) {
    if (ExtentOf(d)) first = d;
  }
  for (int64_t d = begin; d < end; ++d) {
    const int64_t size = shape_.dimension(d);
    const auto extent = ExtentOf(d);
    if (d < first) {
      side.loops.push_back(e_.IndexVar("d" + std::to_string(d), size));
      side.sizes.push_back(size);
      side.ends.push_back(extent ? e_.ValueOf(*extent, size) : e_.IndexInt(size));
      continue;
    }
    if (d == first && extent) {
      side.is_sized = true;
      side.end = e_.ValueOf(*extent, size);
    }
    side.together.push_back(size);
    side.count *= size;
  }
  if (side.is_sized)
    side.end = side.end * (side.count / side.together.front());
  else
    side.end = e_.IndexInt(side.count);
  return side;
}

void CumulativeChains::AppendPlace(const Side& side, const Index& linear, Indices& place) {
  for (const Var& loop : side.loops) place.push_back(e_.math().Of(loop));
  const Indices rest = e_.math().Delinearize(linear, side.together);
  place.insert(place.end(), rest.begin(), rest.end());
}

Indices CumulativeChains::Place(const Index& outer, const Index& i, const Index& inner) {
  Indices place;
  AppendPlace(outer_, outer, place);
  place.push_back(i);
  AppendPlace(inner_, inner, place);
  return place;
}

Values CumulativeChains::Initial() {
  Values values;
  for (int64_t i = 0; i < arrays_; ++i) values.push_back(e_.values().Get(e_.frame(), *op_.operand(arrays_ + i), {}));
  return values;
}

Values CumulativeChains::Combine(Values before, Values here) {
  if (form_.reverse) std::swap(before, here);
  before.insert(before.end(), here.begin(), here.end());
  return e_.values().Apply(*op_.called(), std::move(before));
}
Values CumulativeChains::ElementsAt(const Indices& place) {
  Values here;
  for (int64_t i = 0; i < arrays_; ++i) here.push_back(e_.values().Get(e_.frame(), *op_.operand(i), place));
  return here;
}

void CumulativeChains::StoreAt(const Indices& place, const Values& values) {
  for (const auto& output : e_.outputs()) {
    const bool is_chosen = output.root->Is(hlo::Opcode::kGetTupleElement);
    const size_t element = is_chosen ? static_cast<size_t>(output.root->tuple_index()) : output.element;
    e_.Store(output, place, values[element]);
  }
}

Running CumulativeChains::Variables(const Values& initial) {
  Running running;
  for (const Value& value : initial) {
    running.re.push_back(e_.body().Mutable(value.re));
    running.im.push_back(value.im ? e_.body().Mutable(value.im) : nullptr);
  }
  return running;
}

EmittedLaunch CumulativeChains::Finish(ir::Stmt loops, const ir::Stmt& body) {
  for (const Side* side : {&inner_, &outer_}) {
    for (size_t i = side->loops.size(); i-- > 0;) {
      loops = ir::For(ir::LoopRole::kParallel, side->loops[i], e_.IndexInt(0), side->ends[i], loops);
    }
  }
  return e_.Finish(loops, GrainOf(WorkOf(body)));
}

}  // namespace hlorun::opencl
