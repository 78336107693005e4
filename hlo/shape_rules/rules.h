// Shape rules: one function for each opcode (or family of opcodes), found through the table in shape_inference.cc.
//
// A rule computes the result shape from what a Query holds and throws Error, with the opcode's name in front, where the
// operands do not fit. Rules of opcodes whose shape is given (parameter, reshape, custom-call ...) return the declared
// shape after checking it. Results have no layouts. Not synchronised, nothing is owned.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/computation.h"
#include "hlo/error.h"
#include "hlo/opcode.h"

namespace hlorun::hlo::shape_rules {

struct Query {
  Opcode opcode;
  std::span<Instruction* const> operands;
  const Attributes& attributes;
  std::span<Computation* const> called;
  const Shape& declared;  // element type kInvalid when nothing was declared

  int64_t operand_count() const { return static_cast<int64_t>(operands.size()); }
  const Shape& operand(int64_t i) const { return operands[static_cast<size_t>(i)]->shape(); }
  bool has_declared() const { return declared.element_type() != ElementType::kInvalid; }

  template <typename... Args>
  [[noreturn]] void Reject(fmt::format_string<Args...> format, Args&&... args) const {
    Invalid("{}: {}", OpcodeName(opcode), fmt::format(format, std::forward<Args>(args)...));
  }

  template <typename T>
  const T& As() const {
    const T* payload = std::get_if<T>(&attributes);
    if (payload == nullptr) Reject("its attributes are missing");
    return *payload;
  }

  // The declared shape without layouts; an error when there is none.
  Shape Declared() const;
  // Operand i, which must be an array.
  const Shape& Array(int64_t i) const;
  void RequireOperands(int64_t least) const;
  void RequireCalled(size_t count) const;
  // The signature of called computation i, which must have a root and `parameters` parameters.
  ProgramShape Signature(size_t i, int64_t parameters) const;
};

using Rule = Shape (*)(const Query&);

// --- shared by rules ---

// Copies dynamic flags of `from` for equal ranks.
void CopyDynamic(const Shape& from, Shape* to);
// Each in [0, rank) and none twice. `what` names the attribute in the message.
void CheckDimensionNumbers(const Query& q, std::string_view what, std::span<const int64_t> dimensions, int64_t rank);
// f32 for (bf16, f32): the float with more bits; the first where they are equal.
ElementType HigherPrecision(ElementType a, ElementType b);
// Equal, or both floating: XLA's "same element type ignoring precision".
bool SameTypeIgnoringPrecision(ElementType a, ElementType b);
// Window dimensions are valid, and the shape of `base` after the window slid over it.
Shape WindowedShape(const Query& q, const Shape& base, std::span<const WindowDimension> window);
// Checks a reducer (acc..., values...) -> acc... over n scalars each and returns the accumulators' types.
std::vector<ElementType> ReducerTypes(const Query& q, size_t computation, std::span<const ElementType> operands);
// One array as itself, several as a tuple.
Shape OneOrTuple(std::vector<Shape> shapes);

// --- elementwise.cc ---
Shape Unary(const Query& q);
Shape Binary(const Query& q);
Shape RealPart(const Query& q);   // abs, real, imag
Shape Predicate(const Query& q);  // compare, is-finite
Shape Complex(const Query& q);
Shape Select(const Query& q);
Shape Clamp(const Query& q);
Shape Convert(const Query& q);
Shape BitcastConvert(const Query& q);
Shape StochasticConvert(const Query& q);
Shape ReducePrecision(const Query& q);
Shape Map(const Query& q);

// --- movement.cc ---
Shape Broadcast(const Query& q);
Shape Reshape(const Query& q);
Shape DynamicReshape(const Query& q);
Shape Bitcast(const Query& q);
Shape Transpose(const Query& q);
Shape Reverse(const Query& q);
Shape Slice(const Query& q);
Shape Pad(const Query& q);
Shape Concatenate(const Query& q);
Shape Iota(const Query& q);
Shape DynamicSlice(const Query& q);
Shape DynamicUpdateSlice(const Query& q);
Shape Gather(const Query& q);
Shape Scatter(const Query& q);
Shape GetDimensionSize(const Query& q);
Shape SetDimensionSize(const Query& q);

// --- contraction.cc ---
Shape Dot(const Query& q);
Shape RaggedDot(const Query& q);
Shape ScaledDot(const Query& q);
Shape Convolution(const Query& q);

// --- reduction.cc ---
Shape Reduce(const Query& q);
Shape ReduceWindow(const Query& q);
Shape SelectAndScatter(const Query& q);
Shape Sort(const Query& q);
Shape TopK(const Query& q);
Shape Scan(const Query& q);

// --- numeric.cc ---
Shape BatchNormTraining(const Query& q);
Shape BatchNormInference(const Query& q);
Shape BatchNormGrad(const Query& q);
Shape Fft(const Query& q);
Shape Cholesky(const Query& q);
Shape TriangularSolve(const Query& q);
Shape Rng(const Query& q);
Shape RngBitGenerator(const Query& q);
Shape RngGetAndUpdateState(const Query& q);

// --- control.cc ---
Shape Given(const Query& q);          // constant, parameter, custom-call: as declared
Shape SameAsOperand(const Query& q);  // copy, domain, opt-barrier, add-dependency: any shape
Shape Tuple(const Query& q);
Shape GetTupleElement(const Query& q);
Shape AfterAll(const Query& q);
Shape Call(const Query& q);  // call, fusion
Shape While(const Query& q);
Shape Conditional(const Query& q);

// --- communication.cc ---
Shape AllReduce(const Query& q);
Shape AllGather(const Query& q);
Shape AllGatherStart(const Query& q);
Shape ReduceScatter(const Query& q);
Shape AllToAll(const Query& q);
Shape CollectiveBroadcast(const Query& q);
Shape CollectivePermute(const Query& q);
Shape CollectivePermuteStart(const Query& q);
Shape RaggedAllToAll(const Query& q);
Shape DeviceId(const Query& q);  // partition-id, replica-id
Shape AsyncStart(const Query& q);
Shape AsyncUpdate(const Query& q);
Shape AsyncDone(const Query& q);  // async-done, all-gather-done, collective-permute-done: element 1
Shape CopyStart(const Query& q);
Shape CopyDone(const Query& q);
Shape Send(const Query& q);
Shape SendDone(const Query& q);
Shape Recv(const Query& q);
Shape RecvDone(const Query& q);
Shape Infeed(const Query& q);
Shape Outfeed(const Query& q);

}  // namespace hlorun::hlo::shape_rules
