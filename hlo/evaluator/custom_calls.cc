#include "hlo/evaluator/custom_calls.h"

#include <mutex>

#include "hlo/error.h"
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

// The comparator says whether the largest or the smallest elements come first.
Literal TopKCall(OpCall& call) {
  bool largest = true;
  if (!call.instruction.called_computations().empty()) {
    const Instruction* root = call.instruction.called()->root();
    if (root->Is(Opcode::kCompare)) {
      const ComparisonDirection direction = root->As<attr::Compare>().direction;
      largest = direction != ComparisonDirection::kLt && direction != ComparisonDirection::kLe;
    }
  }
  return TopK(call.operand(0), call.instruction.shape().tuple_shape(0).dimensions().back(), largest);
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
      {"AssumeGatherIndicesInBound", Identity},
      {"MoveToDevice", Identity},
      {"MoveToHost", Identity},
      {"PadToStatic", PadToStatic},
      {"SPMDFullToShardShape", Identity},
      {"SPMDShardToFullShape", Identity},
      {"Sharding", Identity},
      {"SliceToDynamic", SliceToDynamic},
      {"TopK", TopKCall},
      {"annotate_device_placement", Identity},
      {"xla.sdy.FuncResultSharding", Identity},
      {"xla.sdy.GlobalToLocalShape", Identity},
      {"xla.sdy.LocalToGlobalShape", Identity},
      {"xla.sdy.PropagationBarrier", Identity},
      {"xla.sdy.ShardingGroup", Identity},
  };
};

}  // namespace

void RegisterCustomCallEvaluator(const std::string& target, OpFunction function) {
  Registry::Get().Set(target, function);
}

Literal EvaluateCustomCall(OpCall& call) {
  const std::string& target = call.As<attr::CustomCall>().target;
  const OpFunction function = Registry::Get().Find(target);
  if (function == nullptr) {
    Fail(ErrorCode::kUnimplemented, "{}: custom-call target \"{}\" is not known", call.instruction.name(), target);
  }
  return function(call);
}

}  // namespace hlorun::hlo
