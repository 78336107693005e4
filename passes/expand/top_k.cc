#include "passes/expand/top_k.h"

#include <algorithm>
#include <optional>

#include "hlo/builder.h"
#include "hlo/custom_calls/named_ops.h"
#include "hlo/module.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// (a, b, position a, position b) -> a before b, in the total order that tells NaN and signed zeros apart.
hlo::Computation* Comparator(hlo::Module* module, hlo::ElementType type, bool largest) {
  hlo::Computation* computation = module->AddComputation("top_k_order");
  Instruction* a = computation->AddParameter(0, hlo::Shape::Scalar(type), "a");
  Instruction* b = computation->AddParameter(1, hlo::Shape::Scalar(type), "b");
  computation->AddParameter(2, hlo::Shape::Scalar(hlo::ElementType::kS32), "position_a");
  computation->AddParameter(3, hlo::Shape::Scalar(hlo::ElementType::kS32), "position_b");
  hlo::attr::Compare compare;
  compare.direction = largest ? ComparisonDirection::kGt : ComparisonDirection::kLt;
  if (hlo::IsFloating(type)) compare.type = hlo::ComparisonType::kTotalOrder;
  computation->set_root(hlo::Builder(computation).Make(Opcode::kCompare, {a, b}, compare));
  return computation;
}

bool SameLeaves(const hlo::Shape& a, const hlo::Shape& b) {
  const auto x = hlo::FlattenShape(a), y = hlo::FlattenShape(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const hlo::Shape& s, const hlo::Shape& t) {
    return s.element_type() == t.element_type() && s.SameDimensions(t);
  });
}

// A custom-call as the instruction that it stands for, where their shapes agree.
Instruction* Spelled(Instruction* call, const hlo::TopKRequest& request) {
  if (call->Is(Opcode::kTopK)) return call;
  hlo::Builder build(call->parent(), call);
  build.before = call;
  Instruction* top = build.Make(Opcode::kTopK, {call->operand(0)}, hlo::attr::TopK{request.k, request.largest});
  if (!SameLeaves(top->shape(), call->shape())) return call;
  call->parent()->Replace(call, top);
  return top;
}

void Expand(Instruction* top, const hlo::TopKRequest& request) {
  Instruction* x = top->operand(0);
  hlo::Builder build(top->parent(), top);
  build.before = top;
  const int64_t last = x->shape().rank() - 1;
  Instruction* positions = build.Iota(hlo::Shape(hlo::ElementType::kS32, x->shape().dimensions()), last);
  hlo::Computation* order = Comparator(top->module(), x->shape().element_type(), request.largest);
  Instruction* sorted = build.Make(Opcode::kSort, {x, positions}, hlo::attr::Sort{last, true}, {order});
  const hlo::Dims starts(static_cast<size_t>(last) + 1, 0), strides(starts.size(), 1);
  hlo::Dims limits = x->shape().dimensions();
  limits.back() = request.k;
  std::vector<Instruction*> results;
  for (int64_t i = 0; i < 2; ++i) {
    results.push_back(build.Slice(build.GetTupleElement(sorted, i), starts, limits, strides));
  }
  top->parent()->Replace(top, build.Tuple(results));
}

}  // namespace

bool ExpandTopK::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      const std::optional<hlo::TopKRequest> request = hlo::TopKRequestOf(*instruction);
      if (!request) continue;
      Instruction* top = Spelled(instruction, *request);
      changed |= top != instruction;
      if (top->Is(Opcode::kTopK) && context.kernels.Supports(*top)) continue;
      Expand(top, *request);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
