// --dump_to: every stage of a compilation as files, named as XLA names them.
#pragma once

#include <string>

#include "backends/opencl/plan.h"
#include "hlo/module.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::opencl {

// Writes DIR/module_0000.NAME.STAGE.txt; the number counts the modules this process dumped. Does nothing when the folder
// is empty.
class Dump {
 public:
  Dump(std::string folder, std::string pass_re, const std::string& module_name);
  bool enabled() const { return !folder_.empty(); }
  void Module(const hlo::Module& module, const std::string& stage) const;
  // After a pass whose name matches the regular expression.
  void AfterPass(const hlo::Module& module, const std::string& pass);
  void Buffers(const passes::BufferAssignment& buffers) const;
  // The plan, and each kernel as kernel IR (.kir) and OpenCL C (.cl).
  void PlanAndKernels(const Plan& plan) const;

 private:
  void Write(const std::string& suffix, const std::string& text) const;
  std::string folder_, pass_re_, prefix_;
  int pass_number_ = 0;
};

}  // namespace hlorun::opencl
