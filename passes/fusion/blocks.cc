#include "passes/fusion/blocks.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/dynamic/signature.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/outline_region.h"
#include "passes/kernel_model.h"
#include "passes/memory/operand_cut.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Members = std::vector<Instruction*>;

// A block's small arrays are private to the thread that runs it.
constexpr int64_t kMostNarrowBytes = 16 << 10, kMostPrivateBytes = 64 << 10;
// Of one kernel, which still compiles fast and has fewer parameters than any device's limit.
constexpr size_t kMostMembers = 24, kMostReads = 32;
// How much is looked at to see whether one instruction depends on others; more than that counts as yes.
constexpr size_t kMostAncestors = 2000;
// A block of more second caches than this would mostly come from the last one, which two cores read little faster than
// memory (docs/performance.md).
constexpr int64_t kMostOfCache = 2;
// Instructions that are numbered again after one kernel was made of several: modules with very many of both keep the
// rest as it is.
constexpr size_t kMostNumbered = size_t{1} << 24;
// Fewer blocks are shared out evenly or not at all. Whatever the device has: sums of a block are in another order than
// those of kernels of their own, and results must not depend on how many compute units there are. A block takes less
// than a millisecond, which bounds what is lost where most units have none.
constexpr int64_t kFewestUneven = 8, kEven = 2;
// Below this a core reads a block from its first cache whoever did so before.
constexpr int64_t kSmallestBlockBytes = 32 << 10;

int64_t BytesOfBlock(const hlo::Shape& shape) { return shape.ByteSize() / std::max<int64_t>(1, shape.dimension(0)); }

// What a block of an instruction's result needs of its operands: 0 the same block, else more. Empty where something in
// it has no rule, or the result has no blocks.
std::vector<int64_t> BlocksNeeded(const Instruction& instruction) {
  if (!instruction.shape().IsArray() || instruction.shape().rank() == 0) return {};
  if (!instruction.Is(Opcode::kFusion)) return OperandCuts(instruction, 0, 0).value_or(std::vector<int64_t>{});
  const Instruction* root = instruction.called()->root();
  std::unordered_map<const Instruction*, int64_t> needed = {{root, 0}};
  std::vector<const Instruction*> work = {root};
  while (!work.empty()) {
    const Instruction* value = work.back();
    work.pop_back();
    if (value->Is(Opcode::kParameter)) continue;
    if (!value->shape().IsArray()) return {};
    const std::optional<std::vector<int64_t>> cuts = OperandCuts(*value, 0, needed.at(value));
    if (!cuts) return {};
    for (size_t i = 0; i < cuts->size(); ++i) {
      const Instruction* operand = value->operand(static_cast<int64_t>(i));
      const auto [at, is_new] = needed.try_emplace(operand, (*cuts)[i]);
      if (at->second != (*cuts)[i]) return {};
      if (is_new) work.push_back(operand);
    }
  }
  std::vector<int64_t> blocks;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const auto found = needed.find(instruction.called()->parameter(i));
    blocks.push_back(found == needed.end() ? 0 : found->second);
  }
  return blocks;
}

class BlockFinder {
 public:
  BlockFinder(Computation& computation, const PassContext& context) : computation_(computation), context_(context) {}

  // One after another: what has become one instruction is seen as one by those behind it.
  bool Run() {
    Members seeds;
    for (Instruction* instruction : Number()) {
      if (IsSeed(*instruction)) seeds.push_back(instruction);
    }
    std::unordered_set<const Instruction*> gone;
    size_t numbered = 0;
    for (Instruction* seed : seeds) {
      if (gone.contains(seed)) continue;
      const Members members = Grow(seed);
      if (members.empty()) continue;
      gone.insert(members.begin(), members.end());
      OutlineRegion(computation_, members, kBlocksConfig);
      numbered += Number().size();
      if (numbered > kMostNumbered) break;
    }
    if (!gone.empty()) computation_.SetOrder(computation_.PostOrder());
    return !gone.empty();
  }

 private:
  // Instructions in an order in which they can run, whose numbers are their positions.
  Members Number() {
    Members order = computation_.PostOrder();
    position_.clear();
    for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    return order;
  }

  bool MayRun(const Instruction& kernel) const {
    if (context_.kernels.RunsAlone(kernel) || kernel.HasSideEffect() || !kernel.control_predecessors().empty() ||
        !kernel.control_successors().empty()) {
      return false;
    }
    return kernel.shape().IsArray() && kernel.shape().IsStatic() && kernel.shape().rank() > 0 &&
           !hlo::IsComplex(kernel.shape().element_type()) && context_.kernels.Supports(kernel);
  }

