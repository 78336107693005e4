#include "backends/opencl/kernels/kernel_draft.h"

#include <algorithm>

#include "backends/opencl/codegen/opencl_c.h"
#include "backends/opencl/codegen/schedule.h"

namespace hlorun::opencl {

ir::BufferRef KernelParameters::Add(const std::string& name, hlo::ElementType storage, int64_t elements,
                                    const ArgumentRef& argument) {
  buffers_.push_back(ir::MakeBuffer(name, storage, elements, ir::Buffer::Space::kGlobal, argument.written));
  arguments_.push_back(argument);
  return buffers_.back();
}

ArgumentRef ScratchSlice(int64_t offset, int64_t bytes, bool written) {
  return {.kind = ArgumentRef::Kind::kScratch, .number = 0, .offset = offset, .bytes = bytes, .written = written};
}

std::vector<ir::Helper> HelpersNamed(std::span<const NamedSource> table, std::span<const std::string_view> names) {
  std::vector<ir::Helper> helpers;
  for (const NamedSource& function : table) {
    if (std::find(names.begin(), names.end(), function.name) != names.end())
      helpers.push_back({std::string(function.name), function.source});
  }
  return helpers;
}

KernelDraft MakeDraft(const std::string& name, const KernelParameters& parameters, ir::Stmt body,
                      std::vector<ir::Helper> helpers) {
  KernelDraft draft;
  draft.function.name = name;
  draft.function.parameters = parameters.buffers();
  draft.function.body = std::move(body);
  draft.function.helpers = std::move(helpers);
  draft.arguments = parameters.arguments();
  return draft;
}

KernelDraft Packing(KernelDraft draft) {
  draft.role = StepRole::kPacking;
  return draft;
}

EmittedLaunch MakeLaunch(const KernelDraft& draft, const EmitContext& context) {
  ScheduledKernel scheduled = Schedule(draft.function, context.device);
  EmittedLaunch launch;
  launch.kernel_ir = ir::ToString(scheduled.function);
  launch.overwritten = ir::OverwrittenParameters(draft.function);
  scheduled.function.name = kKernelName;
  launch.source = ToOpenClC(scheduled, context.device);
  launch.grid = scheduled.grid;
  launch.arguments = draft.arguments;
  launch.role = draft.role;
  launch.kernel = std::make_shared<const ScheduledKernel>(std::move(scheduled));
  return launch;
}

}  // namespace hlorun::opencl
