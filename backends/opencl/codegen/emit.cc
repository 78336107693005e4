#include "backends/opencl/codegen/emit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/host_evaluation.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/region_emitter.h"
#include "backends/opencl/codegen/row_shape.h"
#include "backends/opencl/kernels/convolution.h"
#include "backends/opencl/kernels/dot.h"
#include "backends/opencl/kernels/library_product.h"
#include "hlo/error.h"
#include "passes/expand/uninitialized.h"
#include "passes/fusion/blocks.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/meaning.h"
#include "passes/fusion/side_by_side.h"
#include "passes/fusion/updated_part.h"
#include "passes/memory/region_layout.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using passes::Hero;
using passes::KernelKind;

Launches EmitReduction(const EmitRequest& request) {
  if (HasGroupReduction(request.instruction, *request.hero.instruction, request.context.device))
    return EmitGroupReduction(request);
  if (HasOrderedReduction(request.instruction, *request.hero.instruction, request.context.device))
    return EmitOrderedReduction(request);
  if (request.context.device.device_class == DeviceClass::kGpu) return EmitLoop(request);
  if (HasRows(request.instruction, *request.hero.instruction)) return EmitRows(request);
  return HasColumns(request.instruction, *request.hero.instruction) ? EmitColumns(request) : EmitLoop(request);
}

// Behind the copy of the array that is updated in part, where that stays as it was.
Launches BehindCopy(const EmitRequest& request, Launches launches) {
  const Instruction* update = passes::UpdateAtRoot(request.instruction);
  if (update == nullptr) return launches;
  Launches all = CopyUpdated(request, *update);
  all.insert(all.end(), std::make_move_iterator(launches.begin()), std::make_move_iterator(launches.end()));
  return all;
}

// Serial loops with vectors along the result, or along the part of it that is updated.
Launches EmitSums(const EmitRequest& request) {
  const Instruction* update = passes::UpdateAtRoot(request.instruction);
  if (update == nullptr) return EmitLoop(request);
  const Hero hero{KernelKind::kInPlace, update};
  return EmitInPlaceUpdate({request.instruction, hero, request.aliases, request.context});
}

// The fast kernels where they know the form, sums by loops where they do not.
Launches EmitProduct(const EmitRequest& request) {
  if (auto launches = EmitDot(request.instruction, request.aliases, request.context))
    return BehindCopy(request, std::move(*launches));
  return EmitSums(request);
}

Launches EmitWindows(const EmitRequest& request) {
  if (auto launches = EmitConvolution(request.instruction, request.aliases, request.context))
    return BehindCopy(request, std::move(*launches));
  return EmitSums(request);
}

Launches EmitElements(const EmitRequest& request) {
  return HasConcatenateRoot(request.instruction, request.context.device) ? EmitConcatenate(request) : EmitLoop(request);
}

Launches EmitCustom(const EmitRequest& request) {
  if (HasTopKKernel(request.instruction, request.context.device)) return EmitTopK(request);
  if (IsFft(request.instruction)) return EmitFft(request);
  if (passes::IsUninitialized(request.instruction)) return {};
  Fail(ErrorCode::kUnimplemented, "{}: no kernel for {}", request.instruction.name(),
       hlo::OpcodeName(request.instruction.opcode()));
}

Launches EmitSequentially(const EmitRequest& request) {
  return EmitRegion(request, OpenClKernelModel(request.context.device, request.context.options));
}

