#include "passes/expand/convolution.h"

#include <algorithm>
#include <numeric>

#include "hlo/builder.h"
#include "passes/expand/convolution_steps.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Gradients of weights have windows of thousands of positions and outputs of 1 to 49; below the ratio a direct kernel
// does as well, above the count the program grows too large.
constexpr int64_t kLargestPositionCount = 64;
constexpr int64_t kWindowToPositions = 2;

int64_t Product(const Dims& sizes) { return hlo::CheckedProduct(sizes); }

bool HasOneGroup(const ConvolutionParts& parts) {
  return parts.attributes.feature_group_count == 1 && parts.attributes.batch_group_count == 1;
}

bool IsPointwise(const ConvolutionParts& parts) {
  const auto& window = parts.attributes.window;
  return HasOneGroup(parts) &&
         std::all_of(window.begin(), window.end(), [](const hlo::WindowDimension& w) { return w.size == 1; });
}

// The windows lie side by side: every element of the input is read once at most.
bool IsPatches(const ConvolutionParts& parts) {
  const auto& window = parts.attributes.window;
  return HasOneGroup(parts) && HasPlainPadding(parts) &&
         std::all_of(window.begin(), window.end(), [](const hlo::WindowDimension& w) {
           return w.size == w.stride && w.window_dilation == 1 && w.padding_low == 0 && w.padding_high == 0;
         });
}

bool HasLargeWindow(const ConvolutionParts& parts) {
  return parts.attributes.feature_group_count == 1 &&
         Product(parts.WindowSizes()) >= kWindowToPositions * Product(parts.OutputSpatial());
}

// Gradients of grouped weights do so however small their window is: no other kernel takes them as they are.
bool GoesOverWindow(Instruction* convolution, const ConvolutionParts& parts, const KernelModel& kernels) {
  return (parts.attributes.batch_group_count > 1 || HasLargeWindow(parts)) && kernels.SumsOverWindow(*convolution);
}

bool IsSumOverWindow(const ConvolutionParts& parts) {
  return HasLargeWindow(parts) && Product(parts.OutputSpatial()) <= kLargestPositionCount;
}

bool GoesByTaps(const ConvolutionParts& parts, const KernelModel& kernels) {
  return kernels.WantsManyFeatures() && HasOneGroup(parts) && HasFewFeatures(parts);
}

bool IsFinal(Instruction* convolution, const KernelModel& kernels) {
  const ConvolutionParts parts(convolution);
  if (IsConvolutionOverWindow(*convolution)) return GoesOverWindow(convolution, parts, kernels);
  return IsCanonicalConvolution(*convolution) && kernels.GroupsTogether(*convolution) == 1 &&
         kernels.FeaturesToAdd(*convolution) == 0 && kernels.CopiesOfChannels(*convolution) == 1 &&
         !IsPointwise(parts) && !IsPatches(parts) && !IsSumOverWindow(parts) && !HasPlanes(parts) &&
         !GoesByTaps(parts, kernels);
}

void Canonicalize(Instruction* convolution, const KernelModel& kernels) {
  hlo::Builder build(convolution->parent(), convolution);
  build.before = convolution;
  ConvolutionParts parts(convolution);
  const bool goes_over_window = GoesOverWindow(convolution, parts, kernels);
  if (!goes_over_window) BatchGroupsToFeatureGroups(parts, build);
  ReverseKernel(parts, build);
  int64_t added = 0;
  if (convolution->As<hlo::attr::Convolution>().batch_group_count == 1) {
    MergeFeatureGroups(parts, kernels.GroupsTogether(*convolution), build);
    added = kernels.FeaturesToAdd(*convolution);
    AddFeatures(parts, added, build);
    RepeatChannels(parts, kernels.CopiesOfChannels(*convolution), build);
  }
  AddUnitSpatialDimensions(parts, build);
  Instruction* result = nullptr;
  std::vector<Instruction*> rest;
  if (HasPhases(parts)) {
    result = InterleavedPhases(parts, build, rest);
  } else if (IsPointwise(parts)) {
    PadInput(parts, build);
    result = PointwiseToDot(parts, build);
  } else if (IsPatches(parts)) {
    result = DotOverPatches(parts, build);
  } else if (goes_over_window) {
    result = ConvolutionOverWindow(parts, build);
  } else if (IsSumOverWindow(parts)) {
    PadInput(parts, build);
    result = DotForEachPosition(parts, build);
  } else if (GoesByTaps(parts, kernels)) {
    result = SumOfTaps(parts, build);
  } else if (HasPlanes(parts)) {
    result = ConvolutionOfPlanes(parts, build, rest);
  } else {
    if (!HasPlainPadding(parts)) PadInput(parts, build);
    result = TransposeIntoForm(parts, build);
  }
  result = WithoutAddedFeatures(result, parts, added, build);
  if (!result->shape().SameAs(convolution->shape())) result = build.Reshape(result, convolution->shape().dimensions());
  convolution->parent()->Replace(convolution, result);
  for (Instruction* convolution_left : rest) {
    if (!IsFinal(convolution_left, kernels)) Canonicalize(convolution_left, kernels);
  }
}

}  // namespace

bool IsCanonicalConvolution(const Instruction& convolution) {
  const auto& attributes = convolution.As<hlo::attr::Convolution>();
  const auto& window = attributes.window;
  const auto rank = static_cast<int64_t>(window.size()) + 2;
  std::vector<int64_t> spatial(window.size());
  std::iota(spatial.begin(), spatial.end(), 1);
  std::vector<int64_t> kernel_spatial(window.size());
  std::iota(kernel_spatial.begin(), kernel_spatial.end(), 0);
  const hlo::attr::ConvolutionDimensions form{0, rank - 1, spatial, rank - 2, rank - 1, kernel_spatial,
                                              0, rank - 1, spatial};
  const bool plain = std::all_of(window.begin(), window.end(), [](const hlo::WindowDimension& w) {
    return w.padding_low >= 0 && w.padding_high >= 0 && w.base_dilation == 1 && !w.window_reversal;
  });
  return rank >= 4 && rank <= 5 && plain && attributes.batch_group_count == 1 && attributes.dimensions == form;
}

bool IsConvolutionOverWindow(const Instruction& convolution) {
  const auto& attributes = convolution.As<hlo::attr::Convolution>();
  const auto rank = static_cast<int64_t>(attributes.window.size()) + 2;
  std::vector<int64_t> spatial(attributes.window.size()), taps(spatial.size());
  std::iota(spatial.begin(), spatial.end(), 1);
  std::iota(taps.begin(), taps.end(), 0);
  const hlo::attr::ConvolutionDimensions form{rank - 1, 0, spatial, 0, rank - 1, spatial, rank - 2, rank - 1, taps};
  return attributes.dimensions == form && std::none_of(attributes.window.begin(), attributes.window.end(),
                                                       [](const hlo::WindowDimension& w) { return w.window_reversal; });
}

bool CanonicalizeConvolutions::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kConvolution) || !instruction->operand(0)->shape().IsStatic()) continue;
      if (instruction->shape().ElementCount() == 0) {
        computation->Replace(instruction, hlo::Builder(computation, instruction).Splat(instruction->shape(), 0.0));
      } else if (!IsFinal(instruction, context.kernels)) {
        Canonicalize(instruction, context.kernels);
      } else {
        continue;
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
