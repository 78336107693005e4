#include "passes/expand/batch_norm.h"

#include "hlo/builder.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// The arithmetic of one batch-norm, over the operand's shape or over one value a feature.
class Norm {
 public:
  explicit Norm(Instruction* norm)
      : build_(norm->parent(), norm),
        shape_(norm->operand(0)->shape()),
        feature_(norm->As<hlo::attr::BatchNorm>().feature_index),
        epsilon_(norm->As<hlo::attr::BatchNorm>().epsilon) {
    build_.before = norm;
    const hlo::ElementType type = shape_.element_type();
    type_ = hlo::BitsOf(type) < 32 ? hlo::ElementType::kF32 : type;
    add_ = hlo::MakeScalarComputation(norm->module(), Opcode::kAdd, type_);
  }

  Instruction* Wide(Instruction* x) { return x->shape().element_type() == type_ ? x : build_.Convert(x, type_); }
  Instruction* Narrow(Instruction* x, const Instruction& like) {
    const hlo::ElementType type = like.shape().element_type();
    return x->shape().element_type() == type ? x : build_.Convert(x, type);
  }
  // One value a feature, everywhere.
  Instruction* Spread(Instruction* x) { return build_.Broadcast(x, shape_.dimensions(), {feature_}); }
  Instruction* Sum(Instruction* x) {
    std::vector<int64_t> others;
    for (int64_t d = 0; d < shape_.rank(); ++d) {
      if (d != feature_) others.push_back(d);
    }
    return build_.Reduce({x}, {build_.ScalarConstant(type_, 0.0)}, others, add_);
  }
  Instruction* Mean(Instruction* x) {
    Instruction* sum = Sum(x);
    return Divide(sum, build_.Broadcast(CountOfFeature(x), sum->shape().dimensions(), {}));
  }
  // Elements that a feature has, as a number of the wide type.
  Instruction* CountOfFeature(Instruction* x) {
    double fixed = 1;
    Instruction* dynamic = nullptr;
    for (int64_t d = 0; d < shape_.rank(); ++d) {
      if (d == feature_) continue;
      if (!shape_.is_dynamic_dimension(d)) {
        fixed *= static_cast<double>(shape_.dimension(d));
        continue;
      }
      Instruction* size =
          build_.Convert(build_.Make(Opcode::kGetDimensionSize, {x}, hlo::attr::Dimensions{{d}}), type_);
      dynamic = dynamic == nullptr ? size : Multiply(dynamic, size);
    }
    Instruction* count = build_.ScalarConstant(type_, fixed);
    return dynamic == nullptr ? count : Multiply(dynamic, count);
  }
  Instruction* InverseDeviation(Instruction* variance) {
    return build_.Unary(Opcode::kRsqrt, Add(variance, build_.Splat(variance->shape(), static_cast<double>(epsilon_))));
  }
  Instruction* Add(Instruction* x, Instruction* y) { return build_.Binary(Opcode::kAdd, x, y); }
  Instruction* Subtract(Instruction* x, Instruction* y) { return build_.Binary(Opcode::kSubtract, x, y); }
  Instruction* Multiply(Instruction* x, Instruction* y) { return build_.Binary(Opcode::kMultiply, x, y); }
  Instruction* Divide(Instruction* x, Instruction* y) { return build_.Binary(Opcode::kDivide, x, y); }
  Instruction* Tuple(std::vector<Instruction*> elements) { return build_.Tuple(std::move(elements)); }

 private:
  hlo::Builder build_;
  hlo::Shape shape_;
  int64_t feature_;
  float epsilon_;
  hlo::ElementType type_;
  hlo::Computation* add_;
};

// (operand, scale, offset) -> (normalised, mean, variance)
Instruction* Training(Instruction* training) {
  Norm n(training);
  Instruction* x = n.Wide(training->operand(0));
  Instruction* mean = n.Mean(x);
  Instruction* centered = n.Subtract(x, n.Spread(mean));
  Instruction* variance = n.Mean(n.Multiply(centered, centered));
  Instruction* factor = n.Multiply(n.InverseDeviation(variance), n.Wide(training->operand(1)));
  Instruction* result = n.Add(n.Multiply(centered, n.Spread(factor)), n.Spread(n.Wide(training->operand(2))));
  return n.Tuple({n.Narrow(result, *training->operand(0)), n.Narrow(mean, *training->operand(1)),
                  n.Narrow(variance, *training->operand(1))});
}

// (operand, scale, offset, mean, variance) -> normalised
Instruction* Inference(Instruction* inference) {
  Norm n(inference);
  Instruction* centered = n.Subtract(n.Wide(inference->operand(0)), n.Spread(n.Wide(inference->operand(3))));
  Instruction* deviation = n.InverseDeviation(n.Wide(inference->operand(4)));
  Instruction* factor = n.Multiply(deviation, n.Wide(inference->operand(1)));
  Instruction* result = n.Add(n.Multiply(centered, n.Spread(factor)), n.Spread(n.Wide(inference->operand(2))));
  return n.Narrow(result, *inference->operand(0));
}

// (operand, scale, mean, variance, gradient of the result) -> gradients of (operand, scale, offset)
Instruction* Gradient(Instruction* grad) {
  Norm n(grad);
  Instruction* outer = n.Wide(grad->operand(4));
  Instruction* deviation = n.InverseDeviation(n.Wide(grad->operand(3)));
  Instruction* centered = n.Subtract(n.Wide(grad->operand(0)), n.Spread(n.Wide(grad->operand(2))));
  Instruction* normalised = n.Multiply(centered, n.Spread(deviation));
  Instruction* product = n.Multiply(outer, normalised);
  Instruction* of_scale = n.Sum(product);
  Instruction* of_offset = n.Sum(outer);
  Instruction* mean_part = n.Add(n.Spread(n.Mean(outer)), n.Multiply(normalised, n.Spread(n.Mean(product))));
  Instruction* factor = n.Multiply(n.Wide(grad->operand(1)), deviation);
  Instruction* of_operand = n.Multiply(n.Spread(factor), n.Subtract(outer, mean_part));
  return n.Tuple({n.Narrow(of_operand, *grad->operand(0)), n.Narrow(of_scale, *grad->operand(1)),
                  n.Narrow(of_offset, *grad->operand(1))});
}

Instruction* Expanded(Instruction* instruction) {
  switch (instruction->opcode()) {
    case Opcode::kBatchNormTraining: return Training(instruction);
    case Opcode::kBatchNormInference: return Inference(instruction);
    case Opcode::kBatchNormGrad: return Gradient(instruction);
    default: return nullptr;
  }
}

}  // namespace

bool ExpandBatchNorm::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      Instruction* result = Expanded(instruction);
      if (result == nullptr) continue;
      computation->Replace(instruction, result);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
