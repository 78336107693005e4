#include "passes/fusion/hero.h"

#include <array>
#include <unordered_map>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Entry {
  Opcode opcode;
  KernelKind kind;
};

// Opcodes whose kind does not follow from their traits.
constexpr std::array kKinds = {
    Entry{Opcode::kParameter, KernelKind::kNone},
    Entry{Opcode::kAsyncStart, KernelKind::kCollective},
    Entry{Opcode::kAsyncDone, KernelKind::kCollective},
    Entry{Opcode::kConstant, KernelKind::kNone},
    Entry{Opcode::kPartitionId, KernelKind::kNone},
    Entry{Opcode::kReplicaId, KernelKind::kNone},
    Entry{Opcode::kBroadcast, KernelKind::kLoop},
    Entry{Opcode::kReduce, KernelKind::kReduction},
    Entry{Opcode::kDot, KernelKind::kDot},
    Entry{Opcode::kConvolution, KernelKind::kConvolution},
    Entry{Opcode::kDynamicUpdateSlice, KernelKind::kInPlace},
    Entry{Opcode::kScatter, KernelKind::kScatter},
    Entry{Opcode::kSort, KernelKind::kSort},
    Entry{Opcode::kReduceWindow, KernelKind::kReduceWindow},
    Entry{Opcode::kSelectAndScatter, KernelKind::kSelectAndScatter},
    Entry{Opcode::kRngBitGenerator, KernelKind::kRng},
    Entry{Opcode::kInfeed, KernelKind::kHost},
    Entry{Opcode::kOutfeed, KernelKind::kHost},
    Entry{Opcode::kSend, KernelKind::kHost},
    Entry{Opcode::kSendDone, KernelKind::kHost},
    Entry{Opcode::kRecv, KernelKind::kHost},
    Entry{Opcode::kRecvDone, KernelKind::kHost},
    Entry{Opcode::kClamp, KernelKind::kLoop},
    Entry{Opcode::kIota, KernelKind::kLoop},
    Entry{Opcode::kMap, KernelKind::kLoop},
    Entry{Opcode::kBitcastConvert, KernelKind::kLoop},
    Entry{Opcode::kGetDimensionSize, KernelKind::kLoop},
};

KernelKind KindOf(const Instruction& instruction) {
  for (const Entry& entry : kKinds) {
    if (entry.opcode == instruction.opcode()) return entry.kind;
  }
  if (instruction.Is(Opcode::kCustomCall)) {
    return instruction.As<hlo::attr::CustomCall>().target.starts_with("hlorun.") ? KernelKind::kCustom
                                                                                 : KernelKind::kHost;
  }
  if (instruction.Has(hlo::kTransparent) || instruction.Has(hlo::kControl)) return KernelKind::kNone;
  if (instruction.Has(hlo::kCollective)) return KernelKind::kCollective;
  if (instruction.Has(hlo::kElementwise) || instruction.Has(hlo::kDataMovement)) return KernelKind::kLoop;
  return KernelKind::kCustom;
}

// Kernels that do more than one thing to an element of a reduced operand's shape: a reduce that reads another one's
// result, or a result of the operand's shape beside the reduce.
bool IsRow(const hlo::Computation& computation, const Instruction* reduce) {
  std::unordered_map<const Instruction*, bool> after_reduce;
  for (const Instruction* instruction : computation.PostOrder()) {
    bool& after = after_reduce[instruction];
    for (const Instruction* operand : instruction->operands()) {
      after |= after_reduce[operand] || operand->Is(Opcode::kReduce);
    }
    if (instruction->Is(Opcode::kReduce) && after) return true;
  }
  const auto is_wide = [&](const Instruction* root) {
    return root->shape().IsArray() && root->shape().SameDimensions(reduce->operand(0)->shape()) &&
           !root->shape().SameDimensions(hlo::FlattenShape(reduce->shape())[0]);
  };
  const Instruction* root = computation.root();
  if (!root->Is(Opcode::kTuple)) return is_wide(root);
  for (const Instruction* element : root->operands()) {
    if (is_wide(element)) return true;
  }
  return false;
}

Hero HeroOfFusion(const hlo::Computation& computation) {
  const Instruction* root = computation.root();
  const Instruction* reduce = nullptr;
  for (const auto& owned : computation.instructions()) {
    const Instruction* instruction = owned.get();
    const KernelKind kind = KindOf(*instruction);
    switch (kind) {
      case KernelKind::kNone:
      case KernelKind::kLoop: break;
      case KernelKind::kReduction:
        if (reduce == nullptr) reduce = instruction;
        break;
      case KernelKind::kInPlace:  // elsewhere than at the root it is computed like any index op
        if (instruction == root) return {kind, instruction};
        break;
      default: return {kind, instruction};
    }
  }
  if (reduce == nullptr) return {KernelKind::kLoop, root};
  return {IsRow(computation, reduce) ? KernelKind::kRow : KernelKind::kReduction, reduce};
}

}  // namespace

Hero HeroOf(const Instruction& instruction) {
  if (instruction.backend_config == kRegionConfig) return {KernelKind::kRegion, &instruction};
  if (instruction.backend_config == kBlocksConfig) return {KernelKind::kBlocks, &instruction};
  if (instruction.backend_config.starts_with(kTilesConfig)) return {KernelKind::kTiles, &instruction};
  if (instruction.backend_config == kSideBySideConfig) return {KernelKind::kSideBySide, &instruction};
  if (instruction.Is(Opcode::kFusion)) return HeroOfFusion(*instruction.called());
  const KernelKind kind = KindOf(instruction);
  return {kind, kind == KernelKind::kNone ? nullptr : &instruction};
}

}  // namespace hlorun::passes
