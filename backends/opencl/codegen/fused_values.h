// The value of any instruction of a fusion at any index, as kernel IR: fused computations are inlined by recursion
// through index maps.
//
// Elementwise ops, shape and index ops become arithmetic on the index; reduce, reduce-window, dot and convolution
// inside become serial loops. What was computed once at an index is not computed again (within its block). Where an
// index may leave an operand (pad, concatenate), `mask` guards the loads: outside it a value is unspecified, but
// nothing is read.
#pragma once

#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "backends/opencl/codegen/body.h"
#include "backends/opencl/codegen/element_expr.h"
#include "backends/opencl/codegen/index_math.h"
#include "hlo/computation.h"

namespace hlorun::opencl {

using Values = std::vector<Value>;  // one a leaf of the instruction's shape

// Where the instructions of one computation (as inlined at one place) get their outside values from.
class Frame {
 public:
  // A leaf in memory; complex arrays are buffers of reals, pairwise. `dimensions`: those by which the buffer is
  // indexed, where the others are fixed (one row of the leaf); empty: all.
  struct InMemory {
    ir::BufferRef buffer;
    std::vector<size_t> dimensions = {};
  };
  // An instruction of an outer frame.
  struct Outer {
    const Frame* frame;
    const hlo::Instruction* instruction;
  };
  // An instruction that a kernel computes in its own way, at any index; outside of the mask a value is unspecified.
  using Computed = std::function<Values(const Indices& index, const ir::Expr& mask)>;
  using Binding = std::variant<InMemory, Outer, Values, Computed>;

  void Bind(const hlo::Instruction* instruction, Binding binding) { bindings_[instruction] = std::move(binding); }
  const Binding* Find(const hlo::Instruction* instruction) const {
    const auto found = bindings_.find(instruction);
    return found == bindings_.end() ? nullptr : &found->second;
  }

 private:
  std::map<const hlo::Instruction*, Binding> bindings_;
};

class FusedValues {
 public:
  FusedValues(IndexMath& math, Body& body) : math_(math), body_(body) { memo_.emplace_back(); }

  IndexMath& math() { return math_; }
  Body& body() { return body_; }

  // The frame of the outermost computation, to be bound by the caller.
  Frame& NewFrame() { return frames_.emplace_back(); }
  // The frame of the computation that `fusion` (in `frame`) calls.
  const Frame& Enter(const Frame& frame, const hlo::Instruction& fusion);

  // Elements of all leaves (which then have equal dimensions) or of the only one.
  Values GetAll(const Frame& frame, const hlo::Instruction& instruction, const Indices& index,
                const ir::Expr& mask = nullptr);
  Value Get(const Frame& frame, const hlo::Instruction& instruction, const Indices& index,
            const ir::Expr& mask = nullptr) {
    return GetAll(frame, instruction, index, mask)[0];
  }
  // A scalar computation (a reducer, a comparator, map's function) applied to values.
  Values Apply(const hlo::Computation& computation, Values arguments);

  // From here on, `instruction` of that frame is found in memory, or computed so.
  void Keep(const Frame& frame, const hlo::Instruction& instruction, Frame::Binding binding);

  // Blocks: values found inside one are forgotten when it closes, since their variables are out of scope.
  void Open();
  ir::Stmt Close();
  // for (variable in 0 .. extent) { body }, serial.
  void SerialLoop(int64_t extent, const std::function<void(const Index&)>& body);
  // The same to `end`, which is at most `extent`.
  void SerialLoop(int64_t extent, const ir::Expr& end, const std::function<void(const Index&)>& body);
  void SerialLoops(const hlo::Dims& extents, const std::function<void(const Indices&)>& body);

  // A scalar of integer type as an index, clamped to [0, limit].
  Index RuntimeIndex(const Value& value, int64_t limit);
  // As it is, in the index type; unbounded.
  Index RuntimeIndex(const Value& value);

  // Makes what is already computed known at an index (a reduction's result within its row).
  void Remember(const Frame& frame, const hlo::Instruction& instruction, const Indices& index, Values values);

  ir::Expr Both(const ir::Expr& mask, const ir::Expr& other);  // and; null is true

 private:
  struct Key {
    const Frame* frame;
    const hlo::Instruction* instruction;
    Indices index;
    const ir::ExprNode* mask;
    auto operator<=>(const Key&) const = default;
  };
  Values Compute(const Frame& frame, const hlo::Instruction& instruction, const Indices& index, const ir::Expr& mask);
  Value LoadElement(const Frame::InMemory& memory, const hlo::Shape& shape, const Indices& index, const ir::Expr& mask);

  IndexMath& math_;
  Body& body_;
  std::deque<Frame> frames_;
  std::vector<std::map<Key, Values>> memo_;
  std::vector<ir::Expr> kept_;  // masks in keys stay alive, so that addresses stay unique
  // Frames of fusions that were entered, by caller: entering twice shares what was computed.
  std::map<std::pair<const Frame*, const hlo::Instruction*>, const Frame*> entered_;
};

// Whether FusedValues can compute the instruction (and, for a fusion, everything inside it).
bool CanInline(const hlo::Instruction& instruction);

ir::Expr StoreIndex(IndexMath& math, const hlo::Shape& shape, const Indices& index);
// Writes `value` to the element of a leaf with `shape` at `index`.
void StoreElement(FusedValues& values, const ir::BufferRef& buffer, const hlo::Shape& shape, const Indices& index,
                  const Value& value);

}  // namespace hlorun::opencl
