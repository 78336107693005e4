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
#include "passes/memory/schedule.h"
#include "passes/pass.h"

namespace hlorun::passes {

struct Planned {
  std::unique_ptr<hlo::Module> module;
  BufferAssignment buffers;
  GenericKernelModel kernels;
};

template <typename... First>
Planned PlanMemory(std::string_view text, First... first) {
  Planned planned;
  planned.module = hlo::ParseModule(text, {.file_name = "<test>", .fill_elided = true});
  GenericContext context(planned.kernels);
  (first.Run(*planned.module, context), ...);
  FlattenControl().Run(*planned.module, context);
  Schedule().Run(*planned.module, context);
  CopyInsertion().Run(*planned.module, context);
  planned.buffers = AssignBuffers(*planned.module, context);
  return planned;
}

inline int64_t CountOf(const hlo::Module& module, hlo::Opcode opcode) {
  int64_t count = 0;
  for (const hlo::Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) count += instruction->Is(opcode) ? 1 : 0;
  }
  return count;
}

}  // namespace hlorun::passes
