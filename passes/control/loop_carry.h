// What a while loop carries from trip to trip, simplified.
#pragma once

#include "hlo/instruction.h"

namespace hlorun::passes {

// Uses of carried elements that never change become, inside, the constants that they start as. Returns whether anything
// changed.
bool ForwardLoopInvariants(hlo::Instruction* loop);

// Drops carried elements that no trip and no user of the loop needs. Replaces `loop` by a smaller one and returns it;
// null when there was nothing to drop.
hlo::Instruction* RemoveDeadCarries(hlo::Instruction* loop);

}  // namespace hlorun::passes
