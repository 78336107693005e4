#include "backends/opencl/plan_builder.h"

#include <algorithm>
#include <unordered_map>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/collective_thunk.h"
#include "hlo/cost_analysis.h"
#include "hlo/error.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using passes::KernelKind;

// The distinct kernels of a plan.
class KernelTable {
 public:
  explicit KernelTable(std::vector<Kernel>& kernels) : kernels_(kernels) {}

  int32_t IndexOf(const EmittedLaunch& launch) {
    const auto [it, added] = by_source_.try_emplace(launch.source, static_cast<int32_t>(kernels_.size()));
    if (added) {
      Kernel& kernel = kernels_.emplace_back();
      kernel.name = fmt::format("k{}", it->second);
      kernel.source = WithName(launch.source, kernel.name);
      kernel.kernel_ir = launch.kernel_ir;
      kernel.parameter_count = static_cast<int64_t>(launch.arguments.size());
    }
    std::vector<Grid>& grids = kernels_[static_cast<size_t>(it->second)].grids;
    if (std::find(grids.begin(), grids.end(), launch.grid) == grids.end()) grids.push_back(launch.grid);
    return it->second;
  }

 private:
  static std::string WithName(std::string source, const std::string& name) {
    const std::string_view placeholder = kKernelName;
    for (size_t at = source.find(placeholder); at != std::string::npos; at = source.find(placeholder, at + name.size())) {
      source.replace(at, placeholder.size(), name);
    }
    return source;
  }

  std::vector<Kernel>& kernels_;
  std::unordered_map<std::string, int32_t> by_source_;
};

class PlanBuilder {
 public:
  PlanBuilder(const hlo::Module& module, const passes::BufferAssignment& buffers, passes::PassContext& context)
      : module_(module), buffers_(buffers), emit_{context.device, context.options}, kernels_(plan_.kernels) {
    plan_.device = context.device;
  }

  Plan Build() {
    plan_.module_name = module_.name();
    plan_.replica_count = module_.replica_count;
    plan_.num_partitions = module_.num_partitions;
    plan_.memory = buffers_.statistics();
    DescribeMemory();
    DescribeParameters();
    DescribeResults();
    Append(*module_.entry(), plan_.entry);
    return std::move(plan_);
  }

 private:
  void DescribeMemory() {
    plan_.allocations = buffers_.allocations();
    for (passes::Allocation& allocation : plan_.allocations) {
      if (allocation.kind == passes::Allocation::Kind::kArena) arena_ = static_cast<int32_t>(&allocation - &plan_.allocations[0]);
      if (allocation.kind != passes::Allocation::Kind::kConstant) continue;
      plan_.constants.push_back(allocation.constant->literal());
      allocation.constant = nullptr;
    }
  }

  void DescribeParameters() {
    for (const Instruction* parameter : module_.entry()->parameters()) {
      hlo::ForEachLeaf(parameter->shape(), [&](const hlo::ShapeIndex& index, const hlo::Shape& shape) {
        ArrayInfo info;
        info.name = parameter->name();
        info.op_name = parameter->metadata.op_name;
        info.shape = shape;
        info.parameter = parameter->parameter_number();
        info.index = index;
        info.donated = IsDonated(info.parameter, index);
        if (parameter->sharding.has_value()) info.sharding = parameter->sharding->ToString();
        plan_.parameters.push_back(std::move(info));
      });
    }
  }

  bool IsDonated(int64_t parameter, const hlo::ShapeIndex& index) const {
    const auto names = [&](const auto& entry) { return entry.parameter == parameter && entry.parameter_index == index; };
    return std::any_of(module_.input_output_alias.begin(), module_.input_output_alias.end(), names) ||
           std::any_of(module_.buffer_donors.begin(), module_.buffer_donors.end(), names);
  }

  void DescribeResults() {
    const Instruction* root = module_.entry()->root();
    hlo::ForEachLeaf(root->shape(), [&](const hlo::ShapeIndex& index, const hlo::Shape& shape) {
      ArrayInfo info;
      info.name = fmt::format("{}", fmt::join(index, "."));
      if (index.empty()) info.name = "0";
      info.shape = shape;
      info.index = index;
      if (root->sharding.has_value()) info.sharding = root->sharding->ToString();
      plan_.results.push_back(std::move(info));
    });
    for (Slice slice : buffers_.results()) {
      if (slice.allocation < 0) slice.allocation = arena_;  // a token: nowhere, of no bytes
      plan_.result_slices.push_back(slice);
    }
  }

