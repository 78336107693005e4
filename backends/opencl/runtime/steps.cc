#include "backends/opencl/runtime/steps.h"

#include <algorithm>

namespace hlorun::opencl {
namespace {

// What a member of a team does in the time of a wake-up, or of a few launches.
constexpr double kWakeUpBytes = 65536, kWakeUpFlops = 262144;
// What is worth sharing on any machine, in wake-ups: arithmetic sooner than arrays, which may have to move.
constexpr double kLongestAloneBytes = 32, kLongestAloneFlops = 8;
// How far behind a launch another one may stand that joins it.
constexpr size_t kWindow = 32;

// A launch of more than this, of several groups, keeps to itself: it has nothing to gain from company, and would drive
// what the other reads, and has just been written, out of the caches.
constexpr double kLongBytes = 32 * kWakeUpBytes, kLongFlops = 128 * kWakeUpFlops;

// Of `groups` with so much work as many as are worth a launch of their own: all, where nobody need be woken.
void SetShares(Step& step, int64_t groups, double bytes, double flops) {
  const auto share = [&](double bytes_of_share, double flops_of_share) {
    const double shares = std::max({1.0, bytes / bytes_of_share, flops / flops_of_share});
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(groups) / shares));
  };
  step.share = share(kWakeUpBytes, kWakeUpFlops);
  step.share_alone = share(kLongestAloneBytes * kWakeUpBytes, kLongestAloneFlops * kWakeUpFlops);
}

int64_t GroupsOf(const Thunk& thunk) {
  const auto* launch = std::get_if<LaunchThunk>(&thunk.work);
  return launch != nullptr ? launch->grid.groups[0] : 0;
}

// Of an instruction's launches only the last says what all of them cost; of the others it is what they are given.
double BytesOf(const Thunk& thunk) {
  const auto* launch = std::get_if<LaunchThunk>(&thunk.work);
  if (launch == nullptr || thunk.bytes > 0 || thunk.flops > 0) return thunk.bytes;
  double bytes = 0;
  for (const passes::Slice& slice : launch->arguments) bytes += static_cast<double>(slice.bytes);
  return bytes;
}

struct Access {
  passes::Slice slice;
  bool written;
};

bool HasLoop(const StepSequence& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return std::holds_alternative<WhileThunk>(step.thunk->work) ||
           std::any_of(step.children.begin(), step.children.end(), HasLoop);
  });
}

// Whether some launch, or section of launches, is shared or not as its loop chooses.
bool HasChoice(const StepSequence& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return (step.launch >= 0 && step.share < step.share_alone) ||
           std::any_of(step.children.begin(), step.children.end(), HasChoice);
  });
}

class SectionFormer {
 public:
  explicit SectionFormer(const Plan& plan) : plan_(plan) {}

  void Form(StepSequence& steps) {
    StepSequence formed;
    formed.reserve(steps.size());
    std::vector<bool> taken(steps.size(), false);
    std::vector<std::vector<Access>> accesses;
    for (Step& step : steps) {
      for (StepSequence& child : step.children) Form(child);
      const bool is_loop = std::holds_alternative<WhileThunk>(step.thunk->work);
      if (is_loop && !HasLoop(step.children[1]) && HasChoice(step.children[1]))
        step.sharing = std::make_shared<SharingChoice>();
      accesses.push_back(AccessesOf(*step.thunk));
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      if (taken[i]) continue;
      const std::vector<size_t> section = SectionOf(i, steps, taken, accesses);
      const size_t first = formed.size();
      double bytes = 0, flops = 0;
      int64_t groups = 0;
      for (const size_t member : section) {
        taken[member] = true;
        bytes += BytesOf(*steps[member].thunk);
        flops += steps[member].thunk->flops;
        groups += GroupsOf(*steps[member].thunk);
        formed.push_back(std::move(steps[member]));
      }
      if (section.size() == 1) continue;
      formed[first].section = static_cast<int32_t>(section.size());
      SetShares(formed[first], groups, bytes, flops);
    }
    steps = std::move(formed);
  }