  bool IsSeed(const Instruction& kernel) const {
    const Instruction* reduce = ColumnReduceOf(kernel);
    if (reduce == nullptr || !MayRun(kernel)) return false;
    const hlo::Shape& x = reduce->operand(0)->shape();
    const int64_t blocks = x.dimension(0), bytes = BytesOfBlock(x);
    const int64_t cache = context_.device.l2_bytes;
    return (blocks % kEven == 0 || blocks >= kFewestUneven) && bytes >= kSmallestBlockBytes &&
           bytes <= kMostOfCache * cache && bytes * blocks > cache && kernel.shape().dimension(0) == blocks;
  }

  // The kernels that belong to one with `seed`, operands before users; empty where that is not worth it.
  Members Grow(Instruction* seed) {
    const hlo::Shape& x = ColumnReduceOf(*seed)->operand(0)->shape();
    blocks_ = x.dimension(0);
    elements_ = x.ElementCount();
    large_.clear();
    for (const Instruction* operand : seed->operands()) {
      if (operand->shape().IsArray() && operand->shape().ElementCount() == elements_)
        large_.insert(BehindBitcasts(operand));
    }
    inside_ = {seed};
    seed_position_ = position_.at(seed);
    Members members = {seed};
    std::set<std::pair<size_t, Instruction*>> frontier;
    const auto look_at_users = [&](const Instruction* value) {
      for (Instruction* user : value->users()) frontier.insert({position_.at(user), user});
    };
    look_at_users(seed);
    while (!frontier.empty() && members.size() < kMostMembers) {
      Instruction* next = frontier.begin()->second;
      frontier.erase(frontier.begin());
      if (inside_.contains(next) || !Joins(*next)) continue;
      inside_.insert(next);
      members.push_back(next);
      look_at_users(next);
    }
    Trim(members);
    return IsWorthwhile(members) ? members : Members{};
  }

  bool IsWide(const Instruction& kernel) const {
    return !kernel.Is(Opcode::kBitcast) &&
           (kernel.shape().ElementCount() == elements_ || ColumnsOfLarge(kernel) != nullptr);
  }
  const Instruction* ColumnsOfLarge(const Instruction& kernel) const {
    const Instruction* reduce = ColumnReduceOf(kernel);
    return reduce != nullptr && reduce->operand(0)->shape().ElementCount() == elements_ ? reduce : nullptr;
  }

  bool Joins(const Instruction& next) const {
    if (!next.shape().IsArray() || next.shape().rank() == 0 || next.shape().dimension(0) != blocks_) return false;
    if (!next.control_predecessors().empty() || NeedsOthers(next)) return false;
    if (next.Is(Opcode::kBitcast)) return next.shape().ElementCount() != elements_ && NeedsOwnBlocks(next);
    const KernelKind kind = HeroOf(next).kind;
    if ((kind != KernelKind::kLoop && kind != KernelKind::kReduction) || !MayRun(next)) return false;
    if (IsWide(next)) {
      if (!ReadsLarge(next) || (kind == KernelKind::kReduction && ColumnsOfLarge(next) == nullptr)) return false;
    } else if (!IsNarrow(next)) {
      return false;
    }
    return NeedsOwnBlocks(next);
  }

