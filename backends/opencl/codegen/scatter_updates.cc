#include "backends/opencl/codegen/scatter_updates.h"

#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/reducers.h"
#include "hlo/builder.h"

namespace hlorun::opencl {
namespace {

using hlo::Contains;
using hlo::Instruction;
using ir::Expr;

// A start as an index in [-1, limit + 1]: what lies outside stays outside, and nothing overflows.
Index UnclampedStart(Emission& e, const Value& value, int64_t limit) {
  Expr x = value.re;
  if (hlo::BitsOf(x->type.element) < 32) x = ir::Cast(x, hlo::ElementType::kS32);
  if (hlo::IsSigned(x->type.element)) x = ir::Max(x, ir::Int(-1, x->type));
  const int64_t highest = x->type.element == hlo::ElementType::kS32   ? INT32_MAX
                          : x->type.element == hlo::ElementType::kU32 ? UINT32_MAX
                                                                      : INT64_MAX;
  if (limit + 1 < highest) x = ir::Min(x, ir::Int(limit + 1, x->type));
  const ir::Var variable = ir::MakeIndex(e.body().FreshName("at"), -1, limit + 1, e.math().type());
  e.body().Add(ir::Let(variable, ir::Cast(x, e.math().type().element)));
  return e.math().Of(variable);
}

std::vector<ScatterUpdates::Target> ResultsOf(const Emission& e) {
  std::vector<ScatterUpdates::Target> targets;
  for (const auto& output : e.outputs()) targets.push_back({output.buffer, output.shape});
  return targets;
}

}  // namespace

ScatterUpdates::ScatterUpdates(Emission& e, const Instruction& scatter)
    : ScatterUpdates(e, scatter, e.frame(), ResultsOf(e)) {}

ScatterUpdates::ScatterUpdates(Emission& e, const Instruction& scatter, const Frame& frame, std::vector<Target> targets)
    : e_(e),
      scatter_(scatter),
      frame_(frame),
      targets_(std::move(targets)),
      attributes_(scatter.As<hlo::attr::Scatter>()),
      count_((scatter.operand_count() - 1) / 2),
      operand_shape_(scatter.operand(0)->shape()),
      indices_shape_(scatter.operand(count_)->shape()),
      updates_shape_(scatter.operand(count_ + 1)->shape()) {
  for (int64_t d = 0; d < updates_shape_.rank(); ++d) {
    (Contains(attributes_.update_window_dims, d) ? window_dims_ : batch_dims_).push_back(d);
  }
  for (int64_t d = 0; d < operand_shape_.rank(); ++d) {
    const bool inserted = Contains(attributes_.inserted_window_dims, d) || Contains(attributes_.input_batching_dims, d);
    if (!inserted) window_operand_dims_.push_back(d);
  }
}

std::vector<int64_t> ScatterUpdates::OperandBatchDims() const {
  std::vector<int64_t> dims;
  for (int64_t position : attributes_.scatter_indices_batching_dims) {
    if (position > attributes_.index_vector_dim) --position;
    dims.push_back(batch_dims_[static_cast<size_t>(position)]);
  }
  return dims;
}

std::vector<int64_t> ScatterUpdates::RowDims() const {
  std::vector<int64_t> dims;
  for (const int64_t d : attributes_.scatter_dims_to_operand_dims) {
    if (WindowSize(d) == 1) dims.push_back(d);
  }
  return dims;
}

bool ScatterUpdates::WindowsAreSpread() const {
  if (window_dims_.empty()) return false;
  const auto is_spread = [](const hlo::Shape& shape, int64_t dimension) {
    int64_t apart = hlo::BytesOf(shape.element_type());
    for (int64_t d = dimension + 1; d < shape.rank(); ++d) apart *= shape.dimension(d);
    return apart >= kLineBytes;
  };
  return is_spread(updates_shape_, window_dims_.back()) && is_spread(operand_shape_, window_operand_dims_.back());
}

bool ScatterUpdates::WindowsSlide() const {
  const auto& dims = attributes_.scatter_dims_to_operand_dims;
  return std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return WindowSize(d) > 1 && Limit(d) > 0; });
}

