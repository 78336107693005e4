#include "driver/cli/reference.h"

#include <unordered_map>

#include "driver/api/module_impl.h"
#include "hlo/evaluator/evaluator.h"

namespace hlorun::cli {
namespace {

hlo::Literal Pack(const hlo::Shape& shape, const std::vector<hlo::Literal>& leaves, size_t& next) {
  if (!shape.IsTuple()) return leaves[next++];
  std::vector<hlo::Literal> elements;
  for (const hlo::Shape& element : shape.tuple_shapes()) elements.push_back(Pack(element, leaves, next));
  return hlo::Literal::Tuple(std::move(elements));
}

void Flatten(const hlo::Literal& literal, std::vector<hlo::Literal>& leaves) {
  if (!literal.shape().IsTuple()) {
    leaves.push_back(literal);
    return;
  }
  for (const hlo::Literal& element : literal.elements()) Flatten(element, leaves);
}

bool IsWorthComparing(const hlo::Instruction& instruction) {
  return instruction.shape().IsArray() && !instruction.Is(hlo::Opcode::kParameter) && !instruction.IsConstant();
}

}  // namespace

std::vector<hlo::Literal> PackArguments(const hlo::Module& module, const std::vector<hlo::Literal>& leaves) {
  std::vector<hlo::Literal> arguments;
  size_t next = 0;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(Pack(parameter->shape(), leaves, next));
  }
  return arguments;
}

std::vector<hlo::Literal> FlattenLiteral(const hlo::Literal& literal) {
  std::vector<hlo::Literal> leaves;
  Flatten(literal, leaves);
  return leaves;
}

std::vector<hlo::Literal> ReferenceResults(const hlo::Module& module, const std::vector<hlo::Literal>& leaves) {
  return FlattenLiteral(hlo::Evaluate(module, PackArguments(module, leaves)));
}

std::string FirstDivergence(const hlo::Module& module, const std::vector<hlo::Literal>& leaves, Client& client,
                            const CompileOptions& options, const Tolerance& tolerance) {
  std::shared_ptr<hlo::Module> exposed = module.Clone();
  exposed->input_output_alias.clear();
  exposed->entry_layout.reset();
  hlo::Computation* entry = exposed->entry();
  std::vector<hlo::Instruction*> watched;
  for (hlo::Instruction* instruction : entry->PostOrder()) {
    if (IsWorthComparing(*instruction)) watched.push_back(instruction);
  }
  std::vector<hlo::Shape> shapes;
  for (const hlo::Instruction* instruction : watched) shapes.push_back(instruction->shape());
  entry->set_root(entry->Add(hlo::Opcode::kTuple, hlo::Shape::Tuple(shapes), watched));

  std::unordered_map<const hlo::Instruction*, hlo::Literal> expected;
  hlo::EvaluatorOptions evaluator_options;
  evaluator_options.observer = [&](const hlo::Instruction& instruction, const hlo::Literal& value) {
    if (IsWorthComparing(instruction)) expected[&instruction] = value;
  };
  hlo::Evaluate(*exposed, PackArguments(module, leaves), evaluator_options);

  const Module wrapped(std::make_shared<const Module::Impl>(Module::Impl{exposed}));
  const std::shared_ptr<Executable> executable = client.Compile(wrapped, options);
  std::vector<Array> arguments;
  for (const hlo::Literal& leaf : leaves) arguments.push_back(client.FromHost(leaf.shape(), leaf.data()));
  const std::vector<Array> results = executable->Run(arguments);
  for (size_t i = 0; i < watched.size(); ++i) {
    hlo::Literal actual(results[i].shape().WithoutLayout());
    results[i].ToHost(actual.mutable_data());
    const Comparison comparison = Compare(actual, expected.at(watched[i]), tolerance);
    if (comparison.equal) continue;
    const std::string source = exposed->SourceOf(*watched[i]);
    return fmt::format("first divergence at {}{}{}: {}", watched[i]->ToString(),
                       watched[i]->metadata.op_name.empty() ? "" : " op_name=" + watched[i]->metadata.op_name,
                       source.empty() ? "" : " from " + source, comparison.message);
  }
  return "";
}

}  // namespace hlorun::cli
