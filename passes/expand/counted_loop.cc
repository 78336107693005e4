#include "passes/expand/counted_loop.h"

#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

std::vector<Instruction*> CountedLoop(hlo::Builder& build, hlo::Module* module, int64_t trips,
                                      std::vector<Instruction*> carried, const LoopStep& step) {
  std::vector<Instruction*> initial = {build.ScalarConstant(ElementType::kS32, int64_t{0})};
  initial.insert(initial.end(), carried.begin(), carried.end());
  Instruction* init = build.Tuple(initial);

  Computation* condition = module->AddComputation("loop_condition");
  Instruction* state = condition->AddParameter(0, init->shape(), "state");
  hlo::Builder in_condition(condition);
  Instruction* bound = in_condition.ScalarConstant(ElementType::kS32, trips);
  condition->set_root(
      in_condition.Compare(in_condition.GetTupleElement(state, 0), bound, hlo::ComparisonDirection::kLt));

  Computation* body = module->AddComputation("loop_body");
  state = body->AddParameter(0, init->shape(), "state");
  hlo::Builder in_body(body);
  Instruction* trip = in_body.GetTupleElement(state, 0);
  std::vector<Instruction*> values;
  for (size_t i = 0; i < carried.size(); ++i) {
    values.push_back(in_body.GetTupleElement(state, static_cast<int64_t>(i) + 1));
  }
  std::vector<Instruction*> next = step(in_body, trip, values);
  next.insert(next.begin(), in_body.Binary(Opcode::kAdd, trip, in_body.ScalarConstant(ElementType::kS32, int64_t{1})));
  body->set_root(in_body.Tuple(next));

  Instruction* loop = build.Make(Opcode::kWhile, {init}, hlo::attr::None{}, {condition, body});
  std::vector<Instruction*> results;
  for (size_t i = 0; i < carried.size(); ++i) {
    results.push_back(build.GetTupleElement(loop, static_cast<int64_t>(i) + 1));
  }
  return results;
}

}  // namespace hlorun::passes
