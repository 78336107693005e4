// A module that the verifier takes is evaluated to arrays of the shapes that it declares, or refused: never a crash.
#include <cstdio>
#include <cstdlib>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"

namespace hlorun::hlo {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;
constexpr int64_t kMostSteps = int64_t{1} << 18;

// Whether it can be evaluated in the blink of an eye.
bool IsSmall(const Module& module) {
  int64_t bytes = 0;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      for (const Shape& leaf : FlattenShape(instruction->shape())) {
        if (!leaf.IsArray()) continue;
        if (leaf.ByteSize() > kMostBytes) return false;
        bytes += leaf.ByteSize();
      }
      if (instruction->Is(Opcode::kInfeed) || instruction->Is(Opcode::kRecv)) return false;  // waits for a host
    }
  }
  return bytes < 16 * kMostBytes && module.replica_count * module.num_partitions == 1;
}

// Bytes that no one chose: any value of any type.
Literal Argument(const Shape& shape, uint64_t& state) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.tuple_shapes()) elements.push_back(Argument(element, state));
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) Fail(ErrorCode::kUnimplemented, "an argument that is no array");
  Literal literal(shape.WithoutLayout());
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (IsComplex(shape.element_type())) continue;
    literal.SetDouble(i, static_cast<double>(static_cast<int64_t>(state >> 33) % 17 - 8));
  }
  return literal;
}

void EvaluateChecked(const Module& module) {
  std::vector<Literal> arguments;
  Literal result;
  try {
    uint64_t state = 1;
    for (const Instruction* parameter : module.entry()->parameters())
      arguments.push_back(Argument(parameter->shape(), state));
    EvaluatorOptions options;
    options.step_limit = kMostSteps;
    result = Evaluate(module, arguments, options);
  } catch (const Error&) {
    return;
  }
  const Shape& declared = module.entry()->root()->shape();
  const auto expected = FlattenShape(declared), actual = FlattenShape(result.shape());
  bool same = expected.size() == actual.size();
  for (size_t i = 0; same && i < expected.size(); ++i) {
    same = expected[i].element_type() == actual[i].element_type() && expected[i].rank() == actual[i].rank();
    for (int64_t d = 0; same && d < expected[i].rank(); ++d) {
      same = expected[i].is_dynamic_dimension(d) ? actual[i].dimension(d) <= expected[i].dimension(d)
                                                 : actual[i].dimension(d) == expected[i].dimension(d);
    }
  }
  if (same) return;
  std::fprintf(stderr, "the result is %s, not %s:\n%s\n", result.shape().ToString(false).c_str(),
               declared.ToString(false).c_str(), PrintModule(module).c_str());
  std::abort();
}

}  // namespace
}  // namespace hlorun::hlo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlorun;
  std::unique_ptr<hlo::Module> module;
  try {
    module = hlo::ParseModule({reinterpret_cast<const char*>(data), size});
    hlo::VerifyModule(*module);
  } catch (const Error&) {
    return 0;
  }
  if (hlo::IsSmall(*module)) hlo::EvaluateChecked(*module);
  return 0;
}
