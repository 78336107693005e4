// Tiles: one kernel that does, for one tile after another, what kernels of the tile's program do, each of them by one
// work-group. What lies between them is in scratch of the work-group's own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "backends/opencl/codegen/alias_pattern.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/joined_launch.h"
#include "backends/opencl/codegen/opencl_c.h"
#include "backends/opencl/codegen/schedule.h"
#include "backends/opencl/codegen/scratch.h"
#include "hlo/error.h"
#include "passes/fusion/blocks.h"
#include "passes/fusion/tiles.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using passes::Allocation;
using passes::KernelKind;

// Runs of tiles, each a work-group's, that a unit gets: enough to even out what cores that start apart cannot share.
// Of so many tiles each at least where units have several: each run has memory of its own for a tile.
constexpr int64_t kRunsOfUnit = 4, kFewestTilesOfRun = 4;

DeviceSpec OneUnit(DeviceSpec device) {
  device.compute_units = 1;
  return device;
}

// Operands that stay the same along the innermost loop are copied once for all of its trips. What was measured for
// products was measured for whole ones.
CompileOptions OptionsOfTile(CompileOptions options, const passes::TileProgram& program) {
  options.memory_limit = 0;
  options.dot_library = DotLibrary::kOwn;
  options.tuned = nullptr;
  options.constant_parameters.clear();
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const std::vector<int64_t>& steps = program.parameters[i].steps;
    if (!steps.empty() && steps.back() == 0) options.constant_parameters.push_back(static_cast<int64_t>(i));
  }
  return options;
}

// Where an argument of a launch for one tile lies.
struct Place {
  enum class Kind : uint8_t { kOperand, kResult, kSlot };
  Kind kind = Kind::kSlot;
  int64_t number = 0;          // of the operand or result leaf
  int64_t offset = 0;          // bytes, of the first tile
  std::vector<int64_t> steps;  // bytes, by loop over tiles
};

struct Step {
  EmittedLaunch launch;
  std::vector<Place> places;  // by argument
  bool is_once = false;       // for all trips of the innermost loop
};

// The model of kernels whose scratch lies in the arena.
class OthersScratch : public OpenClKernelModel {
 public:
  OthersScratch(const DeviceSpec& device, const CompileOptions& options,
                const std::unordered_set<const Instruction*>& keeping)
      : OpenClKernelModel(device, options), keeping_(keeping) {}
  int64_t ScratchBytes(const Instruction& instruction) const override {
    return keeping_.contains(&instruction) ? 0 : OpenClKernelModel::ScratchBytes(instruction);
  }

 private:
  const std::unordered_set<const Instruction*>& keeping_;
};

class TileSteps {
 public:
  TileSteps(const Instruction& tiles, const EmitContext& context)
      : program_(passes::TileProgramOf(tiles)),
        device_(OneUnit(context.device)),
        options_(OptionsOfTile(context.options, program_)),
        kernels_(device_, options_) {
    passes::PassContext pass_context{device_, options_, kernels_, {}};
    passes::FuseTile(*program_.module, pass_context);
    for (const auto& instruction : program_.module->entry()->instructions()) {
      if (KeepsScratch(*instruction)) keeping_.insert(instruction.get());
    }
    const OthersScratch others(device_, options_, keeping_);
    passes::PassContext memory_context{device_, options_, others, {}};
    buffers_ = passes::AssignBuffers(*program_.module, memory_context);
    const auto& allocations = buffers_.allocations();
    const auto arena = std::find_if(allocations.begin(), allocations.end(), [](const Allocation& allocation) {
      return allocation.kind == Allocation::Kind::kArena;
    });
    arena_ = static_cast<int32_t>(arena - allocations.begin());
    slot_bytes_ = AlignScratch(arena->bytes);
    for (const auto& instruction : program_.module->entry()->instructions()) Add(*instruction);
  }

  const passes::TileProgram& program() const { return program_; }
  const std::vector<Step>& steps() const { return steps_; }
  // What a work-group has of scratch.
  int64_t slot_bytes() const { return slot_bytes_; }
  int64_t tiles() const {
    int64_t tiles = 1;
    for (const int64_t trips : program_.trips) tiles *= trips;
    return tiles;
  }

 private:
  void Add(const Instruction& instruction) {
    if (passes::HeroOf(instruction).kind == KernelKind::kNone) return;
    if (instruction.Is(hlo::Opcode::kCopy) &&
        buffers_.SliceOf(&instruction) == buffers_.SliceOf(instruction.operand(0)))
      return;
    std::vector<EmittedLaunch> launches =
        EmitInstruction(instruction, AliasesOf(instruction, buffers_), {device_, options_});
    passes::Slice scratch = buffers_.ScratchOf(&instruction);
    if (keeping_.contains(&instruction)) {
      scratch = {arena_, slot_bytes_, kernels_.ScratchBytes(instruction)};
      slot_bytes_ += AlignScratch(scratch.bytes);
    }
    for (EmittedLaunch& launch : launches) {
      HLORUN_CHECK(MayJoin(launch) && launch.grid.local == (std::array<int64_t, 3>{1, 1, 1}));
      Step step;
      step.is_once = keeping_.contains(&instruction) && IsOnce(instruction, launch);
      for (const ArgumentRef& argument : launch.arguments)
        step.places.push_back(PlaceOf(instruction, argument, scratch));
      step.launch = std::move(launch);
      steps_.push_back(std::move(step));
    }
  }

