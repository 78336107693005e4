// A plan's sequences as they are run: its thunks in order, numbered launches, and what may run side by side.
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
  int32_t section = 1;  // so many steps, from this one on, are launches that need not wait for each other
  std::vector<StepSequence> children;  // while: condition, body; conditional: branches
  // Of an innermost loop whose body has something to choose for (FormSections).
  std::shared_ptr<SharingChoice> sharing;
};

// The plan's sequences as steps. `launches` receives the launch thunks in numbering order.
StepSequence NumberSteps(const Sequence& sequence, std::vector<const LaunchThunk*>& launches);

// Launches of one section: none reads or writes what another one writes.
inline constexpr int32_t kMostTogether = 16;

// Brings launches that do not depend on each other together, from a little further on as well, and marks them as
// sections: the most costly work-groups last. Every step still comes behind all that it depends on. Innermost loops
// then choose whether their steps are shared.
void FormSections(const Plan& plan, StepSequence& steps);

}  // namespace hlorun::opencl
