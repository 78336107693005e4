// Where the values of a product or convolution go: through the elementwise consumers that were fused with it, to the
// results of the executed instruction.
#pragma once

#include <functional>
#include <vector>

#include "backends/opencl/codegen/fused_values.h"
#include "backends/opencl/kernels/kernel_draft.h"
#include "backends/opencl/kernels/register_tile.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// The result index of the first lane of a run of values: all but `lane_dimension` the same along the run.
struct RunIndex {
  std::vector<ir::Expr> index;  // s64
  size_t lane_dimension = 0;
};

class Epilogue {
 public:
  // Adds the result and the side operands to `parameters`. `hero` is `instruction`, or lies in its fused computation.
  Epilogue(const hlo::Instruction& instruction, const hlo::Instruction& hero, const AliasPattern& aliases,
           KernelParameters& parameters);

  // Whether consumers of `hero` in `instruction` have a form that this class evaluates: elementwise ops, and a root
  // that puts the result elsewhere or reduces groups of rows (passes/fusion/stored_result.h).
  static bool Supports(const hlo::Instruction& instruction, const hlo::Instruction& hero);

  // True when values are stored as they are, where the hero has them.
  bool IsPlain() const { return &instruction_ == &hero_; }
  // True when groups of rows are stored as one each: StoreRows is what finishes them.
  bool ReducesRows() const { return reduction_ != nullptr; }
  // True when a vector from `at` on is stored as it is, in one piece.
  bool StoresVectors(const RunIndex& at, int64_t lanes) const;
  // Vectors of so many lanes are stored past the caches, where they are whole cache lines of a result that lies in no
  // operand's place.
  void PassCaches(int64_t lanes);
  // Stores a vector of the hero's values as they are, where StoresVectors.
  ir::Stmt StorePlain(const RunIndex& at, const ir::Expr& values) const;
  // Two of them side by side. `rounds_pairs`: the CPU's own instruction makes bf16 of both, and one store writes a
  // whole cache line, which is then not read before: half the lines cost 14 cycles each (docs/products.md).
  ir::Stmt StorePlain(const RunIndex& at, const ir::Expr& first, const ir::Expr& second, bool rounds_pairs) const;
  // Finishes and stores `count` values along a run, `lanes` at a time; value(i) is the hero's value at place i.
  ir::Stmt StoreRun(const RunIndex& at, int64_t count, int64_t lanes,
                    const std::function<ir::Expr(const ir::Expr&)>& value) const;
  // The same of rows first .. end of a tile (s64), each a run of `count` values from at(row) on; value(place) is that
  // of the row that the variable `row` is. Where the root reduces rows, these are a group of them, or its end.
  using OfRow = std::function<RunIndex(const ir::Expr& row)>;
  ir::Stmt StoreRows(const ir::Var& row, const ir::Expr& first, const ir::Expr& end, const OfRow& at, int64_t count,
                     int64_t lanes, const std::function<ir::Expr(const ir::Expr&)>& value) const;
  // Finishes and stores runs that lie side by side: value(r, i) is run r's at place i. They differ in the last index
  // alone, each is one further than the one before, and each vector of all of them is put together before it is stored.
  // Not where the root rearranges or reduces what is stored.
  ir::Stmt StoreSideBySide(const std::vector<RunIndex>& runs, int64_t count, int64_t lanes,
                           const std::function<ir::Expr(size_t run, const ir::Expr& place)>& value) const;
  // Sends for the cache lines that a run of `count` values will be stored to, and be finished with, while they are
  // summed: a short row in each of many long ones is no stream that the hardware sees (docs/products.md).
  ir::Stmt SendForRun(const RunIndex& at, int64_t count) const;

 private:
  // What is done with the values at a place of a run, whose index in the hero's result is given.
  using Sink = std::function<void(FusedValues& values, const Indices& index, const Values& finished)>;

