#include "passes/expand/ragged_dot.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"
#include "hlo/shape_inference.h"
#include "passes/expand/counted_loop.h"

namespace hlorun::passes {

using hlo::Contains;
using hlo::Dims;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Axes = std::vector<int64_t>;

namespace {

Axes Shifted(Axes axes, int64_t by) {
  for (int64_t& d : axes) d += by;
  return axes;
}

Axes Without(Axes axes, int64_t removed) {
  for (int64_t& d : axes) d -= d > removed ? 1 : 0;
  return axes;
}

class Expansion {
 public:
  explicit Expansion(Instruction* dot)
      : dot_(dot),
        attributes_(dot->As<hlo::attr::Dot>()),
        ragged_(attributes_.lhs_ragged.at(0)),
        build_(dot->parent(), dot) {
    build_.before = dot;
    plain_ = attributes_;
    plain_.lhs_ragged.clear();
    plain_.rhs_group.clear();
  }

  Instruction* Run() {
    if (dot_->operand(2)->shape().ElementCount() == 0) return build_.Splat(dot_->shape(), 0.0);
    FindGroups();
    if (Contains(attributes_.lhs_contracting, ragged_)) return Contracted();
    return Contains(attributes_.lhs_batch, ragged_) ? Batched() : Free();
  }

 private:
  Instruction* lhs() const { return dot_->operand(0); }
  Instruction* rhs() const { return dot_->operand(1); }
  ElementType type() const { return dot_->shape().element_type(); }

  // Where each group begins and ends: s32[groups].
  void FindGroups() {
    Instruction* sizes = dot_->operand(2);
    if (sizes->shape().rank() != 1) {
      Fail(ErrorCode::kUnimplemented, "{}: ragged-dot with group sizes for each batch is not supported", dot_->name());
    }
    groups_ = sizes->shape().dimension(0);
    const int64_t rows = lhs()->shape().dimension(ragged_);
    const Shape shape(ElementType::kS32, {groups_});
    if (sizes->shape().element_type() != ElementType::kS64) sizes = build_.Convert(sizes, ElementType::kS64);
    const Shape wide(ElementType::kS64, {groups_});
    sizes = build_.Make(Opcode::kClamp, {build_.Splat(wide, int64_t{0}), sizes, build_.Splat(wide, rows)});
    hlo::Window window(1);
    window[0].size = groups_;
    window[0].padding_low = groups_ - 1;
    hlo::Computation* add = hlo::MakeScalarComputation(dot_->module(), Opcode::kAdd, ElementType::kS64);
    Instruction* ends =
        build_.Make(Opcode::kReduceWindow, {sizes, build_.ScalarConstant(ElementType::kS64, int64_t{0})},
                    hlo::attr::Windowed{window}, {add});
    Instruction* starts = build_.Binary(Opcode::kSubtract, ends, sizes);
    const auto bounded = [&](Instruction* x) {
      return build_.Convert(build_.Binary(Opcode::kMinimum, x, build_.Splat(wide, rows)), ElementType::kS32);
    };
    ends_ = bounded(ends);
    starts_ = bounded(starts);
  }

  // Positions along dimension `d` of an array of `dimensions` that lie in [first, last), spread over the array.
  static Instruction* Inside(hlo::Builder& build, const Dims& dimensions, int64_t d, Instruction* first,
                             Instruction* last) {
    Instruction* at = build.Iota(Shape(ElementType::kS32, dimensions), d);
    return build.Binary(Opcode::kAnd, build.Compare(at, first, hlo::ComparisonDirection::kGe),
                        build.Compare(at, last, hlo::ComparisonDirection::kLt));
  }

  // The operand with a group dimension in front and zeros where dimension `d` is outside of the group.
  Instruction* Grouped(Instruction* x, int64_t d) {
    Dims dimensions = x->shape().dimensions();
    dimensions.insert(dimensions.begin(), groups_);
    Axes own;
    for (int64_t i = 0; i < x->shape().rank(); ++i) own.push_back(i + 1);
    Instruction* inside = Inside(build_, dimensions, d + 1, build_.Broadcast(starts_, dimensions, {0}),
                                 build_.Broadcast(ends_, dimensions, {0}));
    Instruction* spread = build_.Broadcast(x, dimensions, own);
    return build_.Select(inside, spread, build_.Splat(spread->shape(), 0.0));
  }

  Instruction* Contracted() {
    const auto place = std::find(attributes_.lhs_contracting.begin(), attributes_.lhs_contracting.end(), ragged_);
    const int64_t rhs_ragged =
        attributes_.rhs_contracting[static_cast<size_t>(place - attributes_.lhs_contracting.begin())];
    for (Axes* axes : {&plain_.lhs_batch, &plain_.rhs_batch, &plain_.lhs_contracting, &plain_.rhs_contracting})
      *axes = Shifted(*axes, 1);
    plain_.lhs_batch.insert(plain_.lhs_batch.begin(), 0);
    plain_.rhs_batch.insert(plain_.rhs_batch.begin(), 0);
    return build_.Dot(Grouped(lhs(), ragged_), Grouped(rhs(), rhs_ragged), plain_, type());
  }

