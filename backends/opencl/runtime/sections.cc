#include "backends/opencl/runtime/sections.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace hlorun::opencl {
namespace {

// How far behind a launch another one may stand that joins it.
constexpr size_t kWindow = 32;

struct Access {
  passes::Slice slice;
  bool written;
};

// Which launches have something to gain from company, and from whose; and the order of a section's members.
struct Rules {
  std::function<bool(const Thunk&)> may_join;
  std::function<bool(const Thunk& head, const Thunk&)> suit;  // may be empty, as the next
  std::function<void(std::vector<Step>&)> arrange;
};

class SectionFormer {
 public:
  SectionFormer(const Plan& plan, const Rules& rules) : plan_(plan), rules_(rules) {}

  void Form(StepSequence& steps) {
    StepSequence formed;
    formed.reserve(steps.size());
    std::vector<bool> taken(steps.size(), false);
    std::vector<std::vector<Access>> accesses;
    for (Step& step : steps) {
      for (StepSequence& child : step.children) Form(child);
      accesses.push_back(AccessesOf(*step.thunk));
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      if (taken[i]) continue;
      std::vector<Step> section;
      for (const size_t member : Independent(i, steps, taken, accesses)) {
        taken[member] = true;
        section.push_back(std::move(steps[member]));
      }
      if (section.size() > 1 && rules_.arrange) rules_.arrange(section);
      section.front().section = static_cast<int32_t>(section.size());
      std::move(section.begin(), section.end(), std::back_inserter(formed));
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
    if (const auto* launch = std::get_if<LaunchThunk>(&thunk.work); launch != nullptr && !launch->has_effect) {
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

  bool MayJoin(const Step& step) const {
    const auto* launch = std::get_if<LaunchThunk>(&step.thunk->work);
    return launch != nullptr && !launch->has_effect && rules_.may_join(*step.thunk);
  }
  bool Suit(const Step& head, const Step& step) const {
    return MayJoin(step) && (!rules_.suit || rules_.suit(*head.thunk, *step.thunk));
  }

  // The step itself, and the launches behind it that depend neither on it nor on what stands in between.
  std::vector<size_t> Independent(size_t head, const StepSequence& steps, const std::vector<bool>& taken,
                                  const std::vector<std::vector<Access>>& accesses) const {
    std::vector<size_t> section = {head}, passed;
    if (!MayJoin(steps[head])) return section;
    const size_t end = std::min(steps.size(), head + kWindow);
    for (size_t i = head + 1; i < end && section.size() < kMostTogether; ++i) {
      if (taken[i]) continue;
      if (accesses[i].empty()) break;
      const auto conflicts = [&](size_t other) { return Conflict(accesses[i], accesses[other]); };
      const bool joins = Suit(steps[head], steps[i]) && std::none_of(section.begin(), section.end(), conflicts) &&
                         std::none_of(passed.begin(), passed.end(), conflicts);
      (joins ? section : passed).push_back(i);
    }
    return section;
  }

  const Plan& plan_;
  const Rules& rules_;
};

// A launch of more than this, of several groups, keeps to itself: it has nothing to gain from a team's company, and
// would drive what the other reads, and has just been written, out of the caches.
constexpr double kLongBytes = 32 * kWakeUpBytes, kLongFlops = 128 * kWakeUpFlops;

// Of one group, in bytes of memory's speed.
double GroupWork(const Thunk& thunk) {
  const double work = std::max(BytesOf(thunk), thunk.flops * kWakeUpBytes / kWakeUpFlops);
  return work / static_cast<double>(std::max<int64_t>(1, GroupsOf(thunk)));
}

void CheapGroupsFirst(std::vector<Step>& section) {
  std::stable_sort(section.begin(), section.end(),
                   [](const Step& a, const Step& b) { return GroupWork(*a.thunk) < GroupWork(*b.thunk); });
  double bytes = 0, flops = 0;
  int64_t groups = 0;
  for (const Step& step : section) {
    bytes += BytesOf(*step.thunk);
    flops += step.thunk->flops;
    groups += GroupsOf(*step.thunk);
  }
  section.front().SetShares(groups, bytes, flops);
}

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

void GiveLoopsTheirChoice(StepSequence& steps) {
  for (Step& step : steps) {
    for (StepSequence& child : step.children) GiveLoopsTheirChoice(child);
    const bool is_loop = std::holds_alternative<WhileThunk>(step.thunk->work);
    if (is_loop && !HasLoop(step.children[1]) && HasChoice(step.children[1]))
      step.sharing = std::make_shared<SharingChoice>();
  }
}

// Sets steps aside. Returns how long the queue that has less to do takes.
double Part(std::span<const double> microseconds, std::span<Step> section) {
  std::vector<Step*> by_time;
  for (Step& step : section) by_time.push_back(&step);
  const auto time_of = [&](const Step* step) { return microseconds[static_cast<size_t>(step->launch)]; };
  std::stable_sort(by_time.begin(), by_time.end(), [&](Step* a, Step* b) { return time_of(a) > time_of(b); });
  double main = 0, aside = 0;
  for (Step* step : by_time) {
    step->aside = aside < main;
    (step->aside ? aside : main) += time_of(step);
  }
  return std::min(main, aside);
}

}  // namespace

void FormSections(const Plan& plan, StepSequence& steps) {
  const Rules rules{[](const Thunk& thunk) {
                      return GroupsOf(thunk) == 1 || (BytesOf(thunk) <= kLongBytes && thunk.flops <= kLongFlops);
                    },
                    nullptr, CheapGroupsFirst};
  SectionFormer(plan, rules).Form(steps);
  GiveLoopsTheirChoice(steps);
}

void FormSectionsOfQueues(const Plan& plan, bool by_grid, StepSequence& steps) {
  Rules rules{[&](const Thunk& thunk) { return GroupsOf(thunk) < plan.device.compute_units; }, nullptr, nullptr};
  if (by_grid) {
    rules.suit = [](const Thunk& head, const Thunk& thunk) {
      return std::get<LaunchThunk>(head.work).grid == std::get<LaunchThunk>(thunk.work).grid;
    };
  }
  SectionFormer(plan, rules).Form(steps);
}

void PartSections(std::span<const double> microseconds, double meeting, StepSequence& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    for (StepSequence& child : steps[i].children) PartSections(microseconds, meeting, child);
    if (steps[i].section == 1) continue;
    const auto section = std::span(steps).subspan(i, static_cast<size_t>(steps[i].section));
    steps[i].section = 1;
    if (Part(microseconds, section) >= 2 * meeting) {
      std::stable_partition(section.begin(), section.end(), [](const Step& step) { return step.aside; });
      section.front().section = static_cast<int32_t>(section.size());
    }
    i += section.size() - 1;
  }
}

}  // namespace hlorun::opencl
