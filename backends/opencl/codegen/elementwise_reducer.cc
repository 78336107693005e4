// A collective's reducer as a kernel: the emitters' `map` over two arrays.
#include "backends/opencl/codegen/emit.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::opencl {

EmittedLaunch EmitElementwiseReducer(const hlo::Computation& reducer, hlo::ElementType type, int64_t count,
                                     const EmitContext& context) {
  hlo::Module module("reducer");
  hlo::Computation* applied = module.AddComputation("applied");
  hlo::InstructionMap map;
  applied->set_root(reducer.CloneInto(applied, map));
  hlo::Computation* entry = module.AddComputation("entry");
  module.set_entry(entry);
  const hlo::Shape shape(type, {count});
  hlo::Instruction* a = entry->AddParameter(0, shape, "a");
  hlo::Instruction* b = entry->AddParameter(1, shape, "b");
  hlo::Instruction* out = entry->Add(hlo::Opcode::kMap, shape, {a, b}, hlo::attr::Dimensions{{0}}, {applied});
  entry->set_root(out);
  std::vector<EmittedLaunch> launches = EmitInstruction(*out, {-1}, context);
  using Kind = ArgumentRef::Kind;
  // The runtime hands the three pointers over in this order.
  const bool in_order = launches.size() == 1 && launches[0].arguments.size() == 3 &&
                        launches[0].arguments[0].kind == Kind::kOperand && launches[0].arguments[0].number == 0 &&
                        launches[0].arguments[1].kind == Kind::kOperand && launches[0].arguments[1].number == 1 &&
                        launches[0].arguments[2].kind == Kind::kResult;
  if (!in_order) {
    Fail(ErrorCode::kUnimplemented, "no kernel for the reducer {}: it must use both of its parameters", reducer.name());
  }
  return std::move(launches[0]);
}

}  // namespace hlorun::opencl
