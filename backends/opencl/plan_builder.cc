#include "backends/opencl/plan_builder.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "backends/opencl/codegen/alias_pattern.h"
#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/codegen/guard.h"
#include "backends/opencl/codegen/host_evaluation.h"
#include "backends/opencl/collective_thunk.h"
#include "backends/opencl/foreign_kernel.h"
#include "backends/opencl/kept_work.h"
#include "backends/opencl/kernels/library_product.h"
#include "backends/opencl/loop_pairs.h"
#include "backends/opencl/loop_work.h"
#include "backends/opencl/plan_remarks.h"
#include "backends/opencl/plan_slices.h"
#include "backends/opencl/transfer_thunk.h"
#include "hlo/cost_analysis.h"
#include "hlo/error.h"
#include "hlo/text/parser.h"
#include "passes/control/loop_carry.h"
#include "passes/control/predication.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/meaning.h"
#include "passes/fusion/tiles.h"
#include "passes/fusion/updated_part.h"
#include "passes/spmd/spmd.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using passes::KernelKind;

// The distinct kernels of a plan.
class KernelTable {
 public:
  explicit KernelTable(std::vector<Kernel>& kernels) : kernels_(kernels) {}

  // `guards`: arguments behind those of the launch.
  int32_t IndexOf(const EmittedLaunch& launch, size_t guards = 0) {
    const auto [it, added] = by_source_.try_emplace(launch.source, static_cast<int32_t>(kernels_.size()));
    if (added) {
      Kernel& kernel = kernels_.emplace_back();
      kernel.name = fmt::format("k{}", it->second);
      kernel.source = WithName(launch.source, kernel.name);
      kernel.kernel_ir = launch.kernel_ir;
      kernel.parameter_count = static_cast<int64_t>(launch.arguments.size() + guards);
    }
    std::vector<Grid>& grids = kernels_[static_cast<size_t>(it->second)].grids;
    if (std::find(grids.begin(), grids.end(), launch.grid) == grids.end()) grids.push_back(launch.grid);
    return it->second;
  }

  // The user's function gets the kernel's name by a macro; its text stays as it is.
  int32_t IndexOfForeign(const ForeignKernel& foreign, const std::string& function) {
    const auto [it, added] = by_source_.try_emplace(foreign.source, static_cast<int32_t>(kernels_.size()));
    if (added) {
      Kernel& kernel = kernels_.emplace_back();
      kernel.name = fmt::format("k{}", it->second);
      kernel.source = fmt::format("#define {0} {1}\n{2}\n#undef {0}\n", function, kernel.name, foreign.source);
      kernel.parameter_count = static_cast<int64_t>(foreign.arguments.size());
      kernel.foreign = true;
    }
    std::vector<Grid>& grids = kernels_[static_cast<size_t>(it->second)].grids;
    if (std::find(grids.begin(), grids.end(), foreign.grid) == grids.end()) grids.push_back(foreign.grid);
    return it->second;
  }

