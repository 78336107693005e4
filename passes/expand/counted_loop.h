// Builds a while loop that counts its trips.
#pragma once

#include <functional>
#include <vector>

#include "hlo/builder.h"

namespace hlorun::passes {

// What one trip does: from the trip's number (s32[], from 0) and the carried values to their next values, of the same
// shapes, built inside the loop's body.
using LoopStep = std::function<std::vector<hlo::Instruction*>(hlo::Builder& build, hlo::Instruction* trip,
                                                              const std::vector<hlo::Instruction*>& carried)>;
// How many trips there are (s32[]), from the carried values; built inside the loop's condition.
using LoopEnd = std::function<hlo::Instruction*(hlo::Builder& build, const std::vector<hlo::Instruction*>& carried)>;

// Puts `for (trip = 0; trip < end(carried); ++trip) carried = step(trip, carried)` where `build` stands; the final
// values.
std::vector<hlo::Instruction*> CountedLoop(hlo::Builder& build, hlo::Module* module, const LoopEnd& end,
                                           std::vector<hlo::Instruction*> carried, const LoopStep& step);
// The same for a number of trips that is known.
std::vector<hlo::Instruction*> CountedLoop(hlo::Builder& build, hlo::Module* module, int64_t trips,
                                           std::vector<hlo::Instruction*> carried, const LoopStep& step);

}  // namespace hlorun::passes
