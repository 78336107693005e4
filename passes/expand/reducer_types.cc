#include "passes/expand/reducer_types.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

using Types = std::vector<ElementType>;

ElementType TypeOf(const Instruction* array) { return array->shape().element_type(); }

// A type that holds every value of both.
ElementType Wider(ElementType a, ElementType b) {
  if (a == b) return a;
  if (hlo::IsComplex(a) || hlo::IsComplex(b)) return hlo::BitsOf(a) > hlo::BitsOf(b) ? a : b;
  return std::max(hlo::BitsOf(a), hlo::BitsOf(b)) == 64 ? ElementType::kF64 : ElementType::kF32;
}

Types ParameterTypes(const Computation& computation) {
  Types types;
  for (const Instruction* parameter : computation.parameters()) types.push_back(TypeOf(parameter));
  return types;
}

Instruction* As(hlo::Builder& build, Instruction* x, ElementType type) {
  return TypeOf(x) == type ? x : build.Convert(x, type);
}

// `computation` as a function of scalars of `outer` types, whose results have the type of the parameter of their
// number.
Computation* Wrapped(Computation& computation, const Types& outer) {
  if (ParameterTypes(computation) == outer) return &computation;
  Computation* wrapper = computation.module()->AddComputation(computation.name());
  hlo::Builder build(wrapper);
  std::vector<Instruction*> arguments;
  for (size_t i = 0; i < outer.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    Instruction* parameter =
        wrapper->AddParameter(number, Shape::Scalar(outer[i]), computation.parameter(number)->name());
    arguments.push_back(As(build, parameter, TypeOf(computation.parameter(number))));
  }
  const Shape& shape = computation.root()->shape();
  Instruction* call = wrapper->Add(Opcode::kCall, shape, std::move(arguments), hlo::attr::Call{}, {&computation});
  const auto converted = [&](Instruction* leaf, size_t i) {
    return TypeOf(leaf) == ElementType::kPred ? leaf : As(build, leaf, outer[i]);
  };
  if (!shape.IsTuple()) {
    wrapper->set_root(converted(call, 0));
    return wrapper;
  }
  std::vector<Instruction*> leaves;
  for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
    leaves.push_back(converted(build.GetTupleElement(call, static_cast<int64_t>(i)), i));
  }
  wrapper->set_root(build.Tuple(std::move(leaves)));
  return wrapper;
}

// Rounded to `declared`, as `held`.
Instruction* Rounded(hlo::Builder& build, Instruction* array, ElementType declared, ElementType held) {
  return As(build, As(build, array, declared), held);
}

void ReplaceConverted(hlo::Builder& build, Instruction* op, Instruction* by) {
  const Shape& shape = op->shape();
  if (!shape.IsTuple()) {
    op->parent()->Replace(op, As(build, by, shape.element_type()));
    return;
  }
  std::vector<Instruction*> leaves;
  for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
    leaves.push_back(
        As(build, build.GetTupleElement(by, static_cast<int64_t>(i)), shape.tuple_shape(i).element_type()));
  }
  op->parent()->Replace(op, build.Tuple(std::move(leaves)));
}

// Of the n arrays of a reduction or scatter: where its values and its accumulators begin among the operands.
struct Roles {
  int64_t values, accumulators;
};

bool MatchReduction(Instruction* op, const Roles& roles) {
  Computation& reducer = *op->called();
  const int64_t n = reducer.parameter_count() / 2;
  Types held;
  for (int64_t i = 0; i < n; ++i) held.push_back(Wider(TypeOf(reducer.parameter(i)), TypeOf(reducer.parameter(n + i))));
  bool matches = true;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    for (const Instruction* x : {reducer.parameter(i), reducer.parameter(n + i), op->operand(roles.values + i),
                                 op->operand(roles.accumulators + i)}) {
      matches &= TypeOf(x) == held[at];
    }
  }
  if (matches) return false;
  hlo::Builder build(op->parent(), op);
  build.before = op;
  std::vector<Instruction*> operands(op->operands().begin(), op->operands().end());
  for (int64_t i = 0; i < n; ++i) {
    for (const auto& [first, parameter] : {std::pair{roles.values, n + i}, {roles.accumulators, i}}) {
      Instruction*& operand = operands[static_cast<size_t>(first + i)];
      operand = Rounded(build, operand, TypeOf(reducer.parameter(parameter)), held[static_cast<size_t>(i)]);
    }
  }
  Types outer = held;
  outer.insert(outer.end(), held.begin(), held.end());
  ReplaceConverted(build, op,
                   build.Make(op->opcode(), std::move(operands), op->attributes(), {Wrapped(reducer, outer)}));
  return true;
}

bool MatchSelectAndScatter(Instruction* op) {
  Computation& scatter = *op->called(1);
  const Types declared = {TypeOf(op->operand(0)), TypeOf(scatter.parameter(1)), TypeOf(scatter.parameter(0))};
  const ElementType held = Wider(Wider(declared[0], declared[1]), declared[2]);
  const auto is_held = [&](const Instruction* x) { return TypeOf(x) == held; };
  if (std::all_of(op->operands().begin(), op->operands().end(), is_held) && is_held(scatter.parameter(0)) &&
      is_held(scatter.parameter(1)))
    return false;
  hlo::Builder build(op->parent(), op);
  build.before = op;
  std::vector<Instruction*> operands;
  for (size_t i = 0; i < declared.size(); ++i)
    operands.push_back(Rounded(build, op->operand(static_cast<int64_t>(i)), declared[i], held));
  const Types outer = {held, held};
  ReplaceConverted(build, op,
                   build.Make(op->opcode(), std::move(operands), op->attributes(),
                              {Wrapped(*op->called(0), outer), Wrapped(scatter, outer)}));
  return true;
}

bool Match(Instruction* op) {
  const int64_t n = op->operand_count() / 2;
  switch (op->opcode()) {
    case Opcode::kReduce:
    case Opcode::kReduceWindow: return MatchReduction(op, {0, n});
    case Opcode::kScatter: return MatchReduction(op, {n + 1, 0});
    case Opcode::kSelectAndScatter: return MatchSelectAndScatter(op);
    default: return false;
  }
}

}  // namespace

bool MatchReducerTypes::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) changed |= Match(instruction);
  }
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace hlorun::passes