  // The ragged dimension's place in the result of a plain dot.
  int64_t ResultDimension() const {
    const auto batch = std::find(plain_.lhs_batch.begin(), plain_.lhs_batch.end(), ragged_);
    if (batch != plain_.lhs_batch.end()) return batch - plain_.lhs_batch.begin();
    auto at = static_cast<int64_t>(plain_.lhs_batch.size());
    for (int64_t d = 0; d < ragged_; ++d)
      at += Contains(plain_.lhs_batch, d) || Contains(plain_.lhs_contracting, d) ? 0 : 1;
    return at;
  }

  Instruction* Batched() {
    Instruction* product = build_.Dot(lhs(), rhs(), plain_, type());
    const Dims& dimensions = product->shape().dimensions();
    Instruction* last = build_.Reshape(build_.Slice(ends_, {groups_ - 1}, {groups_}, {1}), {});
    Instruction* zero = build_.ScalarConstant(ElementType::kS32, int64_t{0});
    Instruction* inside = Inside(build_, dimensions, ResultDimension(), build_.Broadcast(zero, dimensions, {}),
                                 build_.Broadcast(last, dimensions, {}));
    return build_.Select(inside, product, build_.Splat(product->shape(), 0.0));
  }

  Instruction* Free() {
    const int64_t group_dimension = attributes_.rhs_group.at(0), place = ResultDimension();
    plain_.rhs_batch = Without(plain_.rhs_batch, group_dimension);
    plain_.rhs_contracting = Without(plain_.rhs_contracting, group_dimension);
    const LoopStep step = [&](hlo::Builder& in, Instruction* group, const std::vector<Instruction*>& carried) {
      Dims sizes = carried[1]->shape().dimensions();
      sizes[static_cast<size_t>(group_dimension)] = 1;
      std::vector<Instruction*> starts(sizes.size(), in.ScalarConstant(ElementType::kS32, int64_t{0}));
      starts[static_cast<size_t>(group_dimension)] = group;
      Instruction* matrix = in.DynamicSlice(carried[1], starts, sizes);
      sizes.erase(sizes.begin() + group_dimension);
      Instruction* product = in.Dot(carried[0], in.Reshape(matrix, sizes), plain_, type());
      const Dims& dimensions = product->shape().dimensions();
      const auto bound = [&](Instruction* all) {
        return in.Broadcast(in.Reshape(in.DynamicSlice(all, {group}, {1}), {}), dimensions, {});
      };
      Instruction* inside = Inside(in, dimensions, place, bound(carried[2]), bound(carried[3]));
      return std::vector<Instruction*>{carried[0], carried[1], carried[2], carried[3],
                                       in.Select(inside, product, carried[4])};
    };
    const Shape shape(type(), dot_->shape().dimensions());
    return CountedLoop(build_, dot_->module(), groups_, {lhs(), rhs(), starts_, ends_, build_.Splat(shape, 0.0)},
                       step)[4];
  }

  Instruction* dot_;
  const hlo::attr::Dot& attributes_;
  int64_t ragged_;
  hlo::Builder build_;
  hlo::attr::Dot plain_;  // without what is ragged
  int64_t groups_ = 0;
  Instruction* starts_ = nullptr;
  Instruction* ends_ = nullptr;
};

Instruction* Dequantized(hlo::Builder& build, Instruction* operand, Instruction* scale) {
  if (scale->shape().rank() == 0) return operand;
  const ElementType type = hlo::DequantizedType(operand->shape().element_type(), scale->shape().element_type());
  const auto in_type = [&](Instruction* x) { return x->shape().element_type() == type ? x : build.Convert(x, type); };
  Dims blocks;
  Axes own;
  for (int64_t d = 0; d < scale->shape().rank(); ++d) {
    own.push_back(static_cast<int64_t>(blocks.size()));
    blocks.push_back(scale->shape().dimension(d));
    blocks.push_back(operand->shape().dimension(d) / scale->shape().dimension(d));
  }
  Instruction* spread = build.Reshape(build.Broadcast(in_type(scale), blocks, own), operand->shape().dimensions());
  return build.Binary(Opcode::kMultiply, in_type(operand), spread);
}

Instruction* ExpandedScaledDot(Instruction* dot) {
  hlo::Builder build(dot->parent(), dot);
  build.before = dot;
  return build.Dot(Dequantized(build, dot->operand(0), dot->operand(2)),
                   Dequantized(build, dot->operand(1), dot->operand(3)), dot->As<hlo::attr::Dot>(),
                   dot->shape().element_type());
}

bool ExpandAll(hlo::Module& module, Opcode opcode, Instruction* (*expand)(Instruction*)) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(opcode)) continue;
      computation->Replace(instruction, expand(instruction));
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool ExpandRaggedDot::Run(hlo::Module& module, PassContext&) {
  return ExpandAll(module, Opcode::kRaggedDot, [](Instruction* dot) { return Expansion(dot).Run(); });
}

bool ExpandScaledDot::Run(hlo::Module& module, PassContext&) {
  return ExpandAll(module, Opcode::kScaledDot, ExpandedScaledDot);
}

}  // namespace hlorun::passes