  // Of what is inside.
  bool NeedsOwnBlocks(const Instruction& next) const {
    const std::vector<int64_t> needed = BlocksNeeded(next);
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i] != 0 && inside_.contains(next.operand(static_cast<int64_t>(i)))) return false;
    }
    return !needed.empty();
  }

  bool ReadsLarge(const Instruction& kernel) const {
    return std::any_of(kernel.operands().begin(), kernel.operands().end(),
                       [&](const Instruction* operand) { return large_.contains(BehindBitcasts(operand)); });
  }

  // Small, and made of what is small.
  bool IsNarrow(const Instruction& kernel) const {
    const auto is_small = [&](const hlo::Shape& shape) {
      if (!shape.IsArray()) return false;
      const bool has_blocks = shape.rank() > 0 && shape.dimension(0) == blocks_;
      return (has_blocks ? BytesOfBlock(shape) : shape.ByteSize()) <= kMostNarrowBytes;
    };
    return is_small(kernel.shape()) && std::all_of(kernel.operands().begin(), kernel.operands().end(),
                                                   [&](const Instruction* o) { return is_small(o->shape()); });
  }

  // Whether it needs something that is not inside and depends on what is.
  bool NeedsOthers(const Instruction& next) const {
    std::vector<const Instruction*> work;
    std::unordered_set<const Instruction*> seen;
    const auto add = [&](const Instruction* value) {
      if (position_.at(value) >= seed_position_ && seen.insert(value).second) work.push_back(value);
    };
    for (const Instruction* operand : next.operands()) {
      if (!inside_.contains(operand)) add(operand);
    }
    while (!work.empty()) {
      const Instruction* value = work.back();
      work.pop_back();
      if (inside_.contains(value) || seen.size() > kMostAncestors) return true;
      for (const Instruction* operand : value->operands()) add(operand);
      for (const Instruction* before : value->control_predecessors()) add(before);
    }
    return false;
  }

  // Leaves out what no loop over the array needs.
  void Trim(Members& members) {
    std::unordered_set<const Instruction*> kept;
    for (size_t i = members.size(); i-- > 0;) {
      const Instruction* member = members[i];
      const bool is_needed =
          IsWide(*member) || std::any_of(member->users().begin(), member->users().end(),
                                         [&](const Instruction* user) { return kept.contains(user); });
      if (is_needed) kept.insert(member);
    }
    std::erase_if(members, [&](const Instruction* member) { return !kept.contains(member); });
  }

  bool IsWorthwhile(const Members& members) const {
    std::unordered_set<const Instruction*> reads;
    int64_t wide = 0, private_bytes = 0;
    for (const Instruction* member : members) {
      if (member->Is(Opcode::kBitcast)) continue;
      wide += IsWide(*member) ? 1 : 0;
      if (member->shape().ElementCount() != elements_) private_bytes += BytesOfBlock(member->shape());
      reads.insert(member->operands().begin(), member->operands().end());
    }
    return wide >= 2 && private_bytes <= kMostPrivateBytes && reads.size() <= kMostReads;
  }

  Computation& computation_;
  const PassContext& context_;
  std::unordered_map<const Instruction*, size_t> position_;
  // Of the kernels that are being brought together.
  int64_t blocks_ = 0, elements_ = 0;             // of the array: how many, and in all of them
  std::unordered_set<const Instruction*> large_;  // arrays that are read again
  std::unordered_set<const Instruction*> inside_;
  size_t seed_position_ = 0;
};

}  // namespace

const Instruction* BehindBitcasts(const Instruction* value) {
  while (value->Is(Opcode::kBitcast)) value = value->operand(0);
  return value;
}

const Instruction* ColumnReduceOf(const Instruction& kernel) {
  const Hero hero = HeroOf(kernel);
  if (hero.kind != KernelKind::kReduction || !kernel.shape().IsArray()) return nullptr;
  const Instruction* reduce = hero.instruction;
  if (reduce->operand_count() != 2 || !hlo::ReducerOpcode(*reduce->called())) return nullptr;
  if (kernel.Is(Opcode::kFusion)) {
    const auto& all = kernel.called()->instructions();
    const auto is_reduce = [](const auto& instruction) { return instruction->Is(Opcode::kReduce); };
    if (std::count_if(all.begin(), all.end(), is_reduce) != 1) return nullptr;
  }
  const hlo::Shape& x = reduce->operand(0)->shape();
  const auto is_reduced = [&](int64_t d) {
    return std::find(reduce->dimensions().begin(), reduce->dimensions().end(), d) != reduce->dimensions().end();
  };
  const bool keeps_ends = x.rank() > 2 && !is_reduced(0) && !is_reduced(x.rank() - 1) && x.dimension(x.rank() - 1) > 1;
  return keeps_ends && !reduce->dimensions().empty() && kernel.shape().SameDimensions(reduce->shape()) ? reduce
                                                                                                       : nullptr;
}

bool ReadsByBlock(const Instruction& blocks, int64_t operand) {
  std::vector<const Instruction*> work = {blocks.called()->parameter(operand)};
  while (!work.empty()) {
    const Instruction* value = work.back();
    work.pop_back();
    for (const Instruction* user : value->users()) {
      if (user->Is(Opcode::kTuple)) continue;
      const std::vector<int64_t> needed = BlocksNeeded(*user);
      for (int64_t i = 0; i < user->operand_count(); ++i) {
        if (user->operand(i) == value && (needed.empty() || needed[static_cast<size_t>(i)] != 0)) return false;
      }
      if (user->Is(Opcode::kBitcast)) work.push_back(user);
    }
  }
  return true;
}

bool FormBlocks::Run(hlo::Module& module, PassContext& context) {
  // Kernels of arrays whose sizes vary end at the sizes, each by itself.
  if (context.device.device_class != DeviceClass::kCpu || !SignatureOf(module).empty()) return false;
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) changed |= BlockFinder(*computation, context).Run();
  return changed;
}

}  // namespace hlorun::passes