using Emitter = Launches (*)(const EmitRequest&);
const std::map<KernelKind, Emitter>& Emitters() {
  static const std::map<KernelKind, Emitter> kEmitters = {
      {KernelKind::kLoop, EmitElements},
      {KernelKind::kReduction, EmitReduction},
      {KernelKind::kRow, EmitReduction},
      {KernelKind::kDot, EmitProduct},
      {KernelKind::kConvolution, EmitWindows},
      {KernelKind::kInPlace, EmitInPlaceUpdate},
      {KernelKind::kReduceWindow, EmitReduceWindow},
      {KernelKind::kRegion, EmitSequentially},
      {KernelKind::kBlocks, EmitBlocks},
      {KernelKind::kTiles, EmitTiles},
      {KernelKind::kSideBySide, EmitSideBySide},
      {KernelKind::kScatter, EmitScatter},
      {KernelKind::kSelectAndScatter, EmitSelectAndScatter},
      {KernelKind::kSort, EmitSort},
      {KernelKind::kRng, EmitRngBitGenerator},
      {KernelKind::kCustom, EmitCustom},
  };
  return kEmitters;
}

bool HasEmptyResult(const Instruction& instruction) {
  bool empty = true;
  hlo::ForEachLeaf(instruction.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& leaf) {
    if (!leaf.IsArray() || leaf.ElementCount() > 0) empty = false;
  });
  return empty;
}

// `value` reaches every result that depends on it element by element: every use on the way keeps the linear index.
bool KeepsPlace(const Instruction& value) {
  std::vector<const Instruction*> work = {&value};
  std::unordered_set<const Instruction*> seen = {&value};
  while (!work.empty()) {
    const Instruction* at = work.back();
    work.pop_back();
    for (const Instruction* user : at->users()) {
      if (user->Is(Opcode::kTuple) || !seen.insert(user).second) continue;
      const bool same_place = user->Has(hlo::kElementwise) || user->Is(Opcode::kReshape) ||
                              user->Is(Opcode::kBitcast) || user->Is(Opcode::kClamp) || user->Is(Opcode::kConvert);
      if (!same_place || !user->shape().IsArray() || user->shape().ElementCount() != value.shape().ElementCount())
        return false;
      work.push_back(user);
    }
  }
  return true;
}

// Rows of a softmax or norm take the place of those that they are made of, when all of a row has been read that is not
// overwritten at once. Rows that end in part of a vector would end in scalars there, and what goes past the caches has
// a place of its own.
bool MayOverwriteRows(const Instruction& fusion, const Instruction& reduce, int64_t operand, const hlo::Shape& result,
                      const DeviceSpec& device) {
  constexpr int64_t kWholeVectors = 32;
  const Instruction& given = *fusion.called()->parameter(operand);
  const auto& inner = fusion.called()->instructions();
  // Those without lanes are computed where they are needed.
  if (std::any_of(inner.begin(), inner.end(), [](const auto& op) { return op->Is(Opcode::kReduce) && !HasLanes(*op); }))
    return false;
  const RowShape rows = RowShapeOf(reduce);
  return device.device_class == DeviceClass::kCpu && HasRows(fusion, reduce) && rows.length() % kWholeVectors == 0 &&
         result.ByteSize() <= device.l3_bytes && given.shape().dimensions() == rows.dimensions &&
         result.dimensions() == rows.dimensions && IsReadInItsRow(given, rows);
}

// The last step overwrites what it has just read, when the others are done with that block.
bool MayOverwriteBlocks(const Instruction& blocks, int64_t operand) {
  const Instruction& last = *blocks.called()->root();
  if (!last.Is(Opcode::kFusion) || !passes::ReadsByBlock(blocks, operand)) return false;
  for (int64_t i = 0; i < last.operand_count(); ++i) {
    const bool is_operand = passes::BehindBitcasts(last.operand(i)) == blocks.called()->parameter(operand);
    if (is_operand && !KeepsPlace(*last.called()->parameter(i))) return false;
  }
  return true;
}

}  // namespace

bool EmittedLaunch::Overwrites() const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].written && (overwritten.empty() || !overwritten[i])) return false;
  }
  return !overwritten.empty();
}