ScatterUpdates::Start ScatterUpdates::StartOf(const Indices& update, const Expr& mask) {
  Indices batch;
  for (const int64_t d : batch_dims_) batch.push_back(update[static_cast<size_t>(d)]);
  Start start{Indices(static_cast<size_t>(operand_shape_.rank())), ir::Pred(true)};
  for (size_t i = 0; i < attributes_.scatter_dims_to_operand_dims.size(); ++i) {
    Indices at = batch;
    if (attributes_.index_vector_dim < indices_shape_.rank())
      at.insert(at.begin() + attributes_.index_vector_dim, Index(static_cast<int64_t>(i)));
    const int64_t d = attributes_.scatter_dims_to_operand_dims[i];
    const Index s = UnclampedStart(e_, e_.values().Get(frame_, *scatter_.operand(count_), at, mask), Limit(d));
    start.inside = ir::And(start.inside, e_.math().Within(s, 0, Limit(d) + 1));
    start.at[static_cast<size_t>(d)] = s;
  }
  for (size_t i = 0; i < attributes_.input_batching_dims.size(); ++i) {
    int64_t position = attributes_.scatter_indices_batching_dims[i];
    if (position > attributes_.index_vector_dim) --position;
    start.at[static_cast<size_t>(attributes_.input_batching_dims[i])] = batch[static_cast<size_t>(position)];
  }
  return start;
}

int64_t ScatterUpdates::WindowSize(int64_t operand_dim) const {
  const auto found = std::find(window_operand_dims_.begin(), window_operand_dims_.end(), operand_dim);
  if (found == window_operand_dims_.end()) return 1;
  return updates_shape_.dimension(window_dims_[static_cast<size_t>(found - window_operand_dims_.begin())]);
}

Indices ScatterUpdates::PlaceOf(const Start& start, const Indices& update) const {
  Indices place = start.at;
  for (size_t i = 0; i < window_operand_dims_.size(); ++i) {
    Index& at = place[static_cast<size_t>(window_operand_dims_[i])];
    at = e_.math().Add(at, update[static_cast<size_t>(window_dims_[i])]);
  }
  return place;
}

ScatterUpdates::Element ScatterUpdates::Combined(const Start& start, const Indices& update) {
  const Indices place = PlaceOf(start, update);
  const Expr linear = e_.math().ToExpr(e_.math().Linearize(place, operand_shape_.dimensions()));
  Values arguments;
  for (const Target& output : targets_) {
    const bool complex = hlo::IsComplex(output.shape.element_type());
    const Expr at = complex ? linear * 2 : linear;
    arguments.push_back({e_.body().Name(ir::Load(output.buffer, at)),
                         complex ? e_.body().Name(ir::Load(output.buffer, at + 1)) : nullptr});
  }
  for (int64_t i = 0; i < count_; ++i)
    arguments.push_back(e_.values().Get(frame_, *scatter_.operand(count_ + 1 + i), update));
  return {place, e_.values().Apply(*scatter_.called(), std::move(arguments))};
}

void ScatterUpdates::Store(const Element& element) {
  for (size_t i = 0; i < element.results.size(); ++i) {
    const Target& output = targets_[i];
    StoreElement(e_.values(), output.buffer, output.shape, element.place, element.results[i]);
  }
}

bool CombinesInParts(const Instruction& scatter) {
  if (scatter.operand_count() != 3 || scatter.As<hlo::attr::Scatter>().unique_indices) return false;
  const hlo::ElementType type = scatter.operand(0)->shape().element_type();
  const auto opcode = hlo::ReducerOpcode(*scatter.called());
  if (!opcode || !NeutralOf(*opcode, type) || hlo::IsComplex(type)) return false;
  return !hlo::IsFloating(type) || PartialType(type) == type;
}

}  // namespace hlorun::opencl
