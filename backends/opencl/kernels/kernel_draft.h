// A kernel in the making: kernel IR and what its parameters point to, before a schedule makes a launch of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/codegen/kernel_ir.h"
#include "backends/opencl/codegen/named_source.h"

namespace hlorun::opencl {

// The parameters of a kernel, each with what it points to.
class KernelParameters {
 public:
  ir::BufferRef Add(const std::string& name, hlo::ElementType storage, int64_t elements, const ArgumentRef& argument);
  const std::vector<ir::BufferRef>& buffers() const { return buffers_; }
  const std::vector<ArgumentRef>& arguments() const { return arguments_; }

 private:
  std::vector<ir::BufferRef> buffers_;
  std::vector<ArgumentRef> arguments_;
};

// Part of the instruction's scratch block.
ArgumentRef ScratchSlice(int64_t offset, int64_t bytes, bool written);

struct KernelDraft {
  ir::Function function;
  std::vector<ArgumentRef> arguments;
  StepRole role = StepRole::kWork;
};

// Those of the table that are named, in its order.
std::vector<ir::Helper> HelpersNamed(std::span<const NamedSource> table, std::span<const std::string_view> names);

KernelDraft MakeDraft(const std::string& name, const KernelParameters& parameters, ir::Stmt body,
                      std::vector<ir::Helper> helpers = {});
// The same kernel, known as one that only packs (StepRole::kPacking).
KernelDraft Packing(KernelDraft draft);

// Scheduled for the device and printed.
EmittedLaunch MakeLaunch(const KernelDraft& draft, const EmitContext& context);

}  // namespace hlorun::opencl
