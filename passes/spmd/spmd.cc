#include "passes/spmd/spmd.h"

#include "passes/dynamic/lower.h"
#include "passes/expand/scan.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/inline.h"
#include "passes/spmd/annotations.h"
#include "passes/spmd/partitioner.h"
#include "passes/spmd/propagation.h"
#include "passes/spmd/uniform_predicates.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// A program that already speaks of single devices outside of manual computations.
bool IsPartitioned(const hlo::Module& module) {
  if (module.is_scheduled || module.frontend_attributes.contains(spmd::kPartitioned)) return true;
  bool speaks = false, enters = false;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      speaks |= instruction->Has(hlo::kCollective) || instruction->Is(Opcode::kPartitionId);
      enters |= spmd::IsManualBoundary(*instruction);
    }
  }
  return speaks && !enters;
}

void WarnOf(const spmd::ModuleAnnotations& annotations, PassContext& context) {
  for (const std::string& warning : annotations.warnings) {
    Remark& remark = context.remarks.emplace_back();
    remark.subject = Remark::Subject::kSharding;
    remark.reason = warning;
    remark.warns = true;
  }
}

hlo::Sharding TextOf(const spmd::Mesh& mesh, const hlo::Shape& shape, const std::vector<spmd::MeshSharding>& leaves) {
  if (!shape.IsTuple()) return ToHloSharding(mesh, leaves[0]);
  hlo::Sharding tuple;
  tuple.kind = hlo::Sharding::Kind::kTuple;
  for (const spmd::MeshSharding& leaf : leaves) tuple.elements.push_back(ToHloSharding(mesh, leaf));
  return tuple;
}

}  // namespace

namespace spmd {

int64_t PartitionsFor(const hlo::Module& module, const CompileOptions& options) {
  return options.num_partitions > 0 ? options.num_partitions : PartitionCountOf(module);
}

bool NeedsPartitioning(const hlo::Module& module, const CompileOptions& options) {
  return IsAnnotated(module) && !IsPartitioned(module) && PartitionsFor(module, options) > 1;
}

}  // namespace spmd

bool LowerSizesToCut::Run(hlo::Module& module, PassContext& context) {
  return spmd::NeedsPartitioning(module, context.options) && LowerDynamicDimensions().Run(module, context);
}

bool PropagateShardings::Run(hlo::Module& module, PassContext& context) {
  if (!spmd::NeedsPartitioning(module, context.options)) return false;
  const spmd::ModuleAnnotations annotations =
      spmd::ReadAnnotations(module, spmd::PartitionsFor(module, context.options));
  WarnOf(annotations, context);
  const spmd::PropagationResult result = spmd::Propagate(module, annotations);
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto it = result.shardings.find(instruction.get());
      if (it == result.shardings.end() || it->second.empty()) continue;
      const bool is_root = instruction.get() == module.entry()->root();
      // There it says how a manual computation leaves its result, whatever becomes of that.
      const auto boundary = annotations.boundaries.find(instruction.get());
      if (boundary != annotations.boundaries.end() && !boundary->second.enters && !is_root) continue;
      instruction->sharding = TextOf(annotations.mesh, instruction->shape(), is_root ? result.outputs : it->second);
      instruction->frontend_attributes.erase("xla.sdy.sharding");
    }
  }
  return true;
}

bool PartitionModule::Run(hlo::Module& module, PassContext& context) {
  if (!spmd::NeedsPartitioning(module, context.options)) return false;
  const spmd::ModuleAnnotations annotations =
      spmd::ReadAnnotations(module, spmd::PartitionsFor(module, context.options));
  const spmd::PropagationResult shardings = spmd::Propagate(module, annotations);
  spmd::PartitionComputations(module, annotations.mesh, annotations, shardings, context);
  // A step may have got collectives, which loops have and scans have not.
  ExpandScan().Run(module, context);
  // In manual computations each device has predicates of its own.
  const bool mixed = module.frontend_attributes.contains(spmd::kMixedDevices);
  if (mixed && annotations.boundaries.empty()) spmd::MakePredicatesUniform(module);
  module.frontend_attributes[spmd::kPartitioned] = annotations.boundaries.empty() ? spmd::kAlike : "manual";
  module.frontend_attributes[spmd::kResultSharding] = module.entry()->root()->sharding->ToString();
  module.frontend_attributes.erase("xla.sdy.meshes");
  module.allow_spmd_sharding_propagation_to_parameters.clear();
  module.allow_spmd_sharding_propagation_to_output.clear();
  for (hlo::Computation* computation : module.PostOrder()) RemoveDeadInstructions(computation);
  module.RemoveUnreachable();
  return true;
}

}  // namespace hlorun::passes
