#include "passes/memory/rematerialize.h"

#include <algorithm>

#include "passes/memory/array_lives.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/recomputation.h"

namespace hlorun::passes {
namespace {

// Lives, and what the plan takes beyond them, are found anew so many times.
constexpr int kRounds = 12;
// Named one by one in remarks; of the rest the sum is told.
constexpr size_t kNamed = 12;

// What the plan of `module` would take.
MemoryStatistics PlannedMemory(const hlo::Module& module, const PassContext& context) {
  const std::unique_ptr<hlo::Module> planned = module.Clone();
  PassContext own{context.device, context.options, context.kernels, {}};
  CopyInsertion().Run(*planned, own);
  return AssignBuffers(*planned, own).statistics();
}

std::string Megabytes(int64_t bytes) { return fmt::format("{:.4g} MB", static_cast<double>(bytes) / 1e6); }

void ExplainOne(const Recomputed& one, PassContext& context) {
  Remark& remark = context.remarks.emplace_back();
  remark.subject = Remark::Subject::kMemory;
  remark.instruction = one.name;
  remark.source = one.source;
  remark.choice = one.is_moved ? "computed later" : "computed again";
  remark.reason = fmt::format("{} fewer at the moment of most memory", Megabytes(one.bytes));
  remark.cost = one.microseconds > 0 ? fmt::format("about {:.3g} us a run, in {} kernel{}", one.microseconds,
                                                   one.kernels, one.kernels > 1 ? "s" : "")
                                     : "none";
}

// The kernel at which the plan is fullest: what it reads and writes is there whatever is computed again. `gaps`: what
// the plan takes beyond the live bytes.
void ExplainFullest(const hlo::Module& module, int64_t gaps, const PassContext& context, Remark& remark) {
  ArrayLives lives(module, context.kernels);
  const int64_t time = lives.profile().TimeOfMost();
  const hlo::Instruction& fullest = lives.InstructionAt(time);
  remark.source = module.SourceOf(fullest);
  remark.reason += fmt::format(
      "; the most is needed at {}: {} beside arguments and constants, {} of them its operands and results, and {} of gaps",
      fullest.name(), Megabytes(lives.profile().At(time)), Megabytes(lives.WorkingBytes(fullest)), Megabytes(gaps));
}

void Explain(const hlo::Module& module, std::vector<Recomputed> done, int64_t before, const MemoryStatistics& memory,
             PassContext& context) {
  const int64_t after = memory.peak_bytes;
  double microseconds = 0;
  for (const Recomputed& one : done) microseconds += one.microseconds;
  const int64_t limit = context.options.memory_limit;
  const bool fits = after <= limit;
  Remark& remark = context.remarks.emplace_back();
  remark.subject = Remark::Subject::kMemory;
  remark.choice = fits ? "rematerialised" : "not enough";
  remark.reason = fmt::format("{} before, {} with {} values computed again or later; --memory_limit is {}",
                              Megabytes(before), Megabytes(after), done.size(), Megabytes(limit));
  remark.cost = fmt::format("about {:.3g} us a run", microseconds);
  if (!fits) {
    ExplainFullest(module, after - memory.largest_live_bytes, context, remark);
    remark.advice = "a higher --memory_limit, a smaller batch, or more devices";
  }
  std::stable_sort(done.begin(), done.end(),
                   [](const Recomputed& a, const Recomputed& b) { return a.bytes > b.bytes; });
  for (size_t i = 0; i < std::min(done.size(), kNamed); ++i) ExplainOne(done[i], context);
}

}  // namespace

bool Rematerialize::Run(hlo::Module& module, PassContext& context) {
  const int64_t limit = context.options.memory_limit;
  if (limit <= 0 || !context.options.rematerialize || !module.is_scheduled) return false;
  MemoryStatistics memory = PlannedMemory(module, context);
  const int64_t before = memory.peak_bytes;
  const TimeModel times(context.device);
  std::vector<Recomputed> all;
  for (int round = 0; round < kRounds && memory.peak_bytes > limit; ++round) {
    // What the plan takes beyond the live bytes: gaps between blocks, results that wait to be written.
    const int64_t beyond = memory.peak_bytes - memory.largest_live_bytes;
    const int64_t target = limit - beyond - memory.argument_bytes - memory.constant_bytes;
    const std::vector<Recomputed> done = Recomputation(module, context.kernels, times).LowerTo(target);
    if (done.empty()) break;
    all.insert(all.end(), done.begin(), done.end());
    memory = PlannedMemory(module, context);
  }
  const bool changed = !all.empty();
  if (before > limit) Explain(module, std::move(all), before, memory, context);
  return changed;
}

}  // namespace hlorun::passes
