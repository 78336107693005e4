// What a while loop carries from trip to trip, simplified.
#pragma once

#include <unordered_set>

#include "hlo/instruction.h"

namespace hlorun::passes {

// The loop carries a tuple that is only ever taken apart and put together element by element.
bool IsTakenApart(const hlo::Instruction& loop);
// Of such a loop: whether the body hands element `index` on unchanged.
bool IsPassedOn(const hlo::Instruction& loop, int64_t index);
// Of such a loop: whether its users, too, take it apart, so that it may carry more.
bool MayGrow(const hlo::Instruction& loop);
// Carries `value` through a loop that may grow, unchanged; returns it as the body sees it.
hlo::Instruction* AddCarry(hlo::Instruction* loop, hlo::Instruction* value);

// Instructions of the loop's body whose values reach nothing but its condition: who knows the number of trips need not
// run them.
std::unordered_set<const hlo::Instruction*> OnlyForTheCondition(const hlo::Instruction& loop);

// Uses of carried elements that never change become, inside, the constants that they start as. Returns whether anything
// changed.
bool ForwardLoopInvariants(hlo::Instruction* loop);

// Outside of the loop, elements that never change are what they start as.
bool ForwardPassedOn(hlo::Instruction* loop);

// Drops carried elements that no trip and no user of the loop needs. Replaces `loop` by a smaller one and returns it;
// null when there was nothing to drop.
hlo::Instruction* RemoveDeadCarries(hlo::Instruction* loop);

}  // namespace hlorun::passes
