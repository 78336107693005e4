// Calls, branches, loops, tuples, and the asynchronous forms, which do their work at the start.
#include "hlo/error.h"
#include "hlo/evaluator/op_functions.h"

namespace hlorun::hlo {
namespace {

std::vector<Literal> Taken(std::span<Literal> operands) {
  std::vector<Literal> values;
  values.reserve(operands.size());
  for (Literal& operand : operands) values.push_back(std::move(operand));
  return values;
}

// Contexts and other parts of a start op's tuple that carry no value.
Literal Filler(const Shape& shape) { return Literal(shape); }

// (first, second, ...) with the declared number of elements.
Literal StartTuple(const Shape& shape, std::vector<Literal> elements) {
  for (size_t i = elements.size(); i < shape.tuple_shapes().size(); ++i) {
    elements.push_back(Filler(shape.tuple_shapes()[i]));
  }
  return Literal::Tuple(std::move(elements));
}

}  // namespace

Literal EvaluateCall(OpCall& call) { return call.evaluation.Run(*call.instruction.called(), Taken(call.operands)); }

Literal EvaluateWhile(OpCall& call) {
  Literal state = std::move(call.operands[0]);
  while (true) {
    std::vector<Literal> argument;
    argument.push_back(state);
    if (call.evaluation.Run(*call.instruction.while_condition(), std::move(argument)).GetInt(0) == 0) return state;
    argument.clear();
    argument.push_back(std::move(state));
    state = call.evaluation.Run(*call.instruction.while_body(), std::move(argument));
  }
}

// A predicate takes branch 0 when true; an index out of range takes the last branch.
Literal EvaluateConditional(OpCall& call) {
  const auto branches = static_cast<int64_t>(call.instruction.called_computations().size());
  const Literal& selector = call.operand(0);
  int64_t branch = selector.GetInt(0);
  if (selector.element_type() == ElementType::kPred) {
    branch = branch != 0 ? 0 : 1;
  } else if (branch < 0 || branch >= branches) {
    branch = branches - 1;
  }
  std::vector<Literal> argument;
  argument.push_back(std::move(call.operands[static_cast<size_t>(branch + 1)]));
  return call.evaluation.Run(*call.instruction.called(branch), std::move(argument));
}

Literal EvaluateTuple(OpCall& call) { return Literal::Tuple(Taken(call.operands)); }

Literal EvaluateGetTupleElement(OpCall& call) {
  return std::move(call.operands[0].mutable_elements()[static_cast<size_t>(call.instruction.tuple_index())]);
}

Literal EvaluateFirstOperand(OpCall& call) { return std::move(call.operands[0]); }

Literal EvaluateAfterAll(OpCall&) { return Literal(Shape::Token()); }

// ((operands), result, context...)
Literal EvaluateAsyncStart(OpCall& call) {
  Literal arguments = Literal::Tuple({call.operands.begin(), call.operands.end()});
  Literal result = call.evaluation.Run(*call.instruction.called(), Taken(call.operands));
  return StartTuple(call.instruction.shape(), {std::move(arguments), std::move(result)});
}

// The second element of the start's tuple is the result: async-done, all-gather-done, collective-permute-done.
Literal EvaluateAsyncDone(OpCall& call) { return std::move(call.operands[0].mutable_elements()[1]); }

// (destination, source, context)
Literal EvaluateCopyStart(OpCall& call) {
  return StartTuple(call.instruction.shape(), {call.operands[0], call.operands[0]});
}

Literal EvaluateCopyDone(OpCall& call) { return std::move(call.operands[0].mutable_elements()[0]); }

Literal EvaluateParameter(OpCall& call) {
  Fail(ErrorCode::kInvalidArgument, "parameter {} has no value outside a computation", call.instruction.name());
}

}  // namespace hlorun::hlo
