// Instruction -> kernels. The one door between plan building and code generation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/plan.h"
#include "hlo/device_spec.h"
#include "hlo/instruction.h"
#include "passes/kernel_model.h"
#include "passes/options.h"

namespace hlorun::opencl {

struct ScheduledKernel;

// What a kernel parameter points to, seen from the instruction.
struct ArgumentRef {
  // kComputed: what the instruction's fused computation makes of operands; no argument of a launch
  // (kernels/computed_operand.h).
  enum class Kind : uint8_t { kOperand, kResult, kScratch, kComputed };
  Kind kind = Kind::kOperand;
  int64_t number = 0;  // operand number, or result leaf; 0 for scratch; kComputed: operand number of the hero
  int64_t offset = 0;  // bytes into that array (scratch is one block for all kernels of the instruction)
  int64_t bytes = 0;   // 0: to the end
  bool written = false;
};

struct EmittedLaunch {
  std::string source;     // OpenCL C: one __kernel called kKernelName; equal text means equal kernels
  std::string kernel_ir;  // for dumps
  Grid grid;
  std::vector<ArgumentRef> arguments;
  std::vector<bool> overwritten;  // by argument: it is stored to, and nothing of it is loaded; empty: none is
  StepRole role = StepRole::kWork;
  std::shared_ptr<const ScheduledKernel> kernel;  // what `source` prints; null where it is made of text

  // Whether nothing is loaded of what is stored to.
  bool Overwrites() const;
};
inline constexpr const char* kKernelName = "hlorun_kernel";

// For result leaf i: the operand whose slice it shares exactly, or -1. Behind these any other operands that lie in such
// a slice: what a loop passes on or a bitcast renames is another value in one place.
using AliasPattern = std::vector<int64_t>;

struct EmitContext {
  const DeviceSpec& device;
  const CompileOptions& options;
};

// The launches, in order, that compute `instruction` (a fusion or a single op of an executed computation). Throws Error
// kUnimplemented naming the instruction when there is no emitter for it.
// The first launches of kInPlace and kScatter, and of products that store a part, copy the array that they update to
// the result, where `aliases` does not say that the two are one.
std::vector<EmittedLaunch> EmitInstruction(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                           const EmitContext& context);

// out[i] = f(a[i], b[i]) over `count` elements for a reducer that is no single opcode; three pointers.
EmittedLaunch EmitElementwiseReducer(const hlo::Computation& reducer, hlo::ElementType type, int64_t count,
                                     const EmitContext& context);

// Support, scratch and sharing as the emitters have them. For one thread at a time.
class OpenClKernelModel : public passes::KernelModel {
 public:
  OpenClKernelModel(const DeviceSpec& device, const CompileOptions& options) : device_(device), options_(options) {}
  bool Supports(const hlo::Instruction& instruction) const override;
  int64_t ScratchBytes(const hlo::Instruction& instruction) const override;
  std::vector<int64_t> CopiedOperands(const hlo::Instruction& instruction) const override;
  bool RunsAlone(const hlo::Instruction& instruction) const override;
  bool ComputesOperand(const hlo::Instruction& product, int64_t of_dot, const hlo::Instruction& made) const override;
  int64_t RowsFinishedTogether(const hlo::Instruction& dot) const override;
  bool RunsBesideOthers(const hlo::Instruction& instruction) const override;
  bool MayShareBuffer(const hlo::Instruction& instruction, int64_t operand, int64_t result_leaf) const override;
  bool BoundsContraction(const hlo::Instruction& instruction) const override;
  bool SumsOverWindow(const hlo::Instruction& convolution) const override;
  bool HasFftKernel(hlo::ElementType type, int64_t points, int64_t columns) const override;
  int64_t GroupsTogether(const hlo::Instruction& convolution) const override;
  int64_t FeaturesToAdd(const hlo::Instruction& convolution) const override;
  int64_t CopiesOfChannels(const hlo::Instruction& convolution) const override;
  bool WantsManyFeatures() const override { return device_.device_class == DeviceClass::kCpu; }

 private:
  DeviceSpec device_;
  CompileOptions options_;
  // Of fusions of tiles, by what they do: passes ask several times, and each answer takes a small compilation.
  mutable std::map<std::string, int64_t> scratch_of_tiles_;
};

}  // namespace hlorun::opencl
