// Shapes of tuples, calls, loops and branches.
#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

void CheckArgument(const Query& q, const Computation& computation, const Shape& parameter, const Shape& argument,
                   std::string_view what) {
  // Bounds may meet static sizes here: what counts is that the buffers have the same dimensions.
  if (!parameter.SameDimensions(argument) || LeafCount(parameter) != LeafCount(argument)) {
    q.Reject("computation {} takes {}, but {} is {}", computation.name(), parameter.ToString(false), what,
             argument.ToString(false));
  }
  const std::vector<Shape> parameters = FlattenShape(parameter);
  const std::vector<Shape> arguments = FlattenShape(argument);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!SameTypeIgnoringPrecision(parameters[i].element_type(), arguments[i].element_type())) {
      q.Reject("computation {} takes {}, but {} is {}", computation.name(), parameter.ToString(false), what,
               argument.ToString(false));
    }
  }
}

// Shapes are copied by value: a module of a few lines could otherwise ask for any amount of memory or stack.
constexpr int64_t kDeepestTuple = 200;
constexpr int64_t kMostTupleElements = 100'000;

int64_t CheckedTupleSize(const Query& q, const Shape& shape, int64_t depth) {
  if (depth > kDeepestTuple) q.Reject("tuples are nested more than {} deep", kDeepestTuple);
  if (!shape.IsTuple()) return 1;
  int64_t count = 1;
  for (const Shape& element : shape.tuple_shapes()) count += CheckedTupleSize(q, element, depth + 1);
  return count;
}

}  // namespace

Shape Given(const Query& q) { return q.Declared(); }

Shape SameAsOperand(const Query& q) {
  q.RequireOperands(1);
  return q.operand(0).WithoutLayout();
}

Shape Tuple(const Query& q) {
  std::vector<Shape> elements;
  elements.reserve(q.operands.size());
  int64_t count = 0;
  for (const Instruction* operand : q.operands) {
    count += CheckedTupleSize(q, operand->shape(), 1);
    if (count > kMostTupleElements) q.Reject("a tuple of more than {} elements", kMostTupleElements);
  }
  for (const Instruction* operand : q.operands) elements.push_back(operand->shape().WithoutLayout());
  return Shape::Tuple(std::move(elements));
}

Shape GetTupleElement(const Query& q) {
  q.RequireOperands(1);
  const Shape& tuple = q.operand(0);
  const int64_t index = q.As<attr::TupleIndex>().index;
  if (!tuple.IsTuple()) q.Reject("the operand must be a tuple, but is {}", tuple.ToString(false));
  if (index < 0 || index >= static_cast<int64_t>(tuple.tuple_shapes().size())) {
    q.Reject("index {} is out of range: the tuple has {} elements", index, tuple.tuple_shapes().size());
  }
  return tuple.tuple_shape(index).WithoutLayout();
}

Shape AfterAll(const Query& q) {
  for (int64_t i = 0; i < q.operand_count(); ++i) {
    if (!q.operand(i).IsToken()) q.Reject("operand {} must be a token, but is {}", i, q.operand(i).ToString(false));
  }
  return Shape::Token();
}

Shape Call(const Query& q) {
  q.RequireCalled(1);
  const ProgramShape callee = q.Signature(0, q.operand_count());
  for (int64_t i = 0; i < q.operand_count(); ++i) {
    CheckArgument(q, *q.called[0], callee.parameters[static_cast<size_t>(i)], q.operand(i),
                  fmt::format("operand {}", i));
  }
  return callee.result.WithoutLayout();
}

Shape While(const Query& q) {
  q.RequireOperands(1);
  q.RequireCalled(2);
  const ProgramShape condition = q.Signature(0, 1);
  const ProgramShape body = q.Signature(1, 1);
  if (!condition.result.SameAs(Shape::Scalar(ElementType::kPred))) {
    q.Reject("condition {} must return pred[], but returns {}", q.called[0]->name(), condition.result.ToString(false));
  }
  CheckArgument(q, *q.called[0], condition.parameters[0], q.operand(0), "the initial value");
  CheckArgument(q, *q.called[1], body.parameters[0], q.operand(0), "the initial value");
  CheckArgument(q, *q.called[1], body.parameters[0], body.result, "its own result, the next iteration's value,");
  return body.result.WithoutLayout();
}

Shape Conditional(const Query& q) {
  const Shape& selector = q.Array(0);
  const auto branches = static_cast<int64_t>(q.called.size());
  const bool by_predicate = selector.element_type() == ElementType::kPred;
  if (!selector.IsScalar() || (!by_predicate && selector.element_type() != ElementType::kS32)) {
    q.Reject("the first operand must be pred[] or s32[], but is {}", selector.ToString(false));
  }
  if (branches < 1 || (by_predicate && branches != 2)) {
    q.Reject("a {} chooses among {} branches, but there are {}", by_predicate ? "predicate" : "branch index",
             by_predicate ? "two" : "at least one", branches);
  }
  if (q.operand_count() != branches + 1) {
    q.Reject("needs one operand for each of its {} branches, but has {}", branches, q.operand_count() - 1);
  }
  Shape result;
  for (int64_t i = 0; i < branches; ++i) {
    const auto at = static_cast<size_t>(i);
    const ProgramShape branch = q.Signature(at, 1);
    CheckArgument(q, *q.called[at], branch.parameters[0], q.operand(i + 1), fmt::format("operand {}", i + 1));
    if (i == 0) {
      result = branch.result.WithoutLayout();
    } else if (!branch.result.SameDimensions(result)) {
      q.Reject("branches {} and {} differ in result: {} and {}", q.called[0]->name(), q.called[at]->name(),
               result.ToString(false), branch.result.ToString(false));
    }
  }
  return result;
}

}  // namespace hlorun::hlo::shape_rules
