// Convolutions over one or two spatial dimensions, and fusions of one with elementwise consumers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// The launches that compute `instruction` (passes::KernelKind::kConvolution); nullopt: not in a form that these kernels
// know (b01f_01io->b01f or f01b_i01o->01bf; feature groups that are not too small), the generic emitter takes it.
std::optional<std::vector<EmittedLaunch>> EmitConvolution(const hlo::Instruction& instruction,
                                                          const AliasPattern& aliases, const EmitContext& context);

// Scratch that EmitConvolution's launches use: packed weights and each work-group's rows of the input.
int64_t ConvolutionScratchBytes(const hlo::Instruction& instruction, const EmitContext& context);

// As TunableProductOf (dot.h): a convolution that is computed as a product.
std::optional<ProductProblem> TunableConvolutionOf(const hlo::Instruction& instruction, const EmitContext& context);

// Whether a kernel sums over the window of `convolution`, once that is brought to the form f01b_i01o->01bf: the
// gradient of another one's weights.
bool HasWeightGradientKernel(const hlo::Instruction& convolution, const DeviceSpec& device);

// Feature groups that fill vectors together: how many of them are to be made one, with weights of zero between them.
int64_t FeatureGroupsTogether(const hlo::Instruction& convolution, const DeviceSpec& device);

// Feature groups that do so neither as they are nor together: how many features with weights of zero each lacks. 0
// where that would be too many, or another kernel takes them.
int64_t FeaturesToFillVectors(const hlo::Instruction& convolution, const DeviceSpec& device);

// Channels that are groups of their own and have several features each: how many, where a copy of the channel for each
// of them is worth its writing and reading, since vectors of channels then meet vectors of features. Else 1.
int64_t ChannelCopies(const hlo::Instruction& convolution, const DeviceSpec& device);

}  // namespace hlorun::opencl