 private:
  static std::string WithName(std::string source, const std::string& name) {
    const std::string_view placeholder = kKernelName;
    for (size_t at = source.find(placeholder); at != std::string::npos;
         at = source.find(placeholder, at + name.size())) {
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
      : module_(module),
        buffers_(buffers),
        context_(context),
        emit_{context.device, context.options},
        kernels_(plan_.kernels) {
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
    DescribeSizes();
    DescribeConstantParameters();
    Append(*module_.entry(), plan_.entry);
    KeepConstantWork(plan_, overwritten_);
    MoveOutOfLoops(plan_);
    PairTrips(plan_, carried_);
    return std::move(plan_);
  }

 private:
  void DescribeMemory() {
    plan_.allocations = buffers_.allocations();
    for (passes::Allocation& allocation : plan_.allocations) {
      if (allocation.kind == passes::Allocation::Kind::kArena)
        arena_ = static_cast<int32_t>(&allocation - &plan_.allocations[0]);
      if (allocation.kind != passes::Allocation::Kind::kConstant) continue;
      plan_.constants.push_back(allocation.constant->literal());
      allocation.constant = nullptr;
    }
  }

  void DescribeParameters() {
    for (const Instruction* parameter : module_.entry()->parameters()) {
      size_t leaf = 0;
      hlo::ForEachLeaf(parameter->shape(), [&](const hlo::ShapeIndex& index, const hlo::Shape& shape) {
        ArrayInfo info;
        info.name = parameter->name();
        info.op_name = parameter->metadata.op_name;
        info.shape = shape;
        info.parameter = parameter->parameter_number();
        info.index = index;
        info.donated = IsDonated(info.parameter, index);
        info.sharding = LeafSharding(parameter->sharding, leaf++);
        plan_.parameters.push_back(std::move(info));
      });
    }
  }

  // As text; empty for none.
  static std::string LeafSharding(const std::optional<hlo::Sharding>& sharding, size_t leaf) {
    if (!sharding.has_value()) return "";
    if (sharding->kind != hlo::Sharding::Kind::kTuple) return sharding->ToString();
    return leaf < sharding->elements.size() ? sharding->elements[leaf].ToString() : "";
  }

  std::optional<hlo::Sharding> ResultSharding() const {
    const auto said = module_.frontend_attributes.find(passes::spmd::kResultSharding);
    return said == module_.frontend_attributes.end() ? module_.entry()->root()->sharding
                                                     : hlo::ParseSharding(said->second);
  }

  bool IsDonated(int64_t parameter, const hlo::ShapeIndex& index) const {
    const auto names = [&](const auto& entry) {
      return entry.parameter == parameter && entry.parameter_index == index;
    };
    return std::any_of(module_.input_output_alias.begin(), module_.input_output_alias.end(), names) ||
           std::any_of(module_.buffer_donors.begin(), module_.buffer_donors.end(), names);
  }

  void DescribeResults() {
    const Instruction* root = module_.entry()->root();
    const std::optional<hlo::Sharding> sharding = ResultSharding();
    hlo::ForEachLeaf(root->shape(), [&](const hlo::ShapeIndex& index, const hlo::Shape& shape) {
      ArrayInfo info;
      info.name = fmt::format("{}", fmt::join(index, "."));
      if (index.empty()) info.name = "0";
      info.shape = shape;
      info.index = index;
      info.sharding = LeafSharding(sharding, plan_.results.size());
      plan_.results.push_back(std::move(info));
    });
    for (Slice slice : buffers_.results()) {
      if (slice.allocation < 0) slice.allocation = arena_;  // a token: nowhere, of no bytes
      plan_.result_slices.push_back(slice);
    }
  }

  void DescribeConstantParameters() {
    for (const int64_t leaf : context_.options.constant_parameters) {
      if (leaf < 0 || leaf >= static_cast<int64_t>(plan_.parameters.size())) {
        Invalid("parameter {} is said to be constant, but {} has {}", leaf, plan_.module_name, plan_.parameters.size());
      }
      // What is given away is another array in the next run.
      if (!plan_.parameters[static_cast<size_t>(leaf)].donated) plan_.constant_parameters.push_back(leaf);
    }
    std::sort(plan_.constant_parameters.begin(), plan_.constant_parameters.end());
  }

  void DescribeSizes() {
    plan_.sizes = passes::SignatureOf(module_);
    const auto mark = [](std::vector<ArrayInfo>& arrays, const std::vector<passes::DimensionOfLeaf>& sized) {
      for (const passes::DimensionOfLeaf& d : sized)
        arrays[static_cast<size_t>(d.leaf)].shape.set_dynamic_dimension(d.dimension, true);
    };
    mark(plan_.parameters, plan_.sizes.parameters);
    mark(plan_.results, plan_.sizes.results);
  }

  std::shared_ptr<Sequence> SequenceOf(const hlo::Computation& computation) {
    auto sequence = std::make_shared<Sequence>();
    Append(computation, *sequence);
    return sequence;
  }

  void Append(const hlo::Computation& computation, Sequence& sequence) {
    for (const auto& instruction : computation.instructions()) {
      if (!not_needed_.contains(instruction.get())) Append(*instruction, sequence);
    }
  }

  void Append(const Instruction& instruction, Sequence& sequence) {
    switch (instruction.opcode()) {
      case Opcode::kWhile: return Add(sequence, instruction, MakeWhile(instruction));
      case Opcode::kConditional:
        if (passes::IsPredicated(instruction)) return AppendPredicated(instruction, sequence);
        return Add(sequence, instruction, MakeConditional(instruction));
      case Opcode::kAsyncStart: return Add(sequence, instruction, MakeStart(instruction));
      case Opcode::kAsyncDone: return Add(sequence, instruction, AwaitThunk{tickets_.at(instruction.operand(0))});
      case Opcode::kCall: return Append(*instruction.called(), sequence);
      case Opcode::kPartitionId:
        return Add(sequence, instruction, WriteThunk{WriteThunk::Value::kPartitionId, "", ResultSlice(instruction, 0)});
      case Opcode::kReplicaId:
        return Add(sequence, instruction, WriteThunk{WriteThunk::Value::kReplicaId, "", ResultSlice(instruction, 0)});
      case Opcode::kCopy:
        if (!guards_.empty()) return AppendGuardedCopy(instruction, sequence);
        return AddCopy(sequence, instruction, OperandSlice(instruction, 0), ResultSlice(instruction, 0));
      default: break;
    }
    switch (passes::HeroOf(instruction).kind) {
      case KernelKind::kNone: return;
      case KernelKind::kCollective: return Add(sequence, instruction, MakeCollective(instruction));
      case KernelKind::kHost: return AddHostStep(sequence, instruction);
      default: break;
    }
    if (NeedsHostEvaluation(instruction, emit_.device)) return AddEvaluation(sequence, instruction);
    if (const auto product = LibraryProductOf(instruction, emit_.device, emit_.options)) {
      Add(sequence, instruction, MakeLibraryCall(instruction, *product));
      return AddCost(instruction, sequence.thunks.back());
    }
    if (emit_.options.dot_library == DotLibrary::kClblast && passes::HeroOf(instruction).kind == KernelKind::kDot) {
      context_.remarks.push_back(ExplainOwnProduct(instruction));
    }
    AppendKernels(instruction, sequence);
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
    Thunk& thunk = sequence.thunks.back();
    thunk.bytes_written = static_cast<double>(to.bytes);
    thunk.bytes = 2 * thunk.bytes_written;
  }

  WhileThunk MakeWhile(const Instruction& loop) {
    WhileThunk thunk;
    thunk.predicate = buffers_.SliceOf(loop.while_condition()->root());
    thunk.trip_count = hlo::KnownTripCount(loop).value_or(-1);
    const std::optional<passes::LoopPredication> predication = passes::PredicationOf(loop);
    // Nobody asks for the condition of a loop that is counted.
    const bool is_counted = thunk.trip_count >= 0 && !predication;
    thunk.condition = is_counted ? std::make_shared<Sequence>() : SequenceOf(*loop.while_condition());
    if (is_counted) not_needed_.merge(passes::OnlyForTheCondition(loop));
    if (predication) {
      thunk.ahead = predication->ahead;
      thunk.at_most = predication->at_most;
      guards_.push_back({.selector = thunk.predicate});
    }
    thunk.body = SequenceOf(*loop.while_body());
    if (predication) guards_.pop_back();
    const Instruction* state = loop.while_body()->parameter(0);
    for (int64_t leaf = 0; leaf < hlo::LeafCount(state->shape()); ++leaf)
      carried_[thunk.body.get()].push_back(buffers_.SliceOf(state, leaf));
    context_.remarks.push_back(ExplainLoop(loop, context_));
    return thunk;
  }

  // All branches, one after the other: kernels of those that are not taken return at once.
  void AppendPredicated(const Instruction& conditional, Sequence& sequence) {
    Guard guard;
    guard.selector = OperandSlice(conditional, 0);
    guard.is_predicate = conditional.operand(0)->shape().element_type() == hlo::ElementType::kPred;
    guard.branches = static_cast<int64_t>(conditional.called_computations().size());
    context_.remarks.push_back(ExplainPredicatedBranch(conditional, context_));
    for (guard.branch = 0; guard.branch < guard.branches; ++guard.branch) {
      guards_.push_back(guard);
      Append(*conditional.called(guard.branch), sequence);
      guards_.pop_back();
    }
  }

  void AppendGuardedCopy(const Instruction& copy, Sequence& sequence) {
    const Slice to = ResultSlice(copy, 0);
    if (OperandSlice(copy, 0) != to && to.bytes > 0) AppendKernels(copy, sequence);
  }

  ConditionalThunk MakeConditional(const Instruction& conditional) {
    ConditionalThunk thunk;
    thunk.selector = OperandSlice(conditional, 0);
    thunk.is_predicate = conditional.operand(0)->shape().element_type() == hlo::ElementType::kPred;
    for (const hlo::Computation* branch : conditional.called_computations()) {
      thunk.branches.push_back(SequenceOf(*branch));
    }
    context_.remarks.push_back(ExplainHostBranch(conditional, context_));
    return thunk;
  }

  // Of an async-start the first leaves are the operands.
  CollectiveThunk MakeStart(const Instruction& start) {
    const int64_t operands = hlo::LeafCount(start.shape().tuple_shape(0));
    CollectiveThunk thunk = MakeCollectiveThunk(*start.called()->root());
    AddArrays(thunk, start, operands);
    thunk.ticket = static_cast<int32_t>(tickets_.size());
    tickets_[&start] = thunk.ticket;
    return thunk;
  }

  void AddArrays(CollectiveThunk& thunk, const Instruction& instruction, int64_t first_result) const {
    for (int64_t i = 0; i < instruction.operand_count(); ++i) thunk.operands.push_back(OperandSlice(instruction, i));
    for (size_t i = 0; i < thunk.result_shapes.size(); ++i) {
      thunk.results.push_back(ResultSlice(instruction, first_result + static_cast<int64_t>(i)));
    }
  }

  CollectiveThunk MakeCollective(const Instruction& instruction) {
    CollectiveThunk thunk = MakeCollectiveThunk(instruction);
    AddArrays(thunk, instruction, 0);
    if (!instruction.called_computations().empty() && thunk.reduction == Opcode::kMap) {
      const hlo::ElementType type = thunk.operand_shapes[0].element_type();
      for (const hlo::Shape& shape : thunk.operand_shapes) {
        if (shape.element_type() != type) {
          Fail(
              ErrorCode::kUnimplemented,
              "{} reduces operands of {} and of {} by a computation of its own: give each type a collective of its own",
              instruction.name(), hlo::ElementTypeName(type), hlo::ElementTypeName(shape.element_type()));
        }
      }
      thunk.reduction_kernel =
          kernels_.IndexOf(EmitElementwiseReducer(*instruction.called(), type, thunk.ReducedAtOnce(), emit_));
    }
    return thunk;
  }

  void AddHostStep(Sequence& sequence, const Instruction& instruction) {
    if (instruction.Is(Opcode::kCustomCall)) return AddCustomCall(sequence, instruction);
    std::optional<TransferThunk> transfer = MakeTransferThunk(instruction, buffers_);
    if (!transfer) return;
    AddHostThunk(sequence, instruction, std::move(*transfer));
  }

  void AddCustomCall(Sequence& sequence, const Instruction& instruction) {
    CallArrays arrays = ArraysOf(instruction, buffers_);
    for (const auto& [from, to] : arrays.copies) AddCopy(sequence, instruction, from, to);
    const auto& call = instruction.As<hlo::attr::CustomCall>();
    const hlo::CustomCallDefinition* own = DefinitionOf(instruction, arrays, emit_.options.custom_calls.get());
    if (own != nullptr && own->kernel) {
      const ForeignKernel kernel = MakeForeignKernel(*own, arrays);
      LaunchThunk thunk;
      thunk.kernel = kernels_.IndexOfForeign(kernel, own->kernel->kernel);
      thunk.grid = kernel.grid;
      thunk.arguments = kernel.arguments;
      thunk.written = kernel.written;
      thunk.has_effect = call.has_side_effect;
      return Add(sequence, instruction, std::move(thunk));
    }
    const std::string& config = instruction.backend_config.empty() ? call.opaque : instruction.backend_config;
    AddHostThunk(sequence, instruction, MakeHostCall(call.target, config, std::move(arrays)));
  }

  void AddEvaluation(Sequence& sequence, const Instruction& instruction) {
    HostCallThunk thunk = MakeHostCall(kEvaluateTarget, EvaluatedModule(instruction), ArraysOf(instruction, buffers_));
    AddHostThunk(sequence, instruction, std::move(thunk));
    context_.remarks.back().reason = "computed by the evaluator: the device has no f64";
    context_.remarks.back().warns = true;
  }

  static HostCallThunk MakeHostCall(std::string target, std::string config, CallArrays arrays) {
    return {std::move(target),
            std::move(config),
            std::move(arrays.operands),
            std::move(arrays.results),
            std::move(arrays.operand_shapes),
            std::move(arrays.result_shapes)};
  }

  template <typename Work>
  void AddHostThunk(Sequence& sequence, const Instruction& instruction, Work work) {
    ++plan_.host_thunks;
    context_.remarks.push_back(ExplainHostCall(instruction));
    Add(sequence, instruction, std::move(work));
  }

  LibraryThunk MakeLibraryCall(const Instruction& dot, const LibraryProduct& product) const {
    const passes::DotForm& form = product.form;
    return {product.type,
            form.batch,
            form.m,
            form.n,
            form.k,
            form.lhs_transposed,
            form.rhs_transposed,
            OperandSlice(dot, 0),
            OperandSlice(dot, 1),
            ResultSlice(dot, 0),
            product.numbers};
  }

  static void AddCost(const Instruction& instruction, Thunk& thunk) {
    const hlo::Cost cost = hlo::CostOf(instruction);
    thunk.flops = cost.flops + cost.transcendentals;
    thunk.bytes = cost.bytes_read + cost.bytes_written;
    thunk.bytes_written = cost.bytes_written;
    const passes::Hero hero = passes::HeroOf(instruction);
    thunk.arithmetic = ArithmeticOf(instruction, hero);
    if (passes::Multiplies(hero.kind)) thunk.role = StepRole::kProduct;
  }

  // What the hero multiplies; of anything else, what its result is of.
  static hlo::ElementType ArithmeticOf(const Instruction& instruction, const passes::Hero& hero) {
    const bool multiplies = passes::Multiplies(hero.kind);
    const Instruction* product = hero.kind == KernelKind::kTiles ? passes::SeedOfTiles(instruction) : hero.instruction;
    const hlo::Shape& shape = multiplies ? product->operand(0)->shape() : instruction.shape();
    const hlo::Shape& leaf = shape.IsTuple() && !shape.tuple_shapes().empty() ? shape.tuple_shape(0) : shape;
    // Types of two sizes meet at the larger.
    if (multiplies && hlo::BytesOf(product->operand(1)->shape().element_type()) > hlo::BytesOf(leaf.element_type()))
      return product->operand(1)->shape().element_type();
    return leaf.element_type();
  }

  // Tiles take a small compilation, and a network's layers have the same.
  std::vector<EmittedLaunch> Emit(const Instruction& instruction) {
    const AliasPattern aliases = AliasesOf(instruction, buffers_);
    if (passes::HeroOf(instruction).kind != KernelKind::kTiles) return EmitInstruction(instruction, aliases, emit_);
    const auto [known, added] = tiles_.try_emplace(passes::MeaningOf(instruction));
    if (added) known->second = EmitInstruction(instruction, aliases, emit_);
    return known->second;
  }

  void AppendKernels(const Instruction& instruction, Sequence& sequence) {
    const std::vector<EmittedLaunch> launches = Emit(instruction);
    for (const EmittedLaunch& launch : launches) {
      // Of several launches the last does the work; those before it pack and prepare.
      const bool is_last = &launch == &launches.back();
      LaunchThunk thunk;
      thunk.kernel = kernels_.IndexOf(Guarded(launch, guards_), guards_.size());
      thunk.grid = launch.grid;
      for (const ArgumentRef& argument : launch.arguments) {
        thunk.arguments.push_back(Resolve(instruction, argument));
        thunk.written.push_back(argument.written);
      }
      for (const Guard& guard : guards_) {
        thunk.arguments.push_back(guard.selector);
        thunk.written.push_back(false);
      }
      if (!is_last && launch.Overwrites() && guards_.empty() && WasDone(thunk, sequence)) continue;
      Add(sequence, instruction, std::move(thunk));
      sequence.thunks.back().role = launch.role;
      if (StoresWholeValues(instruction) && guards_.empty() && &sequence == &plan_.entry)
        overwritten_.emplace(sequence.thunks.size() - 1, Overwritten(instruction, launches, launch));
      if (is_last) AddCost(instruction, sequence.thunks.back());
    }
  }

  // Whether a launch before did just the same, and nothing has written since where it reads or writes.
  static bool WasDone(const LaunchThunk& launch, const Sequence& sequence) {
    const auto meets = [&](const Slice& slice) {
      return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                         [&](const Slice& argument) { return argument.Overlaps(slice); });
    };
    for (auto before = sequence.thunks.rbegin(); before != sequence.thunks.rend(); ++before) {
      bool changes = false;
      if (const auto* other = std::get_if<LaunchThunk>(&before->work)) {
        if (other->kernel == launch.kernel && other->grid == launch.grid && other->arguments == launch.arguments)
          return true;
        for (size_t i = 0; i < other->arguments.size(); ++i) changes |= other->written[i] && meets(other->arguments[i]);
      } else {
        ForEachThunk(*before, [&](const Thunk& thunk) {
          ForEachSlice(thunk, [&](const Slice& slice) { changes |= meets(slice); });
        });
      }
      if (changes) return false;
    }
    return false;
  }

  // By argument: a launch stores all of it, and loads nothing of what was there before. `launch` is one of `launches`.
  std::vector<bool> Overwritten(const Instruction& instruction, const std::vector<EmittedLaunch>& launches,
                                const EmittedLaunch& launch) const {
    std::vector<bool> overwritten = launch.overwritten;
    const bool updates = passes::UpdateAtRoot(instruction) != nullptr;
    for (size_t i = 0; i < overwritten.size(); ++i) {
      const ArgumentRef& argument = launch.arguments[i];
      if (argument.kind == ArgumentRef::Kind::kResult && updates) overwritten[i] = false;
      if (argument.kind == ArgumentRef::Kind::kScratch && argument.written)
        overwritten[i] = overwritten[i] || IsFirstToWrite(instruction, argument, launches, launch);
    }
    return overwritten;
  }

  // Scratch holds nothing from before the instruction: who writes a part of it first may load only what it stored.
  bool IsFirstToWrite(const Instruction& instruction, const ArgumentRef& scratch,
                      const std::vector<EmittedLaunch>& launches, const EmittedLaunch& launch) const {
    const Slice place = Resolve(instruction, scratch);
    const auto writes_there = [&](const ArgumentRef& other) {
      return other.kind == ArgumentRef::Kind::kScratch && other.written && Resolve(instruction, other).Overlaps(place);
    };
    return std::none_of(launches.data(), &launch, [&](const EmittedLaunch& before) {
      return std::any_of(before.arguments.begin(), before.arguments.end(), writes_there);
    });
  }

  // Kinds whose launches never rely on what was in memory before, but for what an update in place leaves.
  static bool StoresWholeValues(const Instruction& instruction) {
    constexpr KernelKind kKinds[] = {KernelKind::kLoop, KernelKind::kReduction,   KernelKind::kRow,
                                     KernelKind::kDot,  KernelKind::kConvolution, KernelKind::kBlocks};
    return std::find(std::begin(kKinds), std::end(kKinds), passes::HeroOf(instruction).kind) != std::end(kKinds);
  }

  Slice Resolve(const Instruction& instruction, const ArgumentRef& argument) const {
    Slice slice;
    switch (argument.kind) {
      case ArgumentRef::Kind::kOperand: slice = OperandSlice(instruction, argument.number); break;
      case ArgumentRef::Kind::kResult: slice = ResultSlice(instruction, argument.number); break;
      case ArgumentRef::Kind::kScratch: slice = buffers_.ScratchOf(&instruction); break;
      case ArgumentRef::Kind::kComputed: break;
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
  passes::PassContext& context_;
  const EmitContext emit_;
  Plan plan_;
  KernelTable kernels_;
  std::unordered_map<std::string, std::vector<EmittedLaunch>> tiles_;  // by what they do (MeaningOf)
  std::unordered_map<const Instruction*, int32_t> tickets_;            // of collectives that were started
  std::vector<Guard> guards_;                          // of the branches and loops around what is appended
  std::unordered_set<const Instruction*> not_needed_;  // in bodies of loops that are counted
  CarriedSlices carried_;                              // of the loops so far
  OverwrittenArguments overwritten_;                   // of the entry's thunks
  int32_t arena_ = -1;
};

}  // namespace

Plan BuildPlan(const hlo::Module& module, const passes::BufferAssignment& buffers, passes::PassContext& context) {
  return PlanBuilder(module, buffers, context).Build();
}

}  // namespace hlorun::opencl