std::vector<EmittedLaunch> EmitInstruction(const Instruction& instruction, const AliasPattern& aliases,
                                           const EmitContext& context) {
  if (HasEmptyResult(instruction)) return {};
  const Hero hero = passes::HeroOf(instruction);
  const auto found = Emitters().find(hero.kind);
  if (found == Emitters().end()) {
    Fail(ErrorCode::kUnimplemented, "{}: no kernel for {}", instruction.name(), hlo::OpcodeName(instruction.opcode()));
  }
  std::vector<EmittedLaunch> launches = found->second(EmitRequest{instruction, hero, aliases, context});
  // A region whose loop passes on what it is given, in place, has nothing to do.
  std::erase_if(launches, [](const EmittedLaunch& launch) {
    return std::none_of(launch.arguments.begin(), launch.arguments.end(),
                        [](const ArgumentRef& argument) { return argument.written; });
  });
  return launches;
}

bool OpenClKernelModel::Supports(const Instruction& instruction) const {
  const Hero hero = passes::HeroOf(instruction);
  switch (hero.kind) {
    case KernelKind::kNone:
    case KernelKind::kCollective:
    case KernelKind::kHost:
    case KernelKind::kRegion:
    case KernelKind::kBlocks:
    case KernelKind::kTiles:
    case KernelKind::kSideBySide:
    case KernelKind::kSort:
    case KernelKind::kScatter:
    case KernelKind::kSelectAndScatter:
    case KernelKind::kRng: return true;
    case KernelKind::kCustom:
      return IsFft(instruction) || passes::IsUninitialized(instruction) || HasTopKKernel(instruction, device_);
    default: return CanInline(instruction);
  }
}

std::vector<int64_t> OpenClKernelModel::CopiedOperands(const Instruction& instruction) const {
  if (RunsAlone(instruction) || passes::HeroOf(instruction).kind != KernelKind::kDot) return {};
  return OperandsCopiedByDot(instruction, {device_, options_});
}

bool OpenClKernelModel::ComputesOperand(const Instruction& product, int64_t of_dot, const Instruction& made) const {
  return !RunsAlone(made) && MayComputeOperand(product, of_dot, made, {device_, options_});
}

int64_t OpenClKernelModel::RowsFinishedTogether(const Instruction& dot) const {
  return RunsAlone(dot) ? 0 : RowsFinishedByDot(dot, {device_, options_});
}

bool OpenClKernelModel::RunsAlone(const Instruction& instruction) const {
  return NeedsHostEvaluation(instruction, device_) || LibraryProductOf(instruction, device_, options_).has_value();
}

int64_t OpenClKernelModel::ScratchBytes(const Instruction& instruction) const {
  if (RunsAlone(instruction)) return 0;
  const Hero hero = passes::HeroOf(instruction);
  if (hero.kind == KernelKind::kRegion) return RegionScratchBytes(instruction, {device_, options_}, *this);
  if (hero.kind == KernelKind::kTiles) {
    const auto [known, added] = scratch_of_tiles_.try_emplace(passes::MeaningOf(instruction));
    if (added) known->second = TilesScratchBytes(instruction, {device_, options_});
    return known->second;
  }
  if (hero.kind == KernelKind::kReduceWindow) return CumulativeScratchBytes(instruction, hero, device_);
  if (hero.kind == KernelKind::kSort) return SortScratchBytes(*hero.instruction, device_);
  if (HasTopKKernel(instruction, device_)) return TopKScratchBytes(instruction, device_);
  if (hero.kind == KernelKind::kScatter) return ScatterScratchBytes(*hero.instruction, device_);
  if (hero.kind == KernelKind::kSelectAndScatter) return SelectAndScatterScratchBytes(instruction, *hero.instruction);
  if (hero.kind == KernelKind::kDot) return DotScratchBytes(instruction, {device_, options_});
  if (hero.kind == KernelKind::kConvolution) return ConvolutionScratchBytes(instruction, {device_, options_});
  if (hero.kind == KernelKind::kReduction || hero.kind == KernelKind::kRow) {
    if (HasGroupReduction(instruction, *hero.instruction, device_))
      return GroupReductionScratchBytes(instruction, *hero.instruction, device_);
    if (device_.device_class == DeviceClass::kGpu) return 0;
    if (HasRows(instruction, *hero.instruction)) return RowsScratchBytes(instruction, *hero.instruction);
    return HasColumns(instruction, *hero.instruction) ? ColumnsScratchBytes(instruction, *hero.instruction) : 0;
  }
  return 0;
}

