#include "passes/spmd/auto_shard.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "hlo/error.h"
#include "passes/control/control_edges.h"
#include "passes/generic_context.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/memory/flatten_control.h"
#include "passes/pipeline.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/inline.h"
#include "passes/simplify/unwrap_async.h"
#include "passes/spmd/annotations.h"
#include "passes/spmd/auto_shard_cost.h"
#include "passes/spmd/spmd.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// What every device computes twice must gain more than a network's mood takes away.
constexpr double kWorthwhile = 0.97;

// Costs that differ by less the model cannot tell apart: then the plan that sends least is taken.
constexpr double kAlike = 1.03;

struct Candidate {
  size_t plan = 0;
  spmd::ProgramCost cost;
};

bool SpeaksToTheHost(const Instruction& i) {
  return (i.Has(hlo::kSideEffect) && !i.Is(Opcode::kRng)) || (i.Is(Opcode::kCustomCall) && i.HasSideEffect());
}

CompileOptions OptionsFor(const CompileOptions& options, int64_t devices) {
  CompileOptions own = options;
  own.num_partitions = own.device_count = devices;
  own.dump_to.clear();
  own.observe_stage = nullptr;
  return own;
}

std::string Megabytes(double bytes) {
  return bytes < 1e5 ? fmt::format("{:.1f} KB", bytes / 1e3) : fmt::format("{:.1f} MB", bytes / 1e6);
}

std::string MeshText(const spmd::ShardingPlan& plan) { return fmt::format("{}", fmt::join(plan.mesh, "x")); }

// One device's program, far enough to be costed.
std::unique_ptr<hlo::Module> Partitioned(std::unique_ptr<hlo::Module> module, PassContext& context) {
  PartitionModule().Run(*module, context);
  CommonSubexpressions().Run(*module, context);
  DeadCode().Run(*module, context);
  return module;
}

// Bytes that one device's plan takes.
int64_t PeakBytes(std::unique_ptr<hlo::Module> module, PassContext& context) {
  OptimizationPipeline(context.options, context.device).Run(*module, context);
  return AssignBuffers(*module, context).statistics().peak_bytes;
}

void Explain(const spmd::ShardingPlan& plan, const Candidate& best, const Candidate& replicated, int64_t tried,
             std::optional<int64_t> peak, PassContext& context) {
  Remark& remark = context.remarks.emplace_back();
  remark.subject = Remark::Subject::kSharding;
  remark.choice = plan.mesh.empty() ? plan.name : fmt::format("{} on a mesh of {}", plan.name, MeshText(plan));
  remark.reason = fmt::format(
      "of {} ways to cut the module it costs least, or sends least of those that cost alike: {:.3g} ms a run by the cost model, {:.3g} ms on one device",
      tried, best.cost.seconds() * 1e3, replicated.cost.seconds() * 1e3);
  remark.cost = fmt::format("{:.3g} ms of {:.3g} in collectives ({} sent by each device); arguments of {} a device{}",
                            best.cost.collective_seconds * 1e3, best.cost.seconds() * 1e3,
                            Megabytes(best.cost.ring_bytes), Megabytes(best.cost.argument_bytes),
                            peak ? fmt::format(", {} in all", Megabytes(static_cast<double>(*peak))) : "");
  remark.advice =
      "--save_sharded=FILE writes the annotated module, for other shardings of your own; --auto_shard=off replicates";
}

}  // namespace

bool CanShardAutomatically(const hlo::Module& module) {
  for (const Instruction* parameter : module.entry()->parameters()) {
    for (const hlo::Shape& leaf : hlo::FlattenShape(parameter->shape())) {
      for (int64_t d = 0; leaf.IsArray() && d < leaf.rank(); ++d) {
        if (leaf.is_dynamic_dimension(d)) return false;
      }
    }
  }
  if (module.replica_count * module.num_partitions != 1 || module.is_scheduled || spmd::IsAnnotated(module))
    return false;
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (i->Has(hlo::kCollective) || i->Is(Opcode::kPartitionId) || i->Is(Opcode::kReplicaId) || SpeaksToTheHost(*i))
        return false;
    }
  }
  return true;
}

