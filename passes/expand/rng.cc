#include "passes/expand/rng.h"

#include <numbers>

#include "hlo/builder.h"

namespace hlorun::passes {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

class Expansion {
 public:
  explicit Expansion(Instruction* rng) : rng_(rng), build_(rng->parent(), rng) {
    build_.before = rng;
    const ElementType type = rng->shape().element_type();
    computed_ = type == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
    wide_ = hlo::BitsOf(type) == 64;
  }

  Instruction* Run() {
    const ElementType type = rng_->shape().element_type();
    if (rng_->As<hlo::attr::Rng>().distribution == hlo::RngDistribution::kNormal) return Normal();
    return hlo::IsFloating(type) ? UniformReal() : UniformInteger();
  }

 private:
  Instruction* Spread(Instruction* scalar) { return build_.Broadcast(scalar, rng_->shape().dimensions(), {}); }
  Instruction* Parameter(int64_t i, ElementType type) {
    Instruction* x = rng_->operand(i);
    return Spread(x->shape().element_type() == type ? x : build_.Convert(x, type));
  }

  // Random words, as wide as the result's type computes in.
  Instruction* Bits() {
    const ElementType type = wide_ ? ElementType::kU64 : ElementType::kU32;
    const Shape state_shape(ElementType::kU64, {2});
    const int64_t words = rng_->shape().ElementCount() * (wide_ ? 2 : 1);
    Instruction* state =
        build_.Make(Opcode::kRngGetAndUpdateState, {}, hlo::attr::RngState{(words + 3) / 4}, {}, state_shape);
    const Shape result = Shape::Tuple({state_shape, Shape(type, rng_->shape().dimensions())});
    Instruction* generator = build_.Make(Opcode::kRngBitGenerator, {state},
                                         hlo::attr::RngBitGenerator{hlo::RngAlgorithm::kPhilox}, {}, result);
    return build_.GetTupleElement(generator, 1);
  }

  // [0, 1): as many bits as the type's fraction holds.
  Instruction* Fraction() {
    const bool f64 = computed_ == ElementType::kF64;
    const int shift = f64 ? 11 : 8;
    Instruction* bits = Bits();
    bits = build_.Binary(Opcode::kShiftRightLogical, bits, build_.Splat(bits->shape(), int64_t{shift}));
    Instruction* real = build_.Convert(bits, computed_);
    return build_.Binary(Opcode::kMultiply, real, build_.Splat(real->shape(), f64 ? 0x1p-53 : 0x1p-24));
  }

  Instruction* Finish(Instruction* x) {
    const ElementType type = rng_->shape().element_type();
    return type == computed_ ? x : build_.Convert(x, type);
  }

  Instruction* UniformReal() {
    Instruction *low = Parameter(0, computed_), *high = Parameter(1, computed_);
    Instruction* width = build_.Binary(Opcode::kSubtract, high, low);
    Instruction* x = Finish(build_.Binary(Opcode::kAdd, low, build_.Binary(Opcode::kMultiply, width, Fraction())));
    // Rounding may reach the end, which is excluded.
    const ElementType type = rng_->shape().element_type();
    Instruction* at_end = build_.Compare(x, Parameter(1, type), hlo::ComparisonDirection::kGe);
    return build_.Select(at_end, Parameter(0, type), x);
  }

  Instruction* UniformInteger() {
    const ElementType type = rng_->shape().element_type();
    Instruction* bits = Bits();
    if (type == ElementType::kPred) {
      Instruction* one = build_.Splat(bits->shape(), int64_t{1});
      return build_.Convert(build_.Binary(Opcode::kAnd, bits, one), type);
    }
    const ElementType word = bits->shape().element_type();
    Instruction* width = build_.Binary(Opcode::kSubtract, Parameter(1, word), Parameter(0, word));
    Instruction* x = build_.Binary(Opcode::kRemainder, bits, width);
    return build_.Convert(build_.Binary(Opcode::kAdd, Parameter(0, word), x), type);
  }

  Instruction* Normal() {
    Instruction* first = Fraction();
    // 1 - u is never zero.
    Instruction* rest = build_.Binary(Opcode::kSubtract, build_.Splat(first->shape(), 1.0), first);
    Instruction* logarithm = build_.Unary(Opcode::kLog, rest);
    Instruction* square = build_.Binary(Opcode::kMultiply, logarithm, build_.Splat(first->shape(), -2.0));
    Instruction* angle =
        build_.Binary(Opcode::kMultiply, Fraction(), build_.Splat(first->shape(), 2 * std::numbers::pi));
    Instruction* standard =
        build_.Binary(Opcode::kMultiply, build_.Unary(Opcode::kSqrt, square), build_.Unary(Opcode::kCos, angle));
    Instruction* scaled = build_.Binary(Opcode::kMultiply, Parameter(1, computed_), standard);
    return Finish(build_.Binary(Opcode::kAdd, Parameter(0, computed_), scaled));
  }

  Instruction* rng_;
  hlo::Builder build_;
  ElementType computed_;
  bool wide_;
};

}  // namespace

bool ExpandRng::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kRng)) continue;
      computation->Replace(instruction, Expansion(instruction).Run());
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