bool OpenClKernelModel::RunsBesideOthers(const Instruction& instruction) const {
  // Scratch is for launches that need each other.
  return !RunsAlone(instruction) && ScratchBytes(instruction) == 0;
}

bool OpenClKernelModel::MayShareBuffer(const Instruction& instruction, int64_t operand, int64_t result_leaf) const {
  const Hero hero = passes::HeroOf(instruction);
  if (hero.kind == KernelKind::kRegion) {
    return passes::RegionAliases(instruction)[static_cast<size_t>(result_leaf)] == operand ||
           passes::MayOverwriteOperand(instruction, operand, result_leaf);
  }
  if (hero.kind == KernelKind::kSideBySide)
    return passes::MayShareBesideOthers(instruction, operand, result_leaf, *this);
  const hlo::Shape& from = instruction.operand(operand)->shape();
  const hlo::Shape to = hlo::FlattenShape(instruction.shape())[static_cast<size_t>(result_leaf)];
  if (!from.IsArray() || from.ElementCount() != to.ElementCount() || from.ByteSize() != to.ByteSize()) return false;
  // An array given twice is read through the other operand too.
  if (std::count(instruction.operands().begin(), instruction.operands().end(), instruction.operand(operand)) > 1 &&
      !instruction.Has(hlo::kElementwise)) {
    return false;
  }
  const bool is_fusion = instruction.Is(Opcode::kFusion);
  if (const Instruction* update = passes::UpdateAtRoot(instruction))
    return is_fusion ? passes::OnlyUpdatedPartIsRead(*instruction.called()->parameter(operand), *update) : operand == 0;
  switch (hero.kind) {
    case KernelKind::kHost: return passes::AliasesOperand(instruction, operand, result_leaf);
    case KernelKind::kLoop:
      if (!is_fusion)
        return IsElementwise(instruction) || instruction.Is(Opcode::kReshape) || instruction.Is(Opcode::kCopy);
      return KeepsPlace(*instruction.called()->parameter(operand));
    case KernelKind::kRow: return is_fusion && MayOverwriteRows(instruction, *hero.instruction, operand, to, device_);
    case KernelKind::kBlocks: return MayOverwriteBlocks(instruction, operand);
    case KernelKind::kDot:
    case KernelKind::kConvolution:
    case KernelKind::kReduceWindow:  // an addend of the epilogue, never what is multiplied or what windows read
      return is_fusion && KeepsPlace(*instruction.called()->parameter(operand));
    case KernelKind::kScatter: return !is_fusion && operand < instruction.operand_count() / 2 && operand == result_leaf;
    default: return false;
  }
}

bool OpenClKernelModel::BoundsContraction(const Instruction& instruction) const {
  const Hero hero = passes::HeroOf(instruction);
  if (hero.kind == KernelKind::kReduceWindow) return HasCumulativeKernel(instruction, hero);
  return device_.device_class == DeviceClass::kCpu && HasProductKernel(instruction);
}

bool OpenClKernelModel::SumsOverWindow(const Instruction& convolution) const {
  return HasWeightGradientKernel(convolution, device_);
}

bool OpenClKernelModel::HasFftKernel(hlo::ElementType type, int64_t points, int64_t columns) const {
  return HasFftKernelFor(type, points, columns, device_);
}

int64_t OpenClKernelModel::GroupsTogether(const Instruction& convolution) const {
  return FeatureGroupsTogether(convolution, device_);
}

int64_t OpenClKernelModel::FeaturesToAdd(const Instruction& convolution) const {
  return FeaturesToFillVectors(convolution, device_);
}

int64_t OpenClKernelModel::CopiesOfChannels(const Instruction& convolution) const {
  return ChannelCopies(convolution, device_);
}

}  // namespace hlorun::opencl
