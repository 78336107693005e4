#include "backends/opencl/runtime/host_evaluator.h"

#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"

namespace hlorun::opencl {
namespace {

using hlo::Literal;

// The argument of `shape` from leaves in order. Copied: a result may be written over an operand.
Literal Pack(const hlo::Shape& shape, std::span<const hlo::HostArray>& leaves) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const hlo::Shape& element : shape.tuple_shapes()) elements.push_back(Pack(element, leaves));
    return Literal::Tuple(std::move(elements));
  }
  Literal literal(shape.WithoutLayout());
  if (!shape.IsArray()) return literal;  // a token has no memory
  HLORUN_CHECK(!leaves.empty());
  if (literal.ByteSize() > 0)
    std::memcpy(literal.mutable_data(), leaves.front().data, static_cast<size_t>(literal.ByteSize()));
  leaves = leaves.subspan(1);
  return literal;
}

void Unpack(const Literal& literal, std::span<const hlo::HostArray>& leaves) {
  if (literal.shape().IsTuple()) {
    for (const Literal& element : literal.elements()) Unpack(element, leaves);
    return;
  }
  if (!literal.shape().IsArray()) return;
  HLORUN_CHECK(!leaves.empty());
  if (literal.ByteSize() > 0) std::memcpy(leaves.front().data, literal.data(), static_cast<size_t>(literal.ByteSize()));
  leaves = leaves.subspan(1);
}

}  // namespace

void HostEvaluator::Run(const HostCallThunk& call, std::span<const hlo::HostArray> operands,
                        std::span<const hlo::HostArray> results) {
  std::unique_ptr<hlo::Module>& module = modules_[&call];
  if (module == nullptr) module = hlo::ParseModule(call.config, {.file_name = call.target});
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module->entry()->parameters())
    arguments.push_back(Pack(parameter->shape(), operands));
  Unpack(hlo::Evaluate(*module, arguments), results);
}

}  // namespace hlorun::opencl
