// Sections: launches that need not wait for each other, brought together to run side by side.
#pragma once

#include <span>

#include "backends/opencl/runtime/steps.h"

namespace hlorun::opencl {

// Launches of one section: none reads or writes what another one writes.
inline constexpr int32_t kMostTogether = 16;

// For a team (team.h). Brings launches that do not depend on each other together, from a little further on as well, and
// marks them as sections: the most costly work-groups last. Every step still comes behind all that it depends on.
// Innermost loops then choose whether their steps are shared.
void FormSections(const Plan& plan, StepSequence& steps);

// For runs through queues, of any device: the same of launches that leave units of the device idle, in their order.
// What becomes of them PartSections says. `by_grid`: of launches in equal grids alone (Quirks::mixes_up_grids).
void FormSectionsOfQueues(const Plan& plan, bool by_grid, StepSequence& steps);

// Parts each section between a lane's two queues: the longest launches first, each set aside or not, so that both take
// as long; those set aside come first. `microseconds`: of each launch, by its number. A section is none any more where
// the shorter half is not worth twice what it takes two queues to wait for each other (`meeting`, microseconds).
void PartSections(std::span<const double> microseconds, double meeting, StepSequence& steps);

}  // namespace hlorun::opencl
