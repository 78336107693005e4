// One kernel in the making for one executed instruction: its operands and results as buffers, the values of its fused
// computation, and at the end the launch.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/codegen/extent_expr.h"
#include "backends/opencl/codegen/fused_values.h"
#include "backends/opencl/codegen/result_parts.h"
#include "backends/opencl/codegen/schedule.h"

namespace hlorun::opencl {

// Elementary operations that make a work-group worth its launch (about 20 us on one core).
inline constexpr int64_t kWorkOfGroup = 1 << 16;
// How many iterations of a parallel nest make such a group, each of `work` operations.
constexpr int64_t GrainOf(int64_t work) { return std::max<int64_t>(1, kWorkOfGroup / std::max<int64_t>(1, work)); }
// Those of whole vectors, whose operations count for eight.
constexpr int64_t GrainOfVectors(int64_t work, int lanes) { return GrainOf(8 * std::max<int64_t>(1, work / lanes)); }

// Elementary operations of a statement, loops multiplied out.
int64_t WorkOf(const ir::Stmt& statement);
// Whether hardly anything is done with what is loaded before it is stored.
bool IsCopy(const ir::Stmt& statement);
// Divisions and remainders of indices, not multiplied out.
int64_t DivisionsIn(const ir::Stmt& statement);
bool HasLoop(const ir::Stmt& statement);

// Elements that a work-item of a GPU computes side by side, so that their loads are under way together; unless each of
// them has loops or much else to do.
inline constexpr int64_t kTogether = 4;
bool GoesTogether(const ir::Stmt& element);

class Emission {
 public:
  Emission(const hlo::Instruction& instruction, const AliasPattern& aliases, const EmitContext& context);
  Emission(const Emission&) = delete;
  Emission& operator=(const Emission&) = delete;

  // What the kernel makes, how to compute it, in `frame`, and where it lies: in a buffer of `whole`.
  struct Output : ResultPart {
    const Frame* frame;
    hlo::Shape whole;
    ir::BufferRef buffer;
  };

  const hlo::Instruction& instruction() const { return instruction_; }
  const EmitContext& context() const { return context_; }
  const DeviceSpec& device() const { return context_.device; }
  IndexMath& math() { return math_; }
  Body& body() { return body_; }
  FusedValues& values() { return values_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  // The frame in which the hero's operands are looked up: the fused computation's, or the operands themselves.
  const Frame& frame() const { return *inner_; }
  ir::BufferRef OperandBuffer(int64_t operand) const { return operand_buffers_[static_cast<size_t>(operand)]; }
  // Scratch from `offset` on, complex as pairs of reals.
  ir::BufferRef Scratch(const std::string& name, hlo::ElementType type, int64_t elements, int64_t offset, bool written);

  // GPU class: groups of so many work-items instead of GroupLanes. Called before Finish.
  void GroupOf(int64_t items) { group_items_ = items; }
  // GPU class: groups of whole sub-groups of so many work-items, which the device is asked for. Called before Finish.
  void SubGroupOf(int64_t items) { sub_group_items_ = items; }
  // A function that the kernel calls. Called before Finish; the same one may be asked for again.
  void Needs(ir::Helper helper) { helpers_.push_back(std::move(helper)); }
  // An array of a group; declared by Finish.
  ir::BufferRef LocalArray(const std::string& name, hlo::ElementType type, int64_t elements);
  // An array of each work-item, declared where the body stands.
  ir::BufferRef PrivateArray(const std::string& name, hlo::ElementType type, int64_t elements);

  Value ValueOf(const Output& output, const Indices& index) {
    return values_.GetAll(*output.frame, *output.root, index)[output.element];
  }
  // Writes `value` to the element of `output` at `index`.
  void Store(const Output& output, const Indices& index, const Value& value);
  // Lanes of vector loops: as many as the widest element type of operands and results allows.
  int Lanes() const { return lanes_; }
  bool IsGpu() const { return context_.device.device_class == DeviceClass::kGpu; }
  // Some result shares an operand's buffer.
  bool InPlace() const { return in_place_; }
  ir::Var IndexVar(const std::string& name, int64_t extent) { return ir::MakeIndex(name, 0, extent - 1, math_.type()); }
  ir::Expr IndexInt(int64_t value) const { return ir::Int(value, math_.type()); }

  // How far a dimension of the results is needed, where all of them say the same: `dimension_of` an output, kNotAsked
  // where it does not matter, kUnknown where it is not one dimension.
  static constexpr int64_t kNotAsked = -1, kUnknown = -2;
  std::optional<passes::OperandExtent> SharedExtent(const std::function<int64_t(const Output&)>& dimension_of) const;
  // Its value, at most `bound`; a variable of the whole kernel.
  ir::Expr ValueOf(const passes::OperandExtent& extent, int64_t bound);

  // Whether results are written past the caches although several of their rows, of `length` elements, are written side
  // by side, `together` elements at a time: what fills a cache line in parts, others in between, goes to memory in
  // parts (docs/performance.md). Called before Finish.
  void StreamRowsOf(int64_t length, int64_t together);

  // Schedules, prints and keeps the parameters that are used. `grain`: iterations of the parallel nest that a group
  // takes at least.
  EmittedLaunch Finish(const ir::Stmt& body, int64_t grain, std::vector<ir::Helper> helpers = {});

 private:
  void BindOperands(const AliasPattern& aliases);

  const hlo::Instruction& instruction_;
  EmitContext context_;
  IndexMath math_;
  Body body_;
  FusedValues values_;
  const Frame* inner_ = nullptr;
  std::vector<ir::BufferRef> operand_buffers_;  // null for inlined scalar constants
  std::vector<Output> outputs_;
  passes::KernelExtents extents_;
  std::vector<ir::Stmt> preamble_;
  int64_t group_items_ = 0, sub_group_items_ = 0;
  std::vector<ir::Helper> helpers_;
  std::vector<std::pair<std::pair<passes::OperandExtent, int64_t>, ir::Expr>> extent_values_;
  std::vector<std::pair<ir::BufferRef, ArgumentRef>> parameters_;
  int lanes_ = 1;
  bool in_place_ = false;
};

// Of `total` elements, those of tile number `tile`, done by a group of a GPU: neighbours by neighbouring work-items.
// `size` of a tile: one element a work-item, or kTogether of them.
ir::Stmt TileOfElements(Emission& e, const ir::Var& tile, int64_t size, int64_t total,
                        const std::function<void(const Index&)>& body);

// A launch of one loop a dimension, all parallel but the last, which is one of vectors; on GPU class of one loop over
// all of them, cut into groups. `body` writes what happens at an index; it may be asked for several.
EmittedLaunch OverElements(Emission& e, const hlo::Dims& dims, const std::function<void(const Indices&)>& body);
// Copies `from`, as the frame has it, into the output of the same shape: what an update in place begins with where its
// operand must stay.
EmittedLaunch CopyInto(Emission& e, size_t output, const Frame& frame, const hlo::Instruction& from);

// Whether 32-bit indices reach every element that `instruction` touches or passes through.
bool FitsIndex32(const hlo::Instruction& instruction);

}  // namespace hlorun::opencl
