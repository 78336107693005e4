// A module taken through the memory passes, as the pipeline does it.
#pragma once

#include <memory>
#include <string_view>

#include "hlo/text/parser.h"
#include "passes/generic_context.h"
#include "passes/kernel_model.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/flatten_control.h"
#include "passes/memory/rematerialize.h"
#include "passes/memory/schedule.h"
#include "passes/pass.h"

namespace hlorun::passes {

struct Planned {
  std::unique_ptr<hlo::Module> module;
  BufferAssignment buffers;
  GenericKernelModel kernels;
  std::vector<Remark> remarks;
};

// `first` runs before the schedule; the plan is to take at most `limit` bytes, 0 for no limit.
template <typename... First>
Planned PlanMemoryWithin(int64_t limit, std::string_view text, First... first) {
  Planned planned;
  planned.module = hlo::ParseModule(text, {.file_name = "<test>", .fill_elided = true});
  CompileOptions options;
  options.memory_limit = limit;
  GenericContext context(options, {}, planned.kernels);
  (first.Run(*planned.module, context), ...);
  FlattenControl().Run(*planned.module, context);
  if (!planned.module->is_scheduled) Schedule().Run(*planned.module, context);
  Rematerialize().Run(*planned.module, context);
  CopyInsertion().Run(*planned.module, context);
  planned.buffers = AssignBuffers(*planned.module, context);
  planned.remarks = std::move(context.remarks);
  return planned;
}

template <typename... First>
Planned PlanMemory(std::string_view text, First... first) {
  return PlanMemoryWithin(0, text, first...);
}

inline int64_t CountOf(const hlo::Module& module, hlo::Opcode opcode) {
  int64_t count = 0;
  for (const hlo::Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) count += instruction->Is(opcode) ? 1 : 0;
  }
  return count;
}

}  // namespace hlorun::passes
