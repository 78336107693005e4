#include "passes/simplify/unwrap_async.h"

#include <optional>

#include "passes/simplify/inline.h"
#include "passes/simplify/rewrite_each.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

struct Pair {
  Opcode start;
  Opcode done;
  Opcode plain;
};
constexpr Pair kPairs[] = {
    {Opcode::kCopyStart, Opcode::kCopyDone, Opcode::kCopy},
    {Opcode::kAllReduceStart, Opcode::kAllReduceDone, Opcode::kAllReduce},
    {Opcode::kAllGatherStart, Opcode::kAllGatherDone, Opcode::kAllGather},
    {Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone, Opcode::kCollectivePermute},
};

// done(start(x)) of a pair -> plain(x), of the shape of the done.
bool UnwrapPair(Instruction* done, const Pair& pair) {
  Instruction* start = done->operand(0);
  if (!start->Is(pair.start)) return false;
  hlo::Attributes attributes = start->attributes();
  if (pair.plain == Opcode::kCopy) attributes = hlo::attr::None{};
  auto plain = std::make_unique<Instruction>(pair.plain, done->shape(), start->operands(), std::move(attributes),
                                             start->called_computations());
  plain->metadata = start->metadata;
  plain->sharding = done->sharding;
  plain->frontend_attributes = start->frontend_attributes;
  Computation* computation = done->parent();
  computation->ReplaceWithNew(done, std::move(plain));
  if (start->users().empty() && !start->IsRoot()) computation->Remove(start);
  return true;
}

// async-done(async-update*(async-start(x...))) -> the wrapped computation's instructions.
bool UnwrapAsyncDone(Instruction* done) {
  std::vector<Instruction*> chain;
  Instruction* start = done->operand(0);
  for (; start->Is(Opcode::kAsyncUpdate); start = start->operand(0)) chain.push_back(start);
  if (!start->Is(Opcode::kAsyncStart) || start->called_computations().empty()) return false;
  chain.push_back(start);
  Computation* computation = done->parent();
  const std::vector<Instruction*> arguments = start->operands();
  InlineInstruction(done, start->called(), arguments);
  for (Instruction* link : chain) {
    if (link->users().empty() && !link->IsRoot()) computation->Remove(link);
  }
  return true;
}

bool Unwrap(Instruction* instruction) {
  if (instruction->Is(Opcode::kAsyncDone)) return UnwrapAsyncDone(instruction);
  for (const Pair& pair : kPairs) {
    if (instruction->Is(pair.done)) return UnwrapPair(instruction, pair);
  }
  return false;
}

}  // namespace

bool UnwrapAsync::Run(hlo::Module& module, PassContext&) { return RewriteEach(module, Unwrap); }

}  // namespace hlorun::passes
