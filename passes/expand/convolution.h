// Brings every convolution to the form that kernels take, or makes it a dot.
//
// What kernels see: two spatial dimensions (three where windows are long or depthwise), input NHWC, kernel HWIO, output
// NHWC (b01f_01io->b01f), padding not negative, no base dilation, no reversal, one batch group. Feature groups may
// remain.
//   - batch groups become feature groups; reversed windows reverse the kernel;
//   - base dilation (a transposed convolution, the input's gradient of a strided one) becomes an interleaving of
//     convolutions of the base itself, or an interior pad where strides are in the way;
//   - several small feature groups become one with weights of zero between them, where a kernel wants that;
//   - a window of one element, and no spatial dimensions at all, become a dot over the features;
//   - windows side by side (a patch embedding: window 16x16, stride 16x16) become a dot over the patches;
//   - few features of many channels (an image's colours) become a dot with all taps' weights and a sum of the taps,
//     where kernels want many features;
//   - a window much larger than the output (the gradient of the weights: f01b_i01o->01bf, window 56x56, output 3x3)
//     is brought to that form where a kernel takes it, else becomes one dot for each output position, over a slice of
//     the padded input: it contracts batch and positions;
//   - the first of three spatial dimensions becomes part of batch and channels: what is left has two;
//   - everything else is transposed into the form.
#pragma once

#include "hlo/instruction.h"
#include "passes/pass.h"

namespace hlorun::passes {

class CanonicalizeConvolutions : public Pass {
 public:
  std::string_view name() const override { return "canonicalize-convolutions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// Whether `convolution` has the form that kernels take.
bool IsCanonicalConvolution(const hlo::Instruction& convolution);
// The form of weights' gradients: f01b_i01o->01bf.
bool IsConvolutionOverWindow(const hlo::Instruction& convolution);

}  // namespace hlorun::passes
