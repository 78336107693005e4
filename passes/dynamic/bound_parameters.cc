#include "passes/dynamic/bound_parameters.h"

#include "hlo/verifier.h"
#include "passes/dynamic/lower.h"
#include "passes/generic_context.h"
#include "passes/memory/flatten_control.h"
#include "passes/simplify/inline.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Shape;

// Marks `dimension` of leaf number `leaf`, counted down to 0 on the way.
Shape WithBound(const Shape& shape, int64_t& leaf, int64_t dimension) {
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.tuple_shapes()) elements.push_back(WithBound(element, leaf, dimension));
    return Shape::Tuple(std::move(elements));
  }
  Shape bounded = shape;
  if (leaf-- == 0) bounded.set_dynamic_dimension(dimension, true);
  return bounded;
}

void MarkParameter(hlo::Module& module, const DimensionOfLeaf& d) {
  int64_t leaf = d.leaf;
  for (Instruction* parameter : module.entry()->parameters()) {
    const int64_t count = hlo::LeafCount(parameter->shape());
    if (leaf < count) return parameter->set_shape(WithBound(parameter->shape(), leaf, d.dimension));
    leaf -= count;
  }
}

}  // namespace

void PrepareForSizes(hlo::Module& module) {
  GenericContext context;
  InlineFusions().Run(module, context);
  InlineCalls().Run(module, context);
  FlattenControl().Run(module, context);
}

void BoundParameters(hlo::Module& module, const std::vector<DimensionOfLeaf>& dimensions) {
  if (dimensions.empty()) return;
  for (const DimensionOfLeaf& d : dimensions) MarkParameter(module, d);
  for (const auto& [instruction, shape] : FindDynamicShapes(module)) instruction->set_shape(shape);
  module.entry_layout.reset();
  module.RemoveUnreachable();
  hlo::VerifyModule(module);
}

}  // namespace hlorun::passes
