#include "backends/opencl/kernels/constant_operand.h"

#include <algorithm>
#include <span>

#include "hlo/callers.h"
#include "hlo/cost_analysis.h"
#include "hlo/module.h"
#include "passes/control/predication.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

// Weights are a few steps away from what they are made of: transposed, scaled, converted.
constexpr int kMostSteps = 8;

// The first leaf of a parameter of the entry; an element of a tuple counts from there.
int64_t FirstLeaf(const hlo::Instruction& parameter) {
  int64_t leaf = 0;
  for (const hlo::Instruction* before : parameter.parent()->parameters()) {
    if (before->parameter_number() < parameter.parameter_number()) leaf += hlo::LeafCount(before->shape());
  }
  return leaf;
}

bool IsSame(const hlo::Instruction& value, const CompileOptions& options, int steps) {
  if (value.IsConstant()) return true;
  const auto is_constant_leaf = [&](int64_t leaf) {
    return std::find(options.constant_parameters.begin(), options.constant_parameters.end(), leaf) !=
           options.constant_parameters.end();
  };
  if (value.Is(hlo::Opcode::kParameter)) return value.shape().IsArray() && is_constant_leaf(FirstLeaf(value));
  if (value.Is(hlo::Opcode::kGetTupleElement)) {
    const hlo::Instruction& tuple = *value.operand(0);
    if (!tuple.Is(hlo::Opcode::kParameter)) return false;
    const int64_t element = value.tuple_index();
    return value.shape().IsArray() &&
           is_constant_leaf(FirstLeaf(tuple) + hlo::LeafNumber(tuple.shape(), std::span(&element, 1)));
  }
  const bool is_computed = value.Is(hlo::Opcode::kFusion) || value.Is(hlo::Opcode::kBitcast) ||
                           value.Is(hlo::Opcode::kTranspose) || value.Is(hlo::Opcode::kConvert) ||
                           value.Is(hlo::Opcode::kReshape);
  return is_computed && steps > 0 && value.operand_count() > 0 &&
         std::all_of(value.operands().begin(), value.operands().end(),
                     [&](const hlo::Instruction* operand) { return IsSame(*operand, options, steps - 1); });
}

constexpr int64_t kFewestTrips = 8;

// The loop whose body `computation` is; null: it is no body.
const hlo::Instruction* LoopOf(const hlo::Computation& computation) {
  const hlo::Callers callers = hlo::CallersOf(*computation.module());
  const auto caller = callers.find(&computation);
  const bool is_body = caller != callers.end() && caller->second->Is(hlo::Opcode::kWhile) &&
                       caller->second->while_body() == &computation;
  return is_body ? caller->second : nullptr;
}

bool PassesThrough(const hlo::Computation& body, int64_t element) {
  const hlo::Instruction& root = *body.root();
  // A branch may be given more than it returns.
  if (!root.Is(hlo::Opcode::kTuple) || element >= root.operand_count()) return false;
  const hlo::Instruction& next = *root.operand(element);
  return next.Is(hlo::Opcode::kGetTupleElement) && next.tuple_index() == element && next.shape().IsArray() &&
         next.operand(0) == body.parameter(0);
}

// Whether a product reads `value`, as it is or seen in another shape. What one makes its operand of is not copied.
bool IsMultiplied(const hlo::Instruction& value) {
  const auto multiplies = [&](const hlo::Instruction& user) {
    const passes::Hero hero = passes::HeroOf(user);
    if (hero.kind != passes::KernelKind::kDot || !user.Is(hlo::Opcode::kFusion))
      return hero.kind == passes::KernelKind::kDot;
    const auto& operands = hero.instruction->operands();
    return std::any_of(operands.begin(), operands.end(), [&](const hlo::Instruction* operand) {
      return operand->Is(hlo::Opcode::kParameter) && user.operand(operand->parameter_number()) == &value;
    });
  };
  return std::any_of(value.users().begin(), value.users().end(), [&](const hlo::Instruction* user) {
    return user->Is(hlo::Opcode::kBitcast) ? IsMultiplied(*user) : multiplies(*user);
  });
}

}  // namespace

bool IsSameInEveryTrip(const hlo::Instruction& value, const DeviceSpec& device) {
  const hlo::Instruction* from = &value;
  for (int step = 0; step < kMostSteps && from->Is(hlo::Opcode::kBitcast); ++step) from = from->operand(0);
  if (value.module() == nullptr || value.parent() == value.module()->entry() ||
      !from->Is(hlo::Opcode::kGetTupleElement)) {
    return false;
  }
  const hlo::Computation& body = *value.parent();
  if (from->operand(0) != body.parameter(0) || !PassesThrough(body, from->tuple_index())) return false;
  const hlo::Instruction* loop = LoopOf(body);
  if (loop == nullptr || hlo::KnownTripCount(*loop).value_or(0) < kFewestTrips || passes::PredicationOf(*loop))
    return false;
  int64_t bytes = 0;
  for (const hlo::Instruction* element : body.parameter(0)->users()) {
    const bool passes = element->Is(hlo::Opcode::kGetTupleElement) && PassesThrough(body, element->tuple_index());
    if (passes && IsMultiplied(*element)) bytes += element->shape().ByteSize();
  }
  return bytes <= device.l3_bytes;
}

bool IsSameInEveryRun(const hlo::Instruction& value, const CompileOptions& options) {
  const hlo::Module* module = value.module();
  return module != nullptr && value.parent() == module->entry() && IsSame(value, options, kMostSteps);
}

}  // namespace hlorun::opencl
