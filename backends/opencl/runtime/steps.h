// A plan's sequences as they are run: its thunks in order, and numbered launches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/sharing_choice.h"

namespace hlorun::opencl {

struct Step;
using StepSequence = std::vector<Step>;

// A thunk with its number among the plan's launches, so that a run context finds its kernel object without a search.
struct Step {
  const Thunk* thunk = nullptr;
  int32_t launch = -1;
  // Groups that a team's member takes at least; of a section: of all its launches. `share_alone`: where only long work
  // is shared.
  int64_t share = 1, share_alone = 1;
  int32_t section = 1;  // so many steps, from this one on, are launches that need not wait for each other (sections.h)
  bool aside = false;   // in a section that two queues share: by the second one
  std::vector<StepSequence> children;  // while: condition, body; conditional: branches
  // Of an innermost loop whose body has something to choose for (FormSections).
  std::shared_ptr<SharingChoice> sharing;

  // Of `groups` with so much work as many as are worth a launch of their own: all, where nobody need be woken.
  void SetShares(int64_t groups, double bytes, double flops);
};

// The plan's sequences as steps. `launches` receives the launch thunks in numbering order.
StepSequence NumberSteps(const Sequence& sequence, std::vector<const LaunchThunk*>& launches);

// What a member of a team does in the time of a wake-up, or of a few launches.
inline constexpr double kWakeUpBytes = 65536, kWakeUpFlops = 262144;

// Work-groups of a launch, in all dimensions; 0 of what is none.
int64_t GroupsOf(const Thunk& thunk);
// What a launch reads and writes. Of an instruction's launches only the last says what all of them cost; of the others
// it is what they are given.
double BytesOf(const Thunk& thunk);

}  // namespace hlorun::opencl
