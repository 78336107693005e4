#include "passes/fusion/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/cost_analysis.h"
#include "hlo/cumulative_window.h"
#include "passes/control/time_model.h"
#include "passes/fusion/cluster.h"
#include "passes/fusion/cumulative_fusion.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/outline_region.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// One kernel of this many parts still compiles in a fraction of a second, and has fewer parameters than any device's
// limit.
constexpr size_t kMaxParts = 48;
constexpr size_t kMaxArrays = 48;
// Array constants inside of loops are written out in the code.
constexpr int64_t kMaxConstantElements = 64;
// A row kernel would compute its reduction anew for each element.
constexpr int64_t kMaxRowElements = 32;
// Kernels of products work in register tiles, an order of magnitude faster than a region does, however few cores there
// are.
constexpr double kMaxProductFlops = 1 << 14;
// Code and stack of one kernel.
constexpr int64_t kMaxNesting = 6;

bool IsPlumbing(const Instruction& i) { return i.Is(Opcode::kGetTupleElement) || i.Is(Opcode::kBitcast); }

bool IsControl(const Instruction& i) { return i.Is(Opcode::kWhile) || i.Is(Opcode::kConditional); }

bool HasKernel(const Instruction& i) { return i.Is(Opcode::kCopy) || HeroOf(i).kind != KernelKind::kNone; }

class Eligibility {
 public:
  explicit Eligibility(const PassContext& context) : context_(context), time_(context.device) {}

  // Whether the instruction is worth a place in a region.
  bool Allows(const Instruction& i) const {
    if (!CanRun(i, 0)) return false;
    if (IsControl(i)) return time_.Sequential(i) <= time_.Launched(i);
    // A kernel of its own wakes the other cores, too: as much again as its launch.
    return time_.Sequential(i) <= time_.Launched(i) + time_.launch();
  }
  const TimeModel& time() const { return time_; }

 private:
  bool CanRun(const Instruction& i, int64_t depth) const {
    if (context_.kernels.RunsAlone(i)) return false;
    if (i.HasSideEffect() || !i.control_predecessors().empty() || !i.control_successors().empty()) return false;
    for (const hlo::Shape& leaf : hlo::FlattenShape(i.shape())) {
      if (!leaf.IsArray() || !leaf.IsStatic()) return false;
    }
    // An array without elements has no place in a region's memory.
    for (const Instruction* operand : i.operands()) {
      if (operand->shape().IsArray() && operand->shape().ElementCount() == 0) return false;
    }
    if (IsControl(i)) return CanRunControl(i, depth);
    switch (HeroOf(i).kind) {
      case KernelKind::kReduction: return context_.kernels.Supports(i) && !ConcatenatesResults(i);
      case KernelKind::kLoop:
      case KernelKind::kInPlace: return context_.kernels.Supports(i);
      case KernelKind::kReduceWindow: return context_.kernels.Supports(i) && !IsLargeScan(i);
      case KernelKind::kScatter: return i.Is(Opcode::kScatter) && i.shape().IsArray() && context_.kernels.Supports(i);
      case KernelKind::kDot:
      case KernelKind::kConvolution:
        return context_.kernels.Supports(i) && hlo::CostOf(*HeroOf(i).instruction).flops <= kMaxProductFlops;
      case KernelKind::kRow:
        return context_.kernels.Supports(i) &&
               HeroOf(i).instruction->operand(0)->shape().ElementCount() <= kMaxRowElements;
      default: return false;
    }
  }

  // A region would ask for each element of the whole which of the parts it is.
  static bool ConcatenatesResults(const Instruction& i) {
    return i.Is(Opcode::kFusion) && i.called()->root()->Is(Opcode::kConcatenate);
  }

  // A region goes window by window where not all results are kept.
  static bool IsLargeScan(const Instruction& i) {
    const Instruction& op = *HeroOf(i).instruction;
    return i.Is(Opcode::kFusion) && CumulativeWindowOf(op) && !GivesAllResultsOf(*i.called()->root(), op);
  }

  bool CanRunControl(const Instruction& i, int64_t depth) const {
    if (depth >= kMaxNesting) return false;
    if (i.Is(Opcode::kConditional) && context_.options.branches != BranchStrategy::kAuto) return false;
    for (const Computation* called : i.called_computations()) {
      for (const auto& inner : called->instructions()) {
        const bool moves_nothing = inner->Is(Opcode::kParameter) || inner->Is(Opcode::kTuple) || IsPlumbing(*inner);
        if (moves_nothing) continue;
        if (inner->IsConstant()) {
          if (!inner->shape().IsArray() || inner->As<hlo::attr::Constant>().elided ||
              inner->shape().ElementCount() > kMaxConstantElements) {
            return false;
          }
          continue;
        }
        if (!CanRun(*inner, depth + 1)) return false;
      }
    }
    return true;
  }

  const PassContext& context_;
  const TimeModel time_;
};

// The instructions of one region, operands before users.
using Members = std::vector<Instruction*>;

