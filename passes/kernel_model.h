// What passes must know of kernels, implemented by backends: which forms they run, what they need, what they cost.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/device_spec.h"
#include "hlo/instruction.h"

namespace hlorun::passes {

class KernelModel {
 public:
  virtual ~KernelModel() = default;

  // Whether a kernel exists that computes `instruction` as it stands (opcode, types, attributes).
  virtual bool Supports(const hlo::Instruction& instruction) const = 0;

  // Scratch memory that the kernels of `instruction` need besides operands and results, bytes. Buffer assignment gives
  // it an arena slice that lives while the instruction runs.
  virtual int64_t ScratchBytes(const hlo::Instruction& instruction) const = 0;

  // The operands of which the kernels of `instruction` first make copies in scratch, each of nothing but that operand's
  // elements (a product's panels). Instructions that copy one array may share scratch, so that the copy is made once.
  virtual std::vector<int64_t> CopiedOperands(const hlo::Instruction&) const { return {}; }

  // Whether a library, or the host, computes `instruction`: alone, so that nothing may be fused with it.
  virtual bool RunsAlone(const hlo::Instruction&) const { return false; }

  // Whether the kernels of `product`, a dot or a fusion of one, read each element of the dot's operand number `of_dot`
  // about once, in whole runs of its last dimension, so that they may as well compute `made`: what makes it, or
  // something that it is made of.
  virtual bool ComputesOperand(const hlo::Instruction& /*product*/, int64_t /*of_dot*/,
                               const hlo::Instruction& /*made*/) const {
    return false;
  }

  // How many neighbouring rows of the result of `dot`, from a multiple of so many on, its kernels finish one after
  // another, so that they may store what those are reduced to instead; 0: none.
  virtual int64_t RowsFinishedTogether(const hlo::Instruction& /*dot*/) const { return 0; }

  // Whether the kernel of `instruction` may have some of a launch's work-groups, beside kernels that have the others.
  virtual bool RunsBesideOthers(const hlo::Instruction&) const { return true; }

  // Whether result leaf `result_leaf` may share the buffer of operand `operand` (each element is read before, and only
  // by the work-item that overwrites it).
  virtual bool MayShareBuffer(const hlo::Instruction& instruction, int64_t operand, int64_t result_leaf) const = 0;

  // Whether the kernel of `instruction`, a dot or a cumulative op, reads no operand beyond a size that its contraction
  // (its running value) is given.
  virtual bool BoundsContraction(const hlo::Instruction&) const { return false; }

  // Whether a kernel computes `convolution` once it is brought to the form f01b_i01o->01bf: a window larger than its
  // result, which is the gradient of another one's weights.
  virtual bool SumsOverWindow(const hlo::Instruction& /*convolution*/) const { return false; }

  // Whether kernels of convolutions fill their vectors with features, so that one of a few is better a product with all
  // taps' weights side by side, and a sum of the taps.
  virtual bool WantsManyFeatures() const { return false; }

  // Whether a kernel makes complex Fourier transforms of `points` numbers of that real type
  // (passes/expand/fft_stages.h), which lie side by side or, of so many transforms at once, `columns` apart.
  virtual bool HasFftKernel(hlo::ElementType /*type*/, int64_t /*points*/, int64_t /*columns*/) const { return false; }

  // How many feature groups of `convolution` a kernel wants as one, whose weights are zero between them; 1: as they
  // are.
  virtual int64_t GroupsTogether(const hlo::Instruction& /*convolution*/) const { return 1; }

  // How many features, of weights of zero, a kernel wants behind those of each feature group of `convolution`; 0 where
  // groups are to be merged.
  virtual int64_t FeaturesToAdd(const hlo::Instruction& /*convolution*/) const { return 0; }

  // How often a kernel wants each channel of `convolution`, which is a feature group of its own, side by side: once for
  // each of its features; 1: as they are.
  virtual int64_t CopiesOfChannels(const hlo::Instruction& /*convolution*/) const { return 1; }
};

// Whether a custom-call says (output_to_operand_aliasing) that result leaf `result_leaf` lies where `operand` does.
bool AliasesOperand(const hlo::Instruction& instruction, int64_t operand, int64_t result_leaf);

// The model of a backend with no kernels of its own: everything is supported but what has an expander instead,
// elementwise results may share. hlo-opt uses it when no backend is linked in, and tests of passes do.
class GenericKernelModel : public KernelModel {
 public:
  bool Supports(const hlo::Instruction& instruction) const override { return !instruction.Is(hlo::Opcode::kTopK); }
  int64_t ScratchBytes(const hlo::Instruction&) const override { return 0; }
  bool MayShareBuffer(const hlo::Instruction& instruction, int64_t operand, int64_t result_leaf) const override;
};

}  // namespace hlorun::passes
