// A scatter's dimensions by what they do, and what one of its updates does to the result.
#pragma once

#include "backends/opencl/codegen/emission.h"

namespace hlorun::opencl {

class ScatterUpdates {
 public:
  // Where a result is made.
  struct Target {
    ir::BufferRef buffer;
    hlo::Shape shape;
  };

  // Of a kernel's hero, whose results are the kernel's.
  ScatterUpdates(Emission& e, const hlo::Instruction& scatter);
  // Of a scatter whose operands are looked up in `frame`.
  ScatterUpdates(Emission& e, const hlo::Instruction& scatter, const Frame& frame, std::vector<Target> targets);

  const hlo::Shape& operand_shape() const { return operand_shape_; }
  const hlo::Shape& updates_shape() const { return updates_shape_; }
  // Of the updates: within an update; and those that number them.
  const std::vector<int64_t>& window_dims() const { return window_dims_; }
  const std::vector<int64_t>& batch_dims() const { return batch_dims_; }
  // Of the updates: those of batch_dims() that are a dimension of the operand too.
  std::vector<int64_t> OperandBatchDims() const;
  // Of the operand: those in which indices say where an update of one element lies.
  std::vector<int64_t> RowDims() const;
  // Whether windows of different updates may overlap without being the same: an element of the result is then not at
  // one place of all windows.
  bool WindowsSlide() const;
  // Elements of a window's last dimension lie at least a cache line apart, among the updates and in the result: a
  // window is a pixel of an image whose channels come first.
  bool WindowsAreSpread() const;
  // No two updates touch the same element.
  bool IsIndependent() const { return attributes_.unique_indices && !batch_dims_.empty(); }

  // Where the window of an update begins, one index a dimension of the operand, and whether all of it lies inside;
  // only then is the window touched. `update` names it by its batch dimensions.
  struct Start {
    Indices at;
    ir::Expr inside;
  };
  Start StartOf(const Indices& update, const ir::Expr& mask = nullptr);

  // Of the operand: where an element of an update lies.
  Indices PlaceOf(const Start& start, const Indices& update) const;
  // One element of an update, combined with what is there.
  struct Element {
    Indices place;
    Values results;
  };
  Element Combined(const Start& start, const Indices& update);
  void Store(const Element& element);

 private:
  int64_t WindowSize(int64_t operand_dim) const;
  // Starts in [0, Limit] keep the window inside.
  int64_t Limit(int64_t operand_dim) const { return operand_shape_.dimension(operand_dim) - WindowSize(operand_dim); }

  Emission& e_;
  const hlo::Instruction& scatter_;
  const Frame& frame_;
  std::vector<Target> targets_;
  const hlo::attr::Scatter& attributes_;
  int64_t count_;
  const hlo::Shape &operand_shape_, &indices_shape_, &updates_shape_;
  std::vector<int64_t> window_dims_, batch_dims_, window_operand_dims_;
};

// Whether groups of updates, several of which may meet a place, can be combined apart and then joined: by one opcode
// with a neutral element, of a type that does not round at each update.
bool CombinesInParts(const hlo::Instruction& scatter);

}  // namespace hlorun::opencl
