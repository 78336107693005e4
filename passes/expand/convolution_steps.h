// The steps of CanonicalizeConvolutions: each takes a convolution apart further, or puts its result together.
#pragma once

#include "hlo/builder.h"

namespace hlorun::passes {

// A convolution that is being rewritten.
struct ConvolutionParts {
  explicit ConvolutionParts(hlo::Instruction* convolution);

  hlo::Instruction* input;
  hlo::Instruction* kernel;
  hlo::attr::Convolution attributes;
  hlo::Shape output;  // of the convolution as it stands now

  int64_t spatial_rank() const { return static_cast<int64_t>(attributes.window.size()); }
  hlo::Dims OutputSpatial() const;
  hlo::Dims WindowSizes() const;
};

void BatchGroupsToFeatureGroups(ConvolutionParts& parts, hlo::Builder& build);
// Window reversal, and dilation of windows of one element, which means nothing.
void ReverseKernel(ConvolutionParts& parts, hlo::Builder& build);
// `together` neighbouring feature groups as one, whose weights are zero between what were groups.
void MergeFeatureGroups(ConvolutionParts& parts, int64_t together, hlo::Builder& build);
// `added` features with weights of zero behind those of each feature group; and a result, in the order of parts.output,
// without them.
void AddFeatures(ConvolutionParts& parts, int64_t added, hlo::Builder& build);
hlo::Instruction* WithoutAddedFeatures(hlo::Instruction* result, const ConvolutionParts& parts, int64_t added,
                                       hlo::Builder& build);
// `copies` of each channel, which is a feature group, side by side: one group a feature.
void RepeatChannels(ConvolutionParts& parts, int64_t copies, hlo::Builder& build);
// Up to two spatial dimensions.
void AddUnitSpatialDimensions(ConvolutionParts& parts, hlo::Builder& build);
// Padding is not negative and the base not dilated.
bool HasPlainPadding(const ConvolutionParts& parts);
// All padding and base dilation, by a pad of the input.
void PadInput(ConvolutionParts& parts, hlo::Builder& build);

// Whether the base's dilation is an interleaving of convolutions without it: no strides or dilated windows beside it.
bool HasPhases(const ConvolutionParts& parts);

// Each returns the output in the convolution's own dimension order (parts.output).
// Of d consecutive outputs along a base dilated by d each meets every d-th element of the window, another one each: one
// convolution of the base itself for each of them (appended to `phases`, in need of canonicalization), their results
// interleaved. A window of one element meets every d-th output only.
hlo::Instruction* InterleavedPhases(const ConvolutionParts& parts, hlo::Builder& build,
                                    std::vector<hlo::Instruction*>& phases);
// Window of one element, no padding left.
hlo::Instruction* PointwiseToDot(ConvolutionParts& parts, hlo::Builder& build);
// Windows side by side, one feature group, no padding.
hlo::Instruction* DotOverPatches(ConvolutionParts& parts, hlo::Builder& build);
// One feature group, no padding left.
hlo::Instruction* DotForEachPosition(ConvolutionParts& parts, hlo::Builder& build);
// Few features of many channels, without strides: one dot for all taps, whose results lie side by side, and the sum of
// those, each moved to its place. Few enough that less is written between the two than was read.
bool HasFewFeatures(const ConvolutionParts& parts);
hlo::Instruction* SumOfTaps(ConvolutionParts& parts, hlo::Builder& build);
// f01b_i01o->01bf.
hlo::Instruction* ConvolutionOverWindow(ConvolutionParts& parts, hlo::Builder& build);
// Whether the first of three spatial dimensions or more can go: its positions into the batch, its part of the window
// into the channels, of which the input then holds a copy for each element of that part.
bool HasPlanes(const ConvolutionParts& parts);
// The convolution of what is left is appended to `rest`, in need of canonicalization.
hlo::Instruction* ConvolutionOfPlanes(ConvolutionParts& parts, hlo::Builder& build,
                                      std::vector<hlo::Instruction*>& rest);
hlo::Instruction* TransposeIntoForm(ConvolutionParts& parts, hlo::Builder& build);

}  // namespace hlorun::passes