  std::shared_ptr<Sequence> SequenceOf(const hlo::Computation& computation) {
    auto sequence = std::make_shared<Sequence>();
    Append(computation, *sequence);
    return sequence;
  }

  void Append(const hlo::Computation& computation, Sequence& sequence) {
    for (const auto& instruction : computation.instructions()) Append(*instruction, sequence);
  }

  void Append(const Instruction& instruction, Sequence& sequence) {
    switch (instruction.opcode()) {
      case Opcode::kWhile:
        return Add(sequence, instruction, MakeWhile(instruction));
      case Opcode::kConditional:
        return Add(sequence, instruction, MakeConditional(instruction));
      case Opcode::kCall:
        return Append(*instruction.called(), sequence);
      case Opcode::kPartitionId:
        return Add(sequence, instruction, WriteThunk{WriteThunk::Value::kPartitionId, "", ResultSlice(instruction, 0)});
      case Opcode::kReplicaId:
        return Add(sequence, instruction, WriteThunk{WriteThunk::Value::kReplicaId, "", ResultSlice(instruction, 0)});
      case Opcode::kCopy:
        return AddCopy(sequence, instruction, OperandSlice(instruction, 0), ResultSlice(instruction, 0));
      default:
        break;
    }
    switch (passes::HeroOf(instruction).kind) {
      case KernelKind::kNone:
        return;
      case KernelKind::kCollective:
        return Add(sequence, instruction, MakeCollective(instruction));
      case KernelKind::kHost:
        return Add(sequence, instruction, MakeHostCall(instruction));
      default:
        return AppendKernels(instruction, sequence);
    }
  }

  Slice OperandSlice(const Instruction& instruction, int64_t number) const {
    return buffers_.SliceOf(instruction.operand(number));
  }
  Slice ResultSlice(const Instruction& instruction, int64_t leaf) const { return buffers_.SliceOf(&instruction, leaf); }

  template <typename Work>
  void Add(Sequence& sequence, const Instruction& instruction, Work work) {
    Thunk& thunk = sequence.thunks.emplace_back();
    thunk.work = std::move(work);
    thunk.label = instruction.name();
    thunk.op_name = instruction.metadata.op_name;
  }

  void AddCopy(Sequence& sequence, const Instruction& instruction, const Slice& from, const Slice& to) {
    if (from == to || to.bytes == 0) return;
    Add(sequence, instruction, CopyThunk{from, to});
    sequence.thunks.back().bytes = 2.0 * static_cast<double>(to.bytes);
  }

  WhileThunk MakeWhile(const Instruction& loop) {
    WhileThunk thunk;
    thunk.condition = SequenceOf(*loop.while_condition());
    thunk.body = SequenceOf(*loop.while_body());
    thunk.predicate = buffers_.SliceOf(loop.while_condition()->root());
    thunk.trip_count = hlo::KnownTripCount(loop).value_or(-1);
    return thunk;
  }

  ConditionalThunk MakeConditional(const Instruction& conditional) {
    ConditionalThunk thunk;
    thunk.selector = OperandSlice(conditional, 0);
    thunk.is_predicate = conditional.operand(0)->shape().element_type() == hlo::ElementType::kPred;
    for (const hlo::Computation* branch : conditional.called_computations()) {
      thunk.branches.push_back(SequenceOf(*branch));
    }
    return thunk;
  }

  CollectiveThunk MakeCollective(const Instruction& instruction) {
    CollectiveThunk thunk = MakeCollectiveThunk(instruction);
    for (int64_t i = 0; i < instruction.operand_count(); ++i) thunk.operands.push_back(OperandSlice(instruction, i));
    for (size_t i = 0; i < thunk.result_shapes.size(); ++i) {
      thunk.results.push_back(ResultSlice(instruction, static_cast<int64_t>(i)));
    }
    if (!instruction.called_computations().empty() && thunk.reduction == Opcode::kMap) {
      const hlo::Shape& shape = thunk.operand_shapes[0];
      thunk.reduction_kernel = kernels_.IndexOf(
          EmitElementwiseReducer(*instruction.called(), shape.element_type(), shape.ElementCount(), emit_));
    }
    return thunk;
  }