  ir::Expr Linear(const RunIndex& at) const;
  // A value of the hero at a place, finished.
  Values Finished(FusedValues& values, const Indices& index, const ir::Expr& raw) const;
  // Stores it where the root puts it.
  void StoreFinished(FusedValues& values, const Indices& index, const Values& finished) const;
  // The loop of `place` over begin .. end of a run.
  ir::Stmt FinishPlaces(const RunIndex& at, const ir::Var& place, const ir::Expr& begin, const ir::Expr& end,
                        int64_t lanes, const std::function<ir::Expr(const ir::Expr&)>& value, const Sink& sink) const;
  // A new frame of the fused computation, which knows what is in memory.
  Frame& FrameOf(FusedValues& values) const;
  ir::Stmt ReduceRows(const ir::Var& row, const ir::Expr& first, const ir::Expr& end, const OfRow& at, int64_t count,
                      int64_t lanes, const std::function<ir::Expr(const ir::Expr&)>& value) const;
  ir::Stmt StoreRearranged(const RunIndex& at, int64_t count, int64_t lanes,
                           const std::function<ir::Expr(const ir::Expr&)>& value) const;
  // Where the root puts what the hero has at `at`.
  ir::Expr StoredAt(const RunIndex& at) const;
  ir::Expr RearrangedAt(const RunIndex& at) const;

  const hlo::Instruction& instruction_;
  const hlo::Instruction& hero_;
  const hlo::Instruction* value_ = nullptr;      // of a fusion: what is stored, of the hero's dimensions
  const hlo::Instruction* transpose_ = nullptr;  // the root that puts it elsewhere, where there is one
  const hlo::Instruction* reduction_ = nullptr;  // the root that reduces groups of rows, where there is one
  const hlo::Instruction* update_ = nullptr;     // the root that updates a part of an array, where there is one
  hlo::Dims starts_;                             // of that part
  bool sends_result_ = true;
  std::vector<ir::BufferRef> results_;   // of a reduction as many as it has, else one
  std::vector<ir::BufferRef> operands_;  // of the fusion; null where only the hero reads them
  std::vector<ir::BufferRef> visited_;   // at each value's own index: operands of the hero's dimensions
};

// What a finished register tile does with its values.
class TileStore {
 public:
  // The result index of a row (an s64 expression, 0 .. rows) at a column of the tile.
  using Index = std::function<RunIndex(const ir::Expr& row, const ir::Expr& column)>;

  explicit TileStore(const Epilogue& epilogue) : epilogue_(epilogue) {}

  // Rows first .. end (end <= tile.rows(), s64), columns 0 .. `columns`. `staging` is a private array of the tile's
  // size that values pass through, so that the epilogue's code is there once and not once an accumulator.
  ir::Stmt Emit(const RegisterTile& tile, const ir::BufferRef& staging, const ir::Expr& first, const ir::Expr& end,
                int64_t columns, const Index& index) const;
  // The same where columns before `begin` are another tile's, with the same sums: they are not finished again, which
  // may read what lies where they are stored.
  ir::Stmt EmitFrom(int64_t begin, const RegisterTile& tile, const ir::BufferRef& staging, const ir::Expr& first,
                    const ir::Expr& end, int64_t columns, const Index& index) const;
  // The same where runs go along rows, from `first` to the last: index() has the row as its lane dimension. `turned` is
  // a private array of TurnedElements; the kernel needs TransposeHelpers of the tile's vectors.
  ir::Stmt EmitTurned(const RegisterTile& tile, const ir::BufferRef& staging, const ir::BufferRef& turned,
                      const ir::Expr& first, int64_t columns, const Index& index) const;
  static int64_t TurnedElements(const RegisterTile& tile);

 private:
  static ir::Stmt Save(const RegisterTile& tile, const ir::BufferRef& staging);
  ir::Stmt EmitDirect(const RegisterTile& tile, const Index& index) const;
  const Epilogue& epilogue_;
};

// The operand of the executed `instruction` that operand `operand` of the hero is; -1 when the fusion computes it.
int64_t OperandNumber(const hlo::Instruction& instruction, const hlo::Instruction& hero, int64_t operand);

// The private array that TileStore needs for a tile of this size.
ir::BufferRef MakeStaging(const std::string& name, hlo::ElementType type, int64_t elements);

}  // namespace hlorun::opencl
