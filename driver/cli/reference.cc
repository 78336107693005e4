#include "driver/cli/reference.h"

#include <cmath>
#include <complex>
#include <unordered_map>

#include "driver/api/literals.h"
#include "driver/api/module_impl.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"

namespace hlorun::cli {
namespace {

bool IsWorthComparing(const hlo::Instruction& instruction) {
  return instruction.shape().IsArray() && !instruction.Is(hlo::Opcode::kParameter) && !instruction.IsConstant();
}

int64_t FirstNanElement(const hlo::Literal& literal) {
  if (!hlo::IsFloating(literal.element_type()) && !hlo::IsComplex(literal.element_type())) return -1;
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    const std::complex<double> value = literal.GetComplex(i);
    if (std::isnan(value.real()) || std::isnan(value.imag())) return i;
  }
  return -1;
}

// A copy of a module whose results are all arrays of the entry computation, in execution order.
struct Exposed {
  explicit Exposed(const hlo::Module& original) : module(original.Clone()) {
    module->input_output_alias.clear();
    module->entry_layout.reset();
    hlo::Computation* entry = module->entry();
    std::vector<hlo::Instruction*> elements;
    std::vector<hlo::Shape> shapes;
    for (hlo::Instruction* instruction : entry->PostOrder()) {
      if (!IsWorthComparing(*instruction)) continue;
      elements.push_back(instruction);
      shapes.push_back(instruction->shape());
    }
    watched.assign(elements.begin(), elements.end());
    entry->set_root(entry->Add(hlo::Opcode::kTuple, hlo::Shape::Tuple(shapes), std::move(elements)));
  }

  std::vector<hlo::Literal> Run(const std::vector<hlo::Literal>& leaves, Client& client,
                                const CompileOptions& options) const {
    const Module wrapped(std::make_shared<const Module::Impl>(Module::Impl{module}));
    const std::shared_ptr<Executable> executable = client.Compile(wrapped, options);
    return ToLiterals(executable->Run(ToDevice(client, leaves)));
  }

  std::string Describe(size_t i) const {
    const std::string source = module->SourceOf(*watched[i]);
    const std::string& op_name = watched[i]->metadata.op_name;
    return fmt::format("{}{}{}", watched[i]->ToString(), op_name.empty() ? "" : " op_name=" + op_name,
                       source.empty() ? "" : " from " + source);
  }

  std::shared_ptr<hlo::Module> module;
  std::vector<const hlo::Instruction*> watched;
};

}  // namespace

std::vector<hlo::Literal> ReferenceResults(const hlo::Module& module, const std::vector<hlo::Literal>& leaves,
                                           const CompileOptions& options) {
  hlo::EvaluatorOptions evaluator_options;
  evaluator_options.custom_calls = options.custom_calls.get();
  return hlo::FlattenLiteral(hlo::Evaluate(module, hlo::PackArguments(module, leaves), evaluator_options));
}

std::string FirstDivergence(const hlo::Module& module, const std::vector<hlo::Literal>& leaves, Client& client,
                            const CompileOptions& options, const Tolerance& tolerance) {
  const Exposed exposed(module);
  std::unordered_map<const hlo::Instruction*, hlo::Literal> expected;
  hlo::EvaluatorOptions evaluator_options;
  evaluator_options.custom_calls = options.custom_calls.get();
  evaluator_options.observer = [&](const hlo::Instruction& instruction, const hlo::Literal& value) {
    if (IsWorthComparing(instruction)) expected[&instruction] = value;
  };
  hlo::Evaluate(*exposed.module, hlo::PackArguments(module, leaves), evaluator_options);
  const std::vector<hlo::Literal> actual = exposed.Run(leaves, client, options);
  for (size_t i = 0; i < exposed.watched.size(); ++i) {
    const Comparison comparison = Compare(actual[i], expected.at(exposed.watched[i]), tolerance);
    if (!comparison.equal) return fmt::format("first divergence at {}: {}", exposed.Describe(i), comparison.message);
  }
  return "";
}

std::string FirstNan(const hlo::Module& module, const std::vector<hlo::Literal>& leaves, Client& client,
                     const CompileOptions& options) {
  const Exposed exposed(module);
  const std::vector<hlo::Literal> actual = exposed.Run(leaves, client, options);
  for (size_t i = 0; i < exposed.watched.size(); ++i) {
    const int64_t element = FirstNanElement(actual[i]);
    if (element >= 0) return fmt::format("first NaN in element {} (row-major) of {}", element, exposed.Describe(i));
  }
  return "";
}

}  // namespace hlorun::cli