  // Whether all that a launch reads is the same along the innermost loop, and it writes to scratch.
  bool IsOnce(const Instruction& instruction, const EmittedLaunch& launch) const {
    return launch.role == StepRole::kPacking &&
           std::all_of(launch.arguments.begin(), launch.arguments.end(), [&](const ArgumentRef& argument) {
             if (argument.kind == ArgumentRef::Kind::kScratch) return argument.written;
             return argument.kind == ArgumentRef::Kind::kOperand &&
                    IsSameAlongRows(*instruction.operand(argument.number));
           });
  }
  bool IsSameAlongRows(const Instruction& operand) const {
    const Instruction* value = passes::BehindBitcasts(&operand);
    const auto& constant = options_.constant_parameters;
    return value->Is(hlo::Opcode::kParameter) &&
           std::find(constant.begin(), constant.end(), value->parameter_number()) != constant.end();
  }
  // Whether its launches leave something there for later tiles: it lies apart from what those overwrite.
  bool KeepsScratch(const Instruction& instruction) const {
    if (passes::HeroOf(instruction).kind != KernelKind::kDot) return false;
    const AliasPattern none(static_cast<size_t>(hlo::LeafCount(instruction.shape())), -1);
    const Launches launches = EmitInstruction(instruction, none, {device_, options_});
    return std::any_of(launches.begin(), launches.end(),
                       [&](const EmittedLaunch& launch) { return IsOnce(instruction, launch); });
  }

  Place PlaceOf(const Instruction& instruction, const ArgumentRef& argument, const passes::Slice& scratch) const {
    const bool is_scratch = argument.kind == ArgumentRef::Kind::kScratch,
               is_operand = argument.kind == ArgumentRef::Kind::kOperand;
    const passes::Slice& slice = is_scratch   ? scratch
                                 : is_operand ? buffers_.SliceOf(instruction.operand(argument.number))
                                              : buffers_.SliceOf(&instruction, argument.number);
    HLORUN_CHECK(slice.allocation >= 0);
    const Allocation& allocation = buffers_.allocations()[static_cast<size_t>(slice.allocation)];
    const int64_t offset = slice.offset + argument.offset;
    if (slice.allocation == arena_) return {Place::Kind::kSlot, 0, offset, {}};
    HLORUN_CHECK(allocation.kind != Allocation::Kind::kConstant);
    const bool is_result = allocation.kind == Allocation::Kind::kResult;
    const passes::TileArray& array =
        (is_result ? program_.results : program_.parameters)[static_cast<size_t>(allocation.index)];
    Place place{is_result ? Place::Kind::kResult : Place::Kind::kOperand, array.number, offset, array.steps};
    const int64_t element = hlo::BytesOf(ElementTypeOf(allocation, is_result));
    for (int64_t& step : place.steps) step *= element;
    return place;
  }
  hlo::ElementType ElementTypeOf(const Allocation& allocation, bool is_result) const {
    const hlo::Computation& entry = *program_.module->entry();
    if (!is_result) return entry.parameter(allocation.index)->shape().element_type();
    return hlo::FlattenShape(entry.root()->shape())[static_cast<size_t>(allocation.index)].element_type();
  }

  const passes::TileProgram program_;
  const DeviceSpec device_;
  const CompileOptions options_;
  const OpenClKernelModel kernels_;
  std::unordered_set<const Instruction*> keeping_;
  passes::BufferAssignment buffers_;
  std::vector<Step> steps_;
  int32_t arena_ = -1;
  int64_t slot_bytes_ = 0;
};

// Those of large tiles are as many as units: more would not stay in the last cache, which units share.
int64_t RunsOf(const TileSteps& steps, const DeviceSpec& device) {
  const int64_t units = device.compute_units, of_unit = steps.slot_bytes() > 4 * device.l2_bytes ? 1 : kRunsOfUnit;
  return std::min(steps.tiles(), std::clamp(steps.tiles() / kFewestTilesOfRun, units, of_unit * units));
}

// The steps as one kernel.
class TilesKernel {
 public:
  TilesKernel(const TileSteps& steps, const DeviceSpec& device)
      : steps_(steps), device_(device), runs_(RunsOf(steps, device)) {}

