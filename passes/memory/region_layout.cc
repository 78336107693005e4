#include "passes/memory/region_layout.h"

#include <algorithm>

#include "hlo/error.h"
#include "passes/copy_computation.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/updated_part.h"
#include "passes/memory/colocation.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/flatten_control.h"
#include "passes/memory/offsets.h"
#include "passes/memory/schedule.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Smaller arrays are copied inside of the kernel: cheaper than a launch that would have to do it before.
constexpr int64_t kAliasedBytes = 16 << 10;
// Private arrays lie on the stack of the thread that runs the work-item; those of a few elements become registers.
constexpr int64_t kPrivateBytes = 2 << 10, kAllPrivateBytes = 16 << 10;

// A region's values have one element type a place, since its private arrays are typed.
class SameTypeModel : public KernelModel {
 public:
  explicit SameTypeModel(const KernelModel& kernels) : kernels_(kernels) {}
  bool Supports(const Instruction& instruction) const override { return kernels_.Supports(instruction); }
  int64_t ScratchBytes(const Instruction&) const override { return 0; }
  bool MayShareBuffer(const Instruction& instruction, int64_t operand, int64_t leaf) const override {
    const hlo::Shape result = hlo::FlattenShape(instruction.shape())[static_cast<size_t>(leaf)];
    return instruction.operand(operand)->shape().element_type() == result.element_type() &&
           MayShareInRegion(kernels_, instruction, operand, leaf);
  }

 private:
  const KernelModel& kernels_;
};

// The parameter whose array, changed in part, `value` is; null for none.
const Instruction* OriginOf(const Instruction* value) {
  while (true) {
    switch (value->opcode()) {
      case Opcode::kParameter: return value;
      case Opcode::kBitcast:
      case Opcode::kScatter:
      case Opcode::kDynamicUpdateSlice: value = value->operand(0); break;
      case Opcode::kFusion:
        value = UpdatedOperand(*value);
        if (value == nullptr) return nullptr;
        break;
      case Opcode::kGetTupleElement: {
        const Instruction* loop = value->operand(0);
        if (!loop->Is(Opcode::kWhile) || !loop->operand(0)->Is(Opcode::kTuple)) return nullptr;
        value = loop->operand(0)->operand(value->tuple_index());
        break;
      }
      default: return nullptr;
    }
  }
}

std::unique_ptr<hlo::Module> ModuleOf(const Instruction& region) {
  auto module = std::make_unique<hlo::Module>("region");
  hlo::ComputationMap computations;
  module->set_entry(CopyComputation(*region.called(), *module, computations));
  return module;
}

}  // namespace

std::vector<int64_t> RegionAliases(const Instruction& region) {
  const Instruction* root = region.called()->root();
  std::vector<int64_t> aliases;
  int64_t leaf = 0;
  hlo::ForEachLeaf(region.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    const Instruction* origin = OriginOf(root->Is(Opcode::kTuple) ? root->operand(leaf) : root);
    ++leaf;
    const int64_t number = origin == nullptr ? -1 : origin->parameter_number();
    const bool taken = std::find(aliases.begin(), aliases.end(), number) != aliases.end();
    const bool fits = origin != nullptr && !taken && origin->shape().element_type() == shape.element_type() &&
                      origin->shape().ByteSize() == shape.ByteSize() && shape.ByteSize() >= kAliasedBytes;
    aliases.push_back(fits ? number : -1);
  });
  return aliases;
}

bool MayShareInRegion(const KernelModel& kernels, const Instruction& kernel, int64_t operand, int64_t leaf) {
  return HeroOf(kernel).kind != KernelKind::kRow && kernels.MayShareBuffer(kernel, operand, leaf);
}