 private:
  // Empty where the thunk waits for all before it, and all behind wait for it.
  std::vector<Access> AccessesOf(const Thunk& thunk) const {
    std::vector<Access> accesses;
    const auto add = [&](passes::Slice slice, bool written) {
      // Donated memory becomes a result's.
      const passes::Allocation& allocation = plan_.allocations[static_cast<size_t>(slice.allocation)];
      if (allocation.aliased_argument >= 0) slice.allocation = ArgumentAllocation(allocation.aliased_argument);
      accesses.push_back({slice, written});
    };
    if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
      for (size_t i = 0; i < launch->arguments.size(); ++i) add(launch->arguments[i], launch->written[i]);
    } else if (const auto* copy = std::get_if<CopyThunk>(&thunk.work)) {
      add(copy->from, false);
      add(copy->to, true);
    } else if (const auto* write = std::get_if<WriteThunk>(&thunk.work)) {
      add(write->to, true);
    }
    return accesses;
  }

  int32_t ArgumentAllocation(int64_t argument) const {
    for (size_t a = 0; a < plan_.allocations.size(); ++a) {
      const passes::Allocation& allocation = plan_.allocations[a];
      if (allocation.kind == passes::Allocation::Kind::kArgument && allocation.index == argument)
        return static_cast<int32_t>(a);
    }
    return -2 - static_cast<int32_t>(argument);  // never read: a place of its own
  }

  static bool Conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
    return std::any_of(a.begin(), a.end(), [&](const Access& x) {
      return std::any_of(b.begin(), b.end(),
                         [&](const Access& y) { return (x.written || y.written) && x.slice.Overlaps(y.slice); });
    });
  }

  static bool MayJoin(const Step& step) {
    if (step.launch < 0) return false;
    const Thunk& thunk = *step.thunk;
    return GroupsOf(thunk) == 1 || (BytesOf(thunk) <= kLongBytes && thunk.flops <= kLongFlops);
  }

  // The step itself, and the launches behind it that depend neither on it nor on what stands in between; cheap
  // work-groups first.
  static std::vector<size_t> SectionOf(size_t head, const StepSequence& steps, const std::vector<bool>& taken,
                                       const std::vector<std::vector<Access>>& accesses) {
    std::vector<size_t> section = {head}, passed;
    if (!MayJoin(steps[head])) return section;
    const size_t end = std::min(steps.size(), head + kWindow);
    for (size_t i = head + 1; i < end && section.size() < kMostTogether; ++i) {
      if (taken[i]) continue;
      if (accesses[i].empty()) break;
      const auto conflicts = [&](size_t other) { return Conflict(accesses[i], accesses[other]); };
      const bool joins = MayJoin(steps[i]) && std::none_of(section.begin(), section.end(), conflicts) &&
                         std::none_of(passed.begin(), passed.end(), conflicts);
      (joins ? section : passed).push_back(i);
    }
    std::stable_sort(section.begin(), section.end(),
                     [&](size_t a, size_t b) { return GroupWork(*steps[a].thunk) < GroupWork(*steps[b].thunk); });
    return section;
  }

  // Of one group, in bytes of memory's speed.
  static double GroupWork(const Thunk& thunk) {
    const double work = std::max(BytesOf(thunk), thunk.flops * kWakeUpBytes / kWakeUpFlops);
    return work / static_cast<double>(std::max<int64_t>(1, GroupsOf(thunk)));
  }

  const Plan& plan_;
};

}  // namespace

StepSequence NumberSteps(const Sequence& sequence, std::vector<const LaunchThunk*>& launches) {
  StepSequence steps;
  steps.reserve(sequence.thunks.size());
  for (const Thunk& thunk : sequence.thunks) {
    Step step;
    step.thunk = &thunk;
    SetShares(step, GroupsOf(thunk), BytesOf(thunk), thunk.flops);
    if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
      step.launch = static_cast<int32_t>(launches.size());
      launches.push_back(launch);
    } else if (const auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
      step.children.push_back(NumberSteps(*loop->condition, launches));
      step.children.push_back(NumberSteps(*loop->body, launches));
    } else if (const auto* choice = std::get_if<ConditionalThunk>(&thunk.work)) {
      for (const auto& branch : choice->branches) step.children.push_back(NumberSteps(*branch, launches));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

void FormSections(const Plan& plan, StepSequence& steps) { SectionFormer(plan).Form(steps); }

}  // namespace hlorun::opencl
