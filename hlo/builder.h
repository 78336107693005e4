// Adds instructions to a computation with inferred shapes; what passes build replacements with.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::hlo {

// Instructions go to the end of the computation, or before `before` when set. Metadata is copied from `origin` if
// given.
class Builder {
 public:
  explicit Builder(Computation* computation, const Instruction* origin = nullptr)
      : computation_(computation), origin_(origin) {}

  Instruction* Unary(Opcode opcode, Instruction* x);
  Instruction* Binary(Opcode opcode, Instruction* x, Instruction* y);
  Instruction* Compare(Instruction* x, Instruction* y, ComparisonDirection direction);
  Instruction* Select(Instruction* predicate, Instruction* on_true, Instruction* on_false);
  Instruction* Convert(Instruction* x, ElementType type);
  Instruction* Constant(Literal value);
  template <typename T>
  Instruction* ScalarConstant(ElementType type, T value) {
    return Constant(Literal::Scalar(type, value));
  }
  // An array of `shape` whose elements are all `value`: broadcast(constant).
  template <typename T>
  Instruction* Splat(const Shape& shape, T value) {
    return Broadcast(ScalarConstant(shape.element_type(), value), shape.dimensions(), {});
  }
  // Operand dimension i becomes result dimension dimensions[i].
  Instruction* Broadcast(Instruction* x, const Dims& result_dimensions, std::vector<int64_t> dimensions);
  Instruction* Reshape(Instruction* x, const Dims& dimensions);
  Instruction* Transpose(Instruction* x, std::vector<int64_t> permutation);
  Instruction* Slice(Instruction* x, Dims starts, Dims limits, Dims strides);
  Instruction* Pad(Instruction* x, Instruction* value, std::vector<PaddingDimension> padding);
  Instruction* Concatenate(std::vector<Instruction*> operands, int64_t dimension);
  Instruction* Iota(const Shape& shape, int64_t dimension);
  Instruction* Reverse(Instruction* x, std::vector<int64_t> dimensions);
  Instruction* DynamicSlice(Instruction* x, std::vector<Instruction*> starts, Dims sizes);
  Instruction* DynamicUpdateSlice(Instruction* x, Instruction* update, std::vector<Instruction*> starts);
  // At a place that is known.
  Instruction* UpdateSlice(Instruction* x, Instruction* update, const Dims& starts);
  Instruction* Dot(Instruction* lhs, Instruction* rhs, attr::Dot attributes, ElementType type);
  // `reducer` as a computation of the same module with 2n parameters.
  Instruction* Reduce(std::vector<Instruction*> operands, std::vector<Instruction*> inits, std::vector<int64_t> dims,
                      Computation* reducer);
  Instruction* Tuple(std::vector<Instruction*> elements);
  Instruction* GetTupleElement(Instruction* tuple, int64_t index);
  // Anything else; the shape is inferred (`declared` where the opcode's shape is given).
  Instruction* Make(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes = attr::None{},
                    std::vector<Computation*> called = {}, const Shape& declared = {});

  Computation* computation() const { return computation_; }

  Instruction* before = nullptr;

 private:
  Computation* computation_;
  const Instruction* origin_;
};

// A computation (x, y) -> opcode(x, y) over scalars of `type`, made in `module`; equal ones are shared by the caller.
Computation* MakeScalarComputation(Module* module, Opcode opcode, ElementType type);

// The opcode when `computation` is exactly (x, y) -> op(x, y) in either order of operands (for commutative ops), as
// reducers are: add, multiply, maximum, minimum, and, or, xor; nullopt otherwise, and where the type has no value that
// changes nothing: extremes of complex numbers (by their real parts), sums of f8e8m0fnu (no zero).
std::optional<Opcode> ReducerOpcode(const Computation& computation);

}  // namespace hlorun::hlo