bool MayOverwriteOperand(const Instruction& region, int64_t operand, int64_t leaf) {
  const std::vector<hlo::Shape> leaves = hlo::FlattenShape(region.shape());
  const hlo::Shape& result = leaves[static_cast<size_t>(leaf)];
  const Instruction* given = region.operand(operand);
  if (!given->shape().IsArray() || given->shape().element_type() != result.element_type()) return false;
  if (given->shape().ByteSize() != result.ByteSize() || result.ByteSize() > kPrivateBytes) return false;
  // All of them may wait at once.
  int64_t waiting = 0;
  for (const hlo::Shape& shape : leaves) waiting += shape.ByteSize() <= kPrivateBytes ? shape.ByteSize() : 0;
  return waiting <= kAllPrivateBytes;
}

struct RegionLayout::Analyses {
  Analyses(const hlo::Module& module, const KernelModel& base)
      : kernels(base), dataflow(module), live(module, dataflow), sets(module, dataflow, live, kernels) {}
  const SameTypeModel kernels;
  const Dataflow dataflow;
  const LiveRanges live;
  Colocation sets;
};

RegionLayout::RegionLayout(const Instruction& region, const DeviceSpec& device, const CompileOptions& options,
                           const KernelModel& kernels)
    : module_(ModuleOf(region)) {
  const std::vector<int64_t> aliases = RegionAliases(region);
  for (size_t leaf = 0; leaf < aliases.size(); ++leaf) {
    if (aliases[leaf] < 0) continue;
    hlo::ShapeIndex output;
    if (region.shape().IsTuple()) output.push_back(static_cast<int64_t>(leaf));
    module_->input_output_alias.push_back({output, aliases[leaf], {}, false});
  }
  const SameTypeModel model(kernels);
  PassContext context{device, options, model, {}};
  FlattenControl().Run(*module_, context);
  Schedule().Run(*module_, context);
  CopyInsertion().Run(*module_, context);
  analyses_ = std::make_unique<Analyses>(*module_, kernels);
  const Dataflow& dataflow = analyses_->dataflow;
  Colocation& sets = analyses_->sets;
  HLORUN_CHECK(JoinFlows(*module_, dataflow, sets).empty());
  ShareInPlace(dataflow, analyses_->live, analyses_->kernels, sets);

  std::vector<Block> blocks;
  std::vector<ValueId> in_scratch;
  int64_t private_bytes = 0;
  places_.resize(dataflow.values().size());
  for (ValueId value = 0; value < static_cast<ValueId>(places_.size()); ++value) {
    if (sets.Find(value) != value) continue;
    const Colocation::Set& set = sets.SetOf(value);
    RegionPlace& place = places_[static_cast<size_t>(value)];
    place.index = set.home.index;
    place.bytes = set.bytes;
    switch (set.home.kind) {
      case Home::Kind::kArgument: place.kind = RegionPlace::Kind::kOperand; break;
      case Home::Kind::kResult: place.kind = RegionPlace::Kind::kResult; break;
      case Home::Kind::kConstant:
        place.kind = RegionPlace::Kind::kConstant;
        place.constant = dataflow.value(static_cast<ValueId>(set.home.index)).instruction;
        break;
      case Home::Kind::kAnywhere:
        place.index = value;
        if (set.bytes <= kPrivateBytes && private_bytes + set.bytes <= kAllPrivateBytes) {
          place.kind = RegionPlace::Kind::kPrivate;
          private_bytes += set.bytes;
        } else {
          place.kind = RegionPlace::Kind::kScratch;
          blocks.push_back({set.bytes, set.Lives()});
          in_scratch.push_back(value);
        }
        break;
    }
  }
  const Packing packing = PackBlocks(blocks, {}, 64);
  for (size_t b = 0; b < blocks.size(); ++b)
    places_[static_cast<size_t>(in_scratch[b])].offset = packing.placements[b].offset;
  scratch_bytes_ = packing.arena_bytes;
}

RegionLayout::~RegionLayout() = default;

RegionPlace RegionLayout::PlaceOf(const Instruction* instruction, int64_t leaf) const {
  const ValueId value = analyses_->dataflow.ValuesOf(instruction)[static_cast<size_t>(leaf)];
  if (value == kNoValue) return {};
  return places_[static_cast<size_t>(analyses_->sets.Find(value))];
}

}  // namespace hlorun::passes