  EmittedLaunch Finish() {
    std::string once, each;
    for (const Step& step : steps_.steps()) (step.is_once ? once : each) += TextOf(step);
    EmittedLaunch launch;
    launch.grid = {{runs_, 1, 1}, {1, 1, 1}};
    launch.source = helpers_ + KernelText(once, each);
    launch.kernel_ir = std::move(kernel_ir_);
    launch.arguments = std::move(arguments_);
    return launch;
  }

 private:
  std::string TextOf(const Step& step) {
    const ir::Function& function = step.launch.kernel->function;
    const OpenClBody body = ToOpenClBody(function, 4, device_);
    HLORUN_CHECK(body.local_arrays.empty());
    helpers_ += body.helpers;
    kernel_ir_ += fmt::format("{}{}", step.is_once ? "once for all rows:\n" : "", step.launch.kernel_ir);
    std::string pointers;
    for (size_t i = 0; i < step.places.size(); ++i) {
      const ir::Buffer& array = *function.parameters[i];
      pointers += fmt::format("      {0} {1} = ({0})({2});\n", PointerTo(array), array.name, AddressOf(step.places[i]));
    }
    const int64_t groups = step.launch.grid.groups[0];
    return fmt::format("    {{\n{}      for (int {} = 0; {} < {}; ++{}) {{\n{}      }}\n    }}\n", pointers, kGroup,
                       kGroup, groups, kGroup, body.text);
  }

  std::string AddressOf(const Place& place) {
    std::string address = place.kind == Place::Kind::kSlot ? "hl_slot" : NameOf(place);
    if (place.offset != 0) address += fmt::format(" + {}", place.offset);
    for (size_t loop = 0; loop < place.steps.size(); ++loop) {
      if (place.steps[loop] != 0) address += fmt::format(" + hl_tile{} * {}", loop, place.steps[loop]);
    }
    return address;
  }

  std::string NameOf(const Place& place) {
    const bool is_result = place.kind == Place::Kind::kResult;
    const auto [known, added] = number_of_.try_emplace({is_result, place.number}, arguments_.size());
    if (added) {
      const auto kind = is_result ? ArgumentRef::Kind::kResult : ArgumentRef::Kind::kOperand;
      arguments_.push_back({.kind = kind, .number = place.number, .written = is_result});
    }
    return fmt::format("hl_argument{}", known->second);
  }

  std::string KernelText(const std::string& once, const std::string& each) {
    std::string parameters;
    for (size_t i = 0; i < arguments_.size(); ++i)
      parameters += fmt::format("__global {}char* hl_argument{}, ", arguments_[i].written ? "" : "const ", i);
    arguments_.push_back({.kind = ArgumentRef::Kind::kScratch, .written = true});
    std::string numbers;
    int64_t inner = steps_.tiles();
    const std::vector<int64_t>& trips = steps_.program().trips;
    for (size_t loop = 0; loop < trips.size(); ++loop) {
      inner /= trips[loop];
      numbers += fmt::format("    const long hl_tile{} = hl_tile / {} % {};\n", loop, inner, trips[loop]);
    }
    const std::string first_of_rows =
        once.empty()
            ? ""
            : fmt::format("    if (hl_tile == hl_first || hl_tile{} == 0) {{\n{}    }}\n", trips.size() - 1, once);
    return fmt::format(
        "__kernel __attribute__((reqd_work_group_size(1, 1, 1))){}\nvoid {}({}__global char* hl_scratch) {{\n"
        "  const long hl_run = get_group_id(0);\n  const int {} = 0;\n"
        "  __global char* const hl_slot = hl_scratch + hl_run * {};\n"
        "  const long hl_first = hl_run * {} / {}, hl_end = (hl_run + 1) * {} / {};\n"
        "  for (long hl_tile = hl_first; hl_tile < hl_end; ++hl_tile) {{\n{}{}{}  }}\n}}\n",
        WidthAttribute(device_), kKernelName, parameters, kLane, steps_.slot_bytes(), steps_.tiles(), runs_,
        steps_.tiles(), runs_, numbers, first_of_rows, each);
  }

  const TileSteps& steps_;
  const DeviceSpec& device_;
  const int64_t runs_;
  std::string helpers_, kernel_ir_;
  std::vector<ArgumentRef> arguments_;
  std::map<std::pair<bool, int64_t>, size_t> number_of_;  // of an operand, or result: of the argument
};

}  // namespace

Launches EmitTiles(const EmitRequest& request) {
  const TileSteps steps(request.instruction, request.context);
  Launches launches;
  launches.push_back(TilesKernel(steps, request.context.device).Finish());
  return launches;
}

int64_t TilesScratchBytes(const Instruction& tiles, const EmitContext& context) {
  const TileSteps steps(tiles, context);
  return RunsOf(steps, context.device) * steps.slot_bytes();
}

}  // namespace hlorun::opencl