AutoSharder::AutoSharder(const hlo::Module& module, int64_t devices) : devices_(devices), module_(module.Clone()) {
  if (!CanShardAutomatically(module)) {
    Fail(ErrorCode::kUnimplemented,
         "{} cannot be sharded automatically: it has shardings or collectives of its own, or speaks to the host",
         module.name());
  }
  GenericContext context;
  DropControlEdges().Run(*module_, context);
  UnwrapAsync().Run(*module_, context);
  InlineFusions().Run(*module_, context);
  InlineCalls().Run(*module_, context);
  FlattenControl().Run(*module_, context);
  groups_ = std::make_unique<spmd::DimensionGroups>(*module_);
  plans_ = spmd::ShardingPlans(*groups_, devices);
}

std::unique_ptr<hlo::Module> AutoSharder::Annotated(size_t plan) const {
  return spmd::Annotate(*module_, *groups_, plans_[plan]);
}

size_t AutoSharder::Choose(PassContext& context) const {
  const CompileOptions options = OptionsFor(context.options, devices_);
  const CompileOptions alone = OptionsFor(context.options, 1);
  const auto options_of = [&](size_t plan) -> const CompileOptions& {
    return plans_[plan].mesh.empty() ? alone : options;
  };
  std::vector<Candidate> candidates;
  for (size_t plan = 0; plan < plans_.size(); ++plan) {
    PassContext own{context.device, options_of(plan), context.kernels, {}};
    try {
      candidates.push_back({plan, spmd::CostOfProgram(*Partitioned(Annotated(plan), own), context.device)});
    } catch (const Error& error) {
      if (plan == 0) throw;  // the module itself is at fault
    }
  }
  const Candidate replicated = candidates.front();
  const auto value = [&](const Candidate& c) {
    return c.cost.seconds() * (plans_[c.plan].mesh.empty() ? kWorthwhile : 1);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return value(a) < value(b); });

  if (!plans_[candidates.front().plan].mesh.empty()) {
    const double alike = value(candidates.front()) * kAlike;
    const auto end = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Candidate& c) { return value(c) > alike || plans_[c.plan].mesh.empty(); });
    const auto quietest = std::min_element(candidates.begin(), end, [](const Candidate& a, const Candidate& b) {
      return a.cost.ring_bytes < b.cost.ring_bytes;
    });
    std::rotate(candidates.begin(), quietest, quietest + 1);
  }

  const int64_t limit = context.options.memory_limit;
  if (limit <= 0) {
    Explain(plans_[candidates.front().plan], candidates.front(), replicated, static_cast<int64_t>(candidates.size()),
            std::nullopt, context);
    return candidates.front().plan;
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  size_t smallest = 0;
  // What a plan computes again is not in its cost: first those that fit without.
  for (const bool rematerialize : {false, true}) {
    for (const Candidate& candidate : candidates) {
      if (candidate.cost.argument_bytes > static_cast<double>(limit)) continue;
      CompileOptions of_plan = options_of(candidate.plan);
      of_plan.rematerialize = rematerialize;
      PassContext own{context.device, of_plan, context.kernels, {}};
      const int64_t peak = PeakBytes(Annotated(candidate.plan), own);
      if (peak <= limit) {
        Explain(plans_[candidate.plan], candidate, replicated, static_cast<int64_t>(candidates.size()), peak, context);
        return candidate.plan;
      }
      if (peak < least) {
        least = peak;
        smallest = candidate.plan;
      }
    }
  }
  if (least == std::numeric_limits<int64_t>::max()) {
    Fail(ErrorCode::kResourceExhausted,
         "no way to cut {} for {} devices fits --memory_limit={}: its arguments alone are larger; use more devices",
         module_->name(), devices_, limit);
  }
  Fail(
      ErrorCode::kResourceExhausted,
      "no way to cut {} for {} devices fits --memory_limit={}: the least, {}, takes {} bytes a device; use more devices",
      module_->name(), devices_, limit, plans_[smallest].name, least);
}

}  // namespace hlorun::passes