// Groups by level: how many other kernels lie on the longest way to an instruction. A value that leaves a region and
// comes back through another kernel comes back on a higher level, so no region depends on itself.
std::vector<Members> FindGroups(const Computation& computation, const Eligibility& eligible) {
  std::unordered_map<const Instruction*, int64_t> levels;
  std::unordered_set<const Instruction*> outside;
  std::map<int64_t, Members> groups;
  for (Instruction* i : computation.PostOrder()) {
    const bool is_source = i->Is(Opcode::kParameter) || i->IsConstant();
    const bool joins = !is_source && (IsPlumbing(*i) || ((HasKernel(*i) || IsControl(*i)) && eligible.Allows(*i)));
    int64_t& level = levels[i];
    const auto after = [&](const Instruction* before) {
      level = std::max(level, levels.at(before) + (joins && outside.contains(before) ? 1 : 0));
    };
    for (const Instruction* operand : i->operands()) after(operand);
    for (const Instruction* before : i->control_predecessors()) after(before);
    if (joins) groups[level].push_back(i);
    // Tuples only carry: what comes through one comes from what it holds.
    if (!joins && !is_source && !i->Is(Opcode::kTuple)) outside.insert(i);
    if (i->Is(Opcode::kTuple) && std::any_of(i->operands().begin(), i->operands().end(),
                                             [&](const Instruction* o) { return outside.contains(o); })) {
      outside.insert(i);
    }
  }
  std::vector<Members> list;
  for (auto& [level, members] : groups) list.push_back(std::move(members));
  return list;
}

using Inside = std::unordered_set<const Instruction*>;

// Whether a member reads `value`, be it through tuples.
bool IsUsedInside(const Instruction* value, const Inside& inside) {
  return std::any_of(value->users().begin(), value->users().end(), [&](const Instruction* user) {
    return inside.contains(user) || (user->Is(Opcode::kTuple) && IsUsedInside(user, inside));
  });
}

// Leaves out views of what is elsewhere, and views that only others look at.
void DropViews(Members& members) {
  Inside inside(members.begin(), members.end());
  const auto drop = [&](const Instruction* i) {
    inside.erase(i);
    return true;
  };
  std::erase_if(members,
                [&](const Instruction* i) { return IsPlumbing(*i) && !inside.contains(i->operand(0)) && drop(i); });
  for (size_t n = members.size(); n-- > 0;) {
    const Instruction* i = members[n];
    if (!i->Is(Opcode::kBitcast) || IsUsedInside(i, inside)) continue;
    drop(i);
    members.erase(members.begin() + static_cast<ptrdiff_t>(n));
  }
}

// Pieces of a group in their order, each small enough for one kernel.
std::vector<Members> Split(const Members& group) {
  std::vector<Members> pieces(1);
  size_t parts = 0;
  std::unordered_set<const Instruction*> arrays;
  for (Instruction* i : group) {
    std::unordered_set<const Instruction*> touched(i->operands().begin(), i->operands().end());
    touched.insert(i);
    const bool full = parts >= kMaxParts || arrays.size() + touched.size() > kMaxArrays;
    if (full && !IsPlumbing(*i)) {
      pieces.emplace_back();
      parts = 0;
      arrays.clear();
    }
    if (!IsPlumbing(*i)) ++parts;
    arrays.insert(touched.begin(), touched.end());
    pieces.back().push_back(i);
  }
  return pieces;
}

bool IsWorthwhile(const Members& members) {
  int64_t kernels = 0;
  for (const Instruction* i : members) {
    if (IsControl(*i)) return true;
    if (!IsPlumbing(*i)) ++kernels;
  }
  return kernels >= 2;
}

void Explain(const Instruction& i, const hlo::Module& module, const TimeModel& time, std::vector<Remark>& remarks) {
  if (IsControl(i)) {
    Remark& remark = remarks.emplace_back();
    remark.subject = i.Is(Opcode::kWhile) ? Remark::Subject::kLoop : Remark::Subject::kConditional;
    remark.instruction = i.name();
    remark.source = module.SourceOf(i);
    remark.choice = "region";
    const bool known = i.Is(Opcode::kWhile) && hlo::KnownTripCount(i).has_value();
    const double trips =
        i.Is(Opcode::kWhile) ? static_cast<double>(hlo::KnownTripCount(i).value_or(TimeModel::kAssumedTrips)) : 1;
    remark.reason =
        fmt::format("small enough for one work-item: {} runs inside of a kernel, which reads the {} itself",
                    i.Is(Opcode::kWhile) ? "the loop" : "the branch that is taken", known ? "counter" : "predicate");
    remark.cost = fmt::format("one launch in all; about {:.2g} us {} instead of {:.2g}", time.Sequential(i) / trips,
                              i.Is(Opcode::kWhile) ? "an iteration" : "at most", time.Launched(i) / trips);
  }
  for (const Computation* called : i.called_computations()) {
    if (!IsControl(i)) break;
    for (const auto& inner : called->instructions()) Explain(*inner, module, time, remarks);
  }
}

}  // namespace

bool FormRegions::Run(hlo::Module& module, PassContext& context) {
  const Eligibility eligible(context);
  bool changed = false;
  // Callers first: what an outer region takes in needs none inside.
  std::vector<Computation*> work = {module.entry()};
  while (!work.empty()) {
    Computation* computation = work.back();
    work.pop_back();
    for (const Members& group : FindGroups(*computation, eligible)) {
      for (Members& members : Split(group)) {
        DropViews(members);
        if (!IsWorthwhile(members)) continue;
        for (const Instruction* member : members) Explain(*member, module, eligible.time(), context.remarks);
        OutlineRegion(*computation, members, kRegionConfig);
        changed = true;
      }
    }
    computation->SetOrder(computation->PostOrder());
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->Has(hlo::kControl)) continue;
      work.insert(work.end(), instruction->called_computations().begin(), instruction->called_computations().end());
    }
  }
  return changed;
}

}  // namespace hlorun::passes
