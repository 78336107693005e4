#include "passes/expand/counted_loop.h"

#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// The trip's number and the carried values, out of the loop's state.
struct State {
  Instruction* trip;
  std::vector<Instruction*> carried;
};

State Unpack(hlo::Builder& build, Computation* computation, const hlo::Shape& shape) {
  Instruction* state = computation->AddParameter(0, shape, "state");
  State result{build.GetTupleElement(state, 0), {}};
  for (size_t i = 1; i < shape.tuple_shapes().size(); ++i) {
    result.carried.push_back(build.GetTupleElement(state, static_cast<int64_t>(i)));
  }
  return result;
}

}  // namespace

std::vector<Instruction*> CountedLoop(hlo::Builder& build, hlo::Module* module, const LoopEnd& end,
                                      std::vector<Instruction*> carried, const LoopStep& step) {
  std::vector<Instruction*> initial = {build.ScalarConstant(ElementType::kS32, int64_t{0})};
  initial.insert(initial.end(), carried.begin(), carried.end());
  Instruction* init = build.Tuple(initial);

  Computation* condition = module->AddComputation("loop_condition");
  hlo::Builder in_condition(condition);
  const State tested = Unpack(in_condition, condition, init->shape());
  condition->set_root(
      in_condition.Compare(tested.trip, end(in_condition, tested.carried), hlo::ComparisonDirection::kLt));

  Computation* body = module->AddComputation("loop_body");
  hlo::Builder in_body(body);
  const State before = Unpack(in_body, body, init->shape());
  std::vector<Instruction*> next = step(in_body, before.trip, before.carried);
  Instruction* one = in_body.ScalarConstant(ElementType::kS32, int64_t{1});
  next.insert(next.begin(), in_body.Binary(Opcode::kAdd, before.trip, one));
  body->set_root(in_body.Tuple(next));

  Instruction* loop = build.Make(Opcode::kWhile, {init}, hlo::attr::None{}, {condition, body});
  std::vector<Instruction*> results;
  for (size_t i = 0; i < carried.size(); ++i) {
    results.push_back(build.GetTupleElement(loop, static_cast<int64_t>(i) + 1));
  }
  return results;
}

std::vector<Instruction*> CountedLoop(hlo::Builder& build, hlo::Module* module, int64_t trips,
                                      std::vector<Instruction*> carried, const LoopStep& step) {
  const LoopEnd end = [trips](hlo::Builder& in, const std::vector<Instruction*>&) {
    return in.ScalarConstant(ElementType::kS32, trips);
  };
  return CountedLoop(build, module, end, std::move(carried), step);
}

}  // namespace hlorun::passes