  HostCallThunk MakeHostCall(const Instruction& instruction) {
    if (!instruction.Is(Opcode::kCustomCall)) {
      Fail(ErrorCode::kUnimplemented, "%{}: {} needs a host that feeds the program, which hlorun has not",
           instruction.name(), hlo::OpcodeName(instruction.opcode()));
    }
    ++plan_.host_thunks;
    HostCallThunk thunk;
    const auto& call = instruction.As<hlo::attr::CustomCall>();
    thunk.target = call.target;
    thunk.opaque = call.opaque;
    for (const Instruction* operand : instruction.operands()) {
      AppendLeaves(operand, thunk.operands, thunk.operand_shapes);
    }
    AppendLeaves(&instruction, thunk.results, thunk.result_shapes);
    return thunk;
  }

  void AppendLeaves(const Instruction* instruction, std::vector<Slice>& slices, std::vector<hlo::Shape>& shapes) const {
    int64_t leaf = 0;
    hlo::ForEachLeaf(instruction->shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
      const Slice slice = buffers_.SliceOf(instruction, leaf++);
      if (slice.allocation < 0) return;
      slices.push_back(slice);
      shapes.push_back(shape);
    });
  }

  AliasPattern AliasesOf(const Instruction& instruction) const {
    AliasPattern aliases;
    for (int64_t leaf = 0; leaf < hlo::LeafCount(instruction.shape()); ++leaf) {
      int64_t shared = -1;
      for (int64_t i = 0; i < instruction.operand_count() && shared < 0; ++i) {
        const bool is_array = instruction.operand(i)->shape().IsArray();
        if (is_array && OperandSlice(instruction, i) == ResultSlice(instruction, leaf)) shared = i;
      }
      aliases.push_back(ResultSlice(instruction, leaf).bytes == 0 ? -1 : shared);
    }
    return aliases;
  }

  void AppendKernels(const Instruction& instruction, Sequence& sequence) {
    const std::vector<EmittedLaunch> launches = EmitInstruction(instruction, AliasesOf(instruction), emit_);
    const hlo::Cost cost = hlo::CostOf(instruction);
    for (const EmittedLaunch& launch : launches) {
      LaunchThunk thunk;
      thunk.kernel = kernels_.IndexOf(launch);
      thunk.grid = launch.grid;
      for (const ArgumentRef& argument : launch.arguments) {
        thunk.arguments.push_back(Resolve(instruction, argument));
        thunk.written.push_back(argument.written);
      }
      Add(sequence, instruction, std::move(thunk));
      // Of several launches the last does the work; those before it pack and prepare.
      if (&launch != &launches.back()) continue;
      sequence.thunks.back().flops = cost.flops + cost.transcendentals;
      sequence.thunks.back().bytes = cost.bytes_read + cost.bytes_written;
    }
  }

  Slice Resolve(const Instruction& instruction, const ArgumentRef& argument) const {
    Slice slice;
    switch (argument.kind) {
      case ArgumentRef::Kind::kOperand:
        slice = OperandSlice(instruction, argument.number);
        break;
      case ArgumentRef::Kind::kResult:
        slice = ResultSlice(instruction, argument.number);
        break;
      case ArgumentRef::Kind::kScratch:
        slice = buffers_.ScratchOf(&instruction);
        break;
    }
    const int64_t bytes = argument.bytes > 0 ? argument.bytes : slice.bytes - argument.offset;
    if (slice.allocation < 0 || argument.offset < 0 || bytes < 0 || argument.offset + bytes > slice.bytes) {
      Fail(ErrorCode::kInternal, "%{}: a kernel asks for bytes {} + {} of an array of {} bytes", instruction.name(),
           argument.offset, bytes, slice.bytes);
    }
    slice.offset += argument.offset;
    slice.bytes = bytes;
    return slice;
  }

  const hlo::Module& module_;
  const passes::BufferAssignment& buffers_;
  const EmitContext emit_;
  Plan plan_;
  KernelTable kernels_;
  int32_t arena_ = -1;
};

}  // namespace

Plan BuildPlan(const hlo::Module& module, const passes::BufferAssignment& buffers, passes::PassContext& context) {
  return PlanBuilder(module, buffers, context).Build();
}

}  // namespace hlorun::opencl
