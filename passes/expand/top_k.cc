#include "passes/expand/top_k.h"

#include <algorithm>
#include <optional>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

namespace {

struct Request {
  int64_t k;
  bool largest;
};

// "mhlo.attributes" of a custom-call: {k = 3 : i64, largest = true}
bool SaysSmallest(const std::string& attributes) {
  const size_t at = attributes.find("largest");
  return at != std::string::npos && attributes.compare(attributes.find_first_not_of(" =", at + 7), 5, "false") == 0;
}

std::optional<Request> RequestOf(const Instruction& instruction) {
  if (instruction.Is(Opcode::kTopK)) {
    const auto& top = instruction.As<hlo::attr::TopK>();
    return Request{top.k, top.largest};
  }
  if (!instruction.Is(Opcode::kCustomCall)) return std::nullopt;
  const std::string& target = instruction.As<hlo::attr::CustomCall>().target;
  if ((target != "TopK" && target != "mhlo.topk") || !instruction.shape().IsTuple()) return std::nullopt;
  Request request{instruction.shape().tuple_shape(0).dimensions().back(), true};
  if (!instruction.called_computations().empty()) {
    // The comparator says which come first.
    const Instruction* root = instruction.called()->root();
    if (!root->Is(Opcode::kCompare)) return std::nullopt;
    const ComparisonDirection direction = root->As<hlo::attr::Compare>().direction;
    request.largest = direction != ComparisonDirection::kLt && direction != ComparisonDirection::kLe;
  }
  const auto attributes = instruction.frontend_attributes.find("mhlo.attributes");
  if (attributes != instruction.frontend_attributes.end() && SaysSmallest(attributes->second)) request.largest = false;
  return request;
}

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
Instruction* Spelled(Instruction* call, const Request& request) {
  if (call->Is(Opcode::kTopK)) return call;
  hlo::Builder build(call->parent(), call);
  build.before = call;
  Instruction* top = build.Make(Opcode::kTopK, {call->operand(0)}, hlo::attr::TopK{request.k, request.largest});
  if (!SameLeaves(top->shape(), call->shape())) return call;
  call->parent()->Replace(call, top);
  return top;
}

void Expand(Instruction* top, const Request& request) {
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
      const std::optional<Request> request = RequestOf(*instruction);
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
