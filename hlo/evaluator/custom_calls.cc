#include "hlo/evaluator/custom_calls.h"

#include <algorithm>
#include <mutex>

#include "hlo/custom_calls/named_ops.h"
#include "hlo/custom_calls/registry.h"
#include "hlo/error.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/evaluator/top_k.h"

namespace hlorun::hlo {
namespace {

// Annotations: the value passes through. A change of shape is the partitioner's business.
Literal Identity(OpCall& call) {
  if (call.operands.size() != 1 || !call.operand(0).shape().SameAs(call.shape.WithoutLayout())) {
    Fail(ErrorCode::kUnimplemented, "{}: custom-call {} changes the shape from {} to {}; partition the module first",
         call.instruction.name(), call.As<attr::CustomCall>().target,
         call.operands.empty() ? "nothing" : call.operand(0).shape().ToString(false), call.shape.ToString(false));
  }
  return std::move(call.operands[0]);
}

Literal TopKCall(OpCall& call) {
  const std::optional<TopKRequest> request = TopKRequestOf(call.instruction);
  if (!request) {
    Fail(ErrorCode::kUnimplemented, "{}: the comparator of {} is no comparison of its parameters",
         call.instruction.name(), call.As<attr::CustomCall>().target);
  }
  return TopK(call.operand(0), request->k, request->largest);
}

// All elements in the comparator's order, cut or padded to the length that is asked for.
Literal ApproxTopKCall(OpCall& call) {
  const ApproxTopK request = *ApproxTopKOf(call.instruction);
  const auto n = static_cast<size_t>(request.arrays);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < n; ++i) shapes.push_back(call.operands[i].shape());
  Literal sorted = call.evaluation.Apply(Instruction(Opcode::kSort, n == 1 ? shapes[0] : Shape::Tuple(shapes), {},
                                                     attr::Sort{request.dimension, true}, {call.instruction.called()}),
                                         call.operands.subspan(0, n));
  std::vector<Literal> results;
  for (size_t i = 0; i < n; ++i) {
    attr::Pad pad;
    pad.padding.resize(static_cast<size_t>(shapes[i].rank()));
    pad.padding[static_cast<size_t>(request.dimension)].high = request.length - shapes[i].dimension(request.dimension);
    std::vector<Literal> operands = {n == 1 ? sorted : sorted.elements()[i], call.operands[n + i]};
    Dims dimensions = shapes[i].dimensions();
    dimensions[static_cast<size_t>(request.dimension)] = request.length;
    results.push_back(call.evaluation.Apply(
        Instruction(Opcode::kPad, Shape(shapes[i].element_type(), dimensions), {}, pad), operands));
  }
  return call.shape.IsTuple() ? Literal::Tuple(std::move(results)) : std::move(results[0]);
}

// Contents are the program's to write before it reads them.
Literal AllocateBuffer(OpCall& call) { return Literal(call.shape); }

// (value in a buffer of the bound's size, s32 size of each dimension...)
Literal PadToStatic(OpCall& call) {
  const Literal& operand = call.operand(0);
  std::vector<Literal> results;
  results.emplace_back(call.instruction.shape().tuple_shape(0).WithoutLayout());
  CopyStrided(operand.data(), {0, operand.shape().Strides()}, results[0].mutable_data(),
              {0, results[0].shape().Strides()}, operand.shape().dimensions(), BytesOf(operand.element_type()));
  for (const int64_t size : operand.shape().dimensions()) {
    results.push_back(Literal::Scalar(ElementType::kS32, size));
  }
  return Literal::Tuple(std::move(results));
}

Literal SliceToDynamic(OpCall& call) {
  const Literal& operand = call.operand(0);
  Dims dimensions = call.instruction.shape().dimensions();
  for (size_t d = 0; d < dimensions.size(); ++d) {
    dimensions[d] = std::min(dimensions[d], call.operands[1 + d].GetInt(0));
  }
  Literal result(Shape(operand.element_type(), dimensions));
  CopyStrided(operand.data(), {0, operand.shape().Strides()}, result.mutable_data(), {0, result.shape().Strides()},
              dimensions, BytesOf(operand.element_type()));
  return result;
}

int64_t ArrayCount(const Shape& shape, int64_t leaves) {
  const auto all = FlattenShape(shape);
  return std::count_if(all.begin(), all.begin() + leaves, [](const Shape& leaf) { return leaf.IsArray(); });
}

// A call of a function on host memory: one of the user's own, or LAPACK's.
Literal ComputedByHost(OpCall& call, const HostFunction& function) {
  const auto& attributes = call.As<attr::CustomCall>();
  std::vector<Literal> operands, results;
  std::vector<int64_t> first;  // array of each operand
  for (const Literal& operand : call.operands) {
    first.push_back(static_cast<int64_t>(operands.size()));
    const std::vector<Literal> leaves = ArrayLeaves(operand);
    operands.insert(operands.end(), leaves.begin(), leaves.end());
  }
  for (const Shape& leaf : ArrayLeaves(call.instruction.shape())) results.emplace_back(leaf.WithoutLayout());
  std::vector<HostArray> in, out;
  for (Literal& operand : operands) in.push_back({operand.shape(), const_cast<std::byte*>(operand.data())});
  for (const auto& [output, input] : attributes.output_operand_aliasing) {
    const Shape& operand_shape = call.instruction.operand(input.first)->shape();
    const auto operand = static_cast<size_t>(first[static_cast<size_t>(input.first)] +
                                             ArrayCount(operand_shape, LeafNumber(operand_shape, input.second)));
    const auto result =
        static_cast<size_t>(ArrayCount(call.instruction.shape(), LeafNumber(call.instruction.shape(), output)));
    results[result] = operands[operand];
    in[operand].data = results[result].mutable_data();
  }
  for (Literal& result : results) out.push_back({result.shape(), result.mutable_data()});
  const std::string& config =
      call.instruction.backend_config.empty() ? attributes.opaque : call.instruction.backend_config;
  try {
    CallHostFunction(function, {attributes.target, config, in, out});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", call.instruction.name(), error.message()));
  }
  return AssembleLeaves(call.instruction.shape(), results);
}

class Registry {
 public:
  static Registry& Get() {
    static Registry registry;
    return registry;
  }
  void Set(const std::string& target, OpFunction function) {
    const std::lock_guard lock(mutex_);
    functions_[target] = function;
  }
  OpFunction Find(const std::string& target) {
    const std::lock_guard lock(mutex_);
    const auto it = functions_.find(target);
    return it == functions_.end() ? nullptr : it->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, OpFunction> functions_ = {
      {"AllocateBuffer", AllocateBuffer},
      {"ApproxTopK", ApproxTopKCall},
      {"PadToStatic", PadToStatic},
      {"PartialReduce", ApproxTopKCall},
      {"SliceToDynamic", SliceToDynamic},
      {"TopK", TopKCall},
      {"mhlo.topk", TopKCall},
  };
};

}  // namespace

void RegisterCustomCallEvaluator(const std::string& target, OpFunction function) {
  Registry::Get().Set(target, function);
}

Literal EvaluateCustomCall(OpCall& call) {
  const std::string& target = call.As<attr::CustomCall>().target;
  const OpFunction function = Registry::Get().Find(target);
  if (function != nullptr) return function(call);
  if (IsMarkerTarget(target)) return Identity(call);
  if (const auto opcode = OpcodeNamedBy(target); opcode && call.operands.size() == 1) {
    return call.evaluation.Apply(Instruction(*opcode, call.instruction.shape(), {}), call.operands);
  }
  const CustomCallRegistry* own = call.evaluation.options().custom_calls;
  const HostFunction host = FindHostFunction(own, target);
  if (host) return ComputedByHost(call, host);
  if (own != nullptr && own->Find(target) != nullptr) {
    Fail(ErrorCode::kUnimplemented,
         "{}: custom-call target \"{}\" is an OpenCL kernel, which the evaluator cannot run; "
         "register a library with it",
         call.instruction.name(), target);
  }
  FailUnknownTarget(own, target);
}

}  // namespace hlorun::hlo
