#include "passes/expand/convolution_steps.h"

#include <algorithm>
#include <numeric>

#include "hlo/module.h"
#include "hlo/permutation.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::WindowDimension;

namespace {

Instruction* Transposed(Instruction* x, const std::vector<int64_t>& permutation, hlo::Builder& build) {
  return hlo::IsIdentity(permutation) ? x : build.Transpose(x, permutation);
}

// batch, spatial..., feature of an array whose dimensions are labelled so.
std::vector<int64_t> Order(int64_t first, const std::vector<int64_t>& spatial, int64_t last) {
  std::vector<int64_t> order = {first};
  order.insert(order.end(), spatial.begin(), spatial.end());
  order.push_back(last);
  return order;
}

// From the order [batch, spatial..., feature] to the output's labels.
std::vector<int64_t> ToOutputOrder(const hlo::attr::ConvolutionDimensions& dimensions) {
  const std::vector<int64_t> order =
      Order(dimensions.output_batch, dimensions.output_spatial, dimensions.output_feature);
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

// The kernel as [taps..., channels, features].
void OrderKernel(ConvolutionParts& parts, hlo::Builder& build) {
  auto& labels = parts.attributes.dimensions;
  const int64_t spatial = parts.spatial_rank();
  std::vector<int64_t> order = labels.kernel_spatial;
  order.insert(order.end(), {labels.kernel_input_feature, labels.kernel_output_feature});
  parts.kernel = Transposed(parts.kernel, order, build);
  std::iota(labels.kernel_spatial.begin(), labels.kernel_spatial.end(), 0);
  labels.kernel_input_feature = spatial;
  labels.kernel_output_feature = spatial + 1;
}

// x with `extra` unit dimensions at the end.
Instruction* AppendUnits(Instruction* x, int64_t extra, hlo::Builder& build) {
  Dims dimensions = x->shape().dimensions();
  dimensions.resize(dimensions.size() + static_cast<size_t>(extra), 1);
  return build.Reshape(x, dimensions);
}

hlo::attr::Dot DotAttributes(const ConvolutionParts& parts) {
  hlo::attr::Dot dot;
  dot.precision = parts.attributes.precision;
  return dot;
}

// A spatial dimension of which output d * q + phase is asked for: the part of the window, and its padding.
struct Phase {
  int64_t first = 0;  // element of the window; then every d-th
  int64_t size = 0;   // elements; none: the outputs are zero
  int64_t low = 0, high = 0;
};

Phase PhaseOf(const WindowDimension& w, int64_t in, int64_t outputs, int64_t phase) {
  const int64_t d = w.base_dilation;
  Phase p;
  // Output o meets window element t where o + t - low is a multiple of d.
  p.first = ((w.padding_low - phase) % d + d) % d;
  p.size = p.first < w.size ? (w.size - p.first + d - 1) / d : 0;
  p.low = (w.padding_low - phase - p.first) / d;
  p.high = outputs + p.size - 1 - in - p.low;
  return p;
}

// The convolution of the base itself that gives output `at[i]` of each d along spatial dimension i.
Instruction* ConvolutionOfPhase(const ConvolutionParts& parts, const Dims& at, const Dims& sizes, hlo::Builder& build) {
  const auto& labels = parts.attributes.dimensions;
  hlo::attr::Convolution attributes = parts.attributes;
  const Dims& kernel = parts.kernel->shape().dimensions();
  Dims starts(kernel.size(), 0), limits = kernel, strides(kernel.size(), 1);
  for (size_t i = 0; i < at.size(); ++i) {
    WindowDimension& w = attributes.window[i];
    if (w.base_dilation == 1) continue;
    const auto output = static_cast<size_t>(labels.output_spatial[i]),
               tap = static_cast<size_t>(labels.kernel_spatial[i]);
    const Phase phase = PhaseOf(w, parts.input->shape().dimension(labels.input_spatial[i]), sizes[output], at[i]);
    if (phase.size == 0) return build.Broadcast(build.ScalarConstant(parts.output.element_type(), 0.0), sizes, {});
    starts[tap] = phase.first;
    strides[tap] = w.base_dilation;
    w.size = phase.size;
    w.padding_low = phase.low;
    w.padding_high = phase.high;
    w.base_dilation = 1;
  }
  Instruction* taps = build.Slice(parts.kernel, starts, limits, strides);
  return build.Make(Opcode::kConvolution, {parts.input, taps}, attributes, {},
                    hlo::Shape(parts.output.element_type(), sizes));
}

// [batch * planes, spatial..., features], where a group's features are those of all planes that one output plane meets.
Instruction* PlanesSideBySide(const ConvolutionParts& parts, hlo::Builder& build) {
  const hlo::attr::ConvolutionDimensions& labels = parts.attributes.dimensions;
  const WindowDimension& depth = parts.attributes.window[0];
  const int64_t groups = parts.attributes.feature_group_count, outputs = parts.OutputSpatial()[0];
  Instruction* input =
      Transposed(parts.input, Order(labels.input_batch, labels.input_spatial, labels.input_feature), build);
  if (depth.padding_low != 0 || depth.padding_high != 0 || depth.base_dilation != 1) {
    std::vector<hlo::PaddingDimension> padding(static_cast<size_t>(input->shape().rank()));
    padding[1] = {depth.padding_low, depth.padding_high, depth.base_dilation - 1};
    input = build.Pad(input, build.ScalarConstant(input->shape().element_type(), 0.0), padding);
  }
  const Dims& sizes = input->shape().dimensions();
  Dims split = sizes;
  split[1] = outputs;
  split.back() = groups;
  split.push_back(sizes.back() / groups);
  std::vector<Instruction*> planes;
  for (int64_t tap = 0; tap < depth.size; ++tap) {
    Dims starts(sizes.size(), 0), limits = sizes, strides(sizes.size(), 1);
    starts[1] = tap * depth.window_dilation;
    limits[1] = starts[1] + (outputs - 1) * depth.stride + 1;
    strides[1] = depth.stride;
    planes.push_back(build.Reshape(build.Slice(input, starts, limits, strides), split));
  }
  Instruction* all = planes.size() == 1 ? planes[0] : build.Concatenate(planes, parts.spatial_rank() + 2);
  Dims merged = {sizes[0] * outputs};
  merged.insert(merged.end(), sizes.begin() + 2, sizes.end() - 1);
  merged.push_back(sizes.back() * depth.size);
  return build.Reshape(all, merged);
}

}  // namespace

ConvolutionParts::ConvolutionParts(Instruction* convolution)
    : input(convolution->operand(0)),
      kernel(convolution->operand(1)),
      attributes(convolution->As<hlo::attr::Convolution>()),
      output(convolution->shape().WithoutLayout()) {}

Dims ConvolutionParts::OutputSpatial() const {
  Dims sizes;
  for (int64_t d : attributes.dimensions.output_spatial) sizes.push_back(output.dimension(d));
  return sizes;
}

Dims ConvolutionParts::WindowSizes() const {
  Dims sizes;
  for (const WindowDimension& w : attributes.window) sizes.push_back(w.size);
  return sizes;
}

// Batch [g * b] with features [f] is batch [b] with features [g * f], where group i of the output features sees the
// i-th part of the batch only.
void BatchGroupsToFeatureGroups(ConvolutionParts& parts, hlo::Builder& build) {
  const int64_t groups = parts.attributes.batch_group_count;
  if (groups == 1) return;
  auto& dimensions = parts.attributes.dimensions;
  const int64_t batch = dimensions.input_batch, feature = dimensions.input_feature;
  Dims split;
  std::vector<int64_t> permutation;
  int64_t group_dimension = -1;
  const hlo::Shape before = parts.input->shape();
  for (int64_t d = 0; d < before.rank(); ++d) {
    if (d == batch) {
      group_dimension = static_cast<int64_t>(split.size());
      split.push_back(groups);
    }
    split.push_back(d == batch ? before.dimension(d) / groups : before.dimension(d));
  }
  for (int64_t d = 0; d < before.rank(); ++d) {
    if (d == feature) permutation.push_back(group_dimension);
    permutation.push_back(d < batch ? d : d + 1);
  }
  Dims merged = before.dimensions();
  merged[static_cast<size_t>(batch)] /= groups;
  merged[static_cast<size_t>(feature)] *= groups;
  Instruction* x = build.Reshape(parts.input, split);
  parts.input = build.Reshape(Transposed(x, permutation, build), merged);
  parts.attributes.batch_group_count = 1;
  parts.attributes.feature_group_count = groups;
}

void ReverseKernel(ConvolutionParts& parts, hlo::Builder& build) {
  std::vector<int64_t> reversed;
  for (size_t i = 0; i < parts.attributes.window.size(); ++i) {
    WindowDimension& window = parts.attributes.window[i];
    if (window.window_reversal && window.size > 1) reversed.push_back(parts.attributes.dimensions.kernel_spatial[i]);
    window.window_reversal = false;
    if (window.size == 1) window.window_dilation = 1;
  }
  if (!reversed.empty()) parts.kernel = build.Reverse(parts.kernel, reversed);
}

void MergeFeatureGroups(ConvolutionParts& parts, int64_t together, hlo::Builder& build) {
  if (together == 1) return;
  OrderKernel(parts, build);
  const int64_t spatial = parts.spatial_rank(), groups = parts.attributes.feature_group_count / together;
  Instruction* kernel = parts.kernel;
  const int64_t channels = kernel->shape().dimension(spatial);
  const int64_t features = kernel->shape().dimension(spatial + 1) / (groups * together);
  // [taps..., of which group's channels, channel, merged group, group in it, feature], zero where the two groups
  // differ.
  Dims sizes = parts.WindowSizes(), merged = sizes;
  sizes.insert(sizes.end(), {channels, groups, together, features});
  kernel = build.Reshape(kernel, sizes);
  std::vector<int64_t> kept(static_cast<size_t>(spatial));
  std::iota(kept.begin(), kept.end(), 0);
  for (int64_t d = 1; d <= 4; ++d) kept.push_back(spatial + d);
  Dims wide = sizes;
  wide.insert(wide.begin() + spatial, together);
  const hlo::Shape numbers(hlo::ElementType::kS32, wide);
  Instruction* same =
      build.Compare(build.Iota(numbers, spatial), build.Iota(numbers, spatial + 3), hlo::ComparisonDirection::kEq);
  Instruction* zero = build.Splat(hlo::Shape(kernel->shape().element_type(), wide), 0.0);
  kernel = build.Select(same, build.Broadcast(kernel, wide, kept), zero);
  merged.insert(merged.end(), {together * channels, groups * together * features});
  parts.kernel = build.Reshape(kernel, merged);
  parts.attributes.feature_group_count = groups;
}

void AddFeatures(ConvolutionParts& parts, int64_t added, hlo::Builder& build) {
  if (added == 0) return;
  OrderKernel(parts, build);
  const auto last = static_cast<size_t>(parts.spatial_rank()) + 1;
  const int64_t groups = parts.attributes.feature_group_count;
  Dims together = parts.kernel->shape().dimensions(), apart = together;
  apart.back() = groups;
  apart.push_back(together.back() / groups);
  std::vector<hlo::PaddingDimension> padding(apart.size());
  padding.back().high = added;
  Instruction* zero = build.ScalarConstant(parts.kernel->shape().element_type(), 0.0);
  together[last] += groups * added;
  parts.kernel = build.Reshape(build.Pad(build.Reshape(parts.kernel, apart), zero, padding), together);
  Dims output = parts.output.dimensions();
  output[static_cast<size_t>(parts.attributes.dimensions.output_feature)] = together[last];
  parts.output = hlo::Shape(parts.output.element_type(), output);
}

Instruction* WithoutAddedFeatures(Instruction* result, const ConvolutionParts& parts, int64_t added,
                                  hlo::Builder& build) {
  if (added == 0) return result;
  auto feature = static_cast<size_t>(parts.attributes.dimensions.output_feature);
  // In front of a transpose, so that it may meet another one.
  std::vector<int64_t> permutation;
  if (result->Is(Opcode::kTranspose)) {
    permutation = result->dimensions();
    feature = static_cast<size_t>(permutation[feature]);
    result = result->operand(0);
  }
  const int64_t groups = parts.attributes.feature_group_count;
  Dims apart = result->shape().dimensions(), together = apart;
  const int64_t wide = apart[feature] / groups;
  apart[feature] = groups;
  apart.insert(apart.begin() + static_cast<int64_t>(feature) + 1, wide);
  Dims limits = apart;
  limits[feature + 1] = wide - added;
  together[feature] = groups * (wide - added);
  Instruction* own = build.Slice(build.Reshape(result, apart), Dims(apart.size(), 0), limits, Dims(apart.size(), 1));
  own = build.Reshape(own, together);
  return permutation.empty() ? own : build.Transpose(own, permutation);
}

void RepeatChannels(ConvolutionParts& parts, int64_t copies, hlo::Builder& build) {
  if (copies == 1) return;
  const int64_t feature = parts.attributes.dimensions.input_feature;
  Dims together = parts.input->shape().dimensions(), apart = together;
  apart.insert(apart.begin() + feature + 1, copies);
  together[static_cast<size_t>(feature)] *= copies;
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < parts.input->shape().rank(); ++d) kept.push_back(d <= feature ? d : d + 1);
  parts.input = build.Reshape(build.Broadcast(parts.input, apart, kept), together);
  parts.attributes.feature_group_count *= copies;
}

void AddUnitSpatialDimensions(ConvolutionParts& parts, hlo::Builder& build) {
  const int64_t missing = 2 - parts.spatial_rank();
  if (missing <= 0) return;
  auto& dimensions = parts.attributes.dimensions;
  for (int64_t i = 0; i < missing; ++i) {
    const int64_t d = parts.output.rank() + i;
    dimensions.input_spatial.push_back(d);
    dimensions.kernel_spatial.push_back(d);
    dimensions.output_spatial.push_back(d);
    parts.attributes.window.push_back(WindowDimension{});
  }
  parts.input = AppendUnits(parts.input, missing, build);
  parts.kernel = AppendUnits(parts.kernel, missing, build);
  Dims output = parts.output.dimensions();
  output.resize(output.size() + static_cast<size_t>(missing), 1);
  parts.output = hlo::Shape(parts.output.element_type(), output);
}

bool HasPlainPadding(const ConvolutionParts& parts) {
  const auto& window = parts.attributes.window;
  return std::all_of(window.begin(), window.end(), [](const WindowDimension& w) {
    return w.padding_low >= 0 && w.padding_high >= 0 && w.base_dilation == 1;
  });
}

void PadInput(ConvolutionParts& parts, hlo::Builder& build) {
  std::vector<hlo::PaddingDimension> padding(static_cast<size_t>(parts.input->shape().rank()));
  bool any = false;
  for (size_t i = 0; i < parts.attributes.window.size(); ++i) {
    WindowDimension& window = parts.attributes.window[i];
    padding[static_cast<size_t>(parts.attributes.dimensions.input_spatial[i])] = {
        window.padding_low, window.padding_high, window.base_dilation - 1};
    any |= window.padding_low != 0 || window.padding_high != 0 || window.base_dilation != 1;
    window.padding_low = window.padding_high = 0;
    window.base_dilation = 1;
  }
  if (!any) return;
  Instruction* zero = build.ScalarConstant(parts.input->shape().element_type(), 0.0);
  parts.input = build.Pad(parts.input, zero, padding);
}

bool HasPhases(const ConvolutionParts& parts) {
  constexpr int64_t kMostPhases = 16;
  int64_t phases = 1;
  for (const WindowDimension& w : parts.attributes.window) {
    if (w.base_dilation == 1) continue;
    if (w.stride != 1 || w.window_dilation != 1) return false;
    phases *= w.size == 1 ? 1 : std::min(w.base_dilation, kMostPhases + 1);
    if (phases > kMostPhases) return false;
  }
  return std::any_of(parts.attributes.window.begin(), parts.attributes.window.end(),
                     [](const WindowDimension& w) { return w.base_dilation > 1; });
}

namespace {

// In the order of parts.output.
Instruction* Interleaved(const ConvolutionParts& whole, hlo::Builder& build, std::vector<Instruction*>& phases) {
  const auto& labels = whole.attributes.dimensions;
  const auto rank = static_cast<size_t>(whole.output.rank());
  ConvolutionParts parts = whole;
  // What a window of one element leaves out is put between its outputs.
  std::vector<hlo::PaddingDimension> padding(rank);
  bool has_gaps = false;
  Dims sizes = whole.output.dimensions(), counts;
  std::vector<int64_t> factor(rank, 1);  // outputs side by side
  for (size_t i = 0; i < whole.attributes.window.size(); ++i) {
    WindowDimension& w = parts.attributes.window[i];
    const auto d = static_cast<size_t>(labels.output_spatial[i]);
    if (w.base_dilation > 1 && w.size == 1) {
      padding[d] = {w.padding_low, w.padding_high, w.base_dilation - 1};
      has_gaps = true;
      sizes[d] = whole.input->shape().dimension(labels.input_spatial[i]);
      w.padding_low = w.padding_high = 0;
      w.base_dilation = 1;
    } else if (w.base_dilation > 1) {
      factor[d] = w.base_dilation;
      sizes[d] = (sizes[d] + w.base_dilation - 1) / w.base_dilation;
    }
    counts.push_back(w.base_dilation);
  }
  // Each phase as [.., size, 1, ..]; then those of the last dimension side by side, then those of the one before.
  Dims split;
  std::vector<int64_t> side(rank, 0);  // where the dimension of a dimension's phases lies
  for (size_t d = 0; d < rank; ++d) {
    split.push_back(sizes[d]);
    side[d] = static_cast<int64_t>(split.size());
    if (factor[d] > 1) split.push_back(1);
  }
  std::vector<Instruction*> results;
  Dims at(counts.size(), 0);
  do {
    Instruction* phase = ConvolutionOfPhase(parts, at, sizes, build);
    if (phase->Is(Opcode::kConvolution)) phases.push_back(phase);
    results.push_back(split == sizes ? phase : build.Reshape(phase, split));
  } while (hlo::NextIndex(at, counts));
  for (size_t i = counts.size(); i-- > 0;) {
    if (counts[i] == 1) continue;
    std::vector<Instruction*> joined;
    for (size_t first = 0; first < results.size(); first += static_cast<size_t>(counts[i])) {
      const auto begin = results.begin() + static_cast<ptrdiff_t>(first);
      joined.push_back(
          build.Concatenate({begin, begin + counts[i]}, side[static_cast<size_t>(labels.output_spatial[i])]));
    }
    results = std::move(joined);
  }
  Instruction* result = results[0];
  Dims merged = sizes;
  for (size_t d = 0; d < rank; ++d) merged[d] *= factor[d];
  if (result->shape().dimensions() != merged) result = build.Reshape(result, merged);
  Dims limits = merged;
  for (size_t d = 0; d < rank; ++d) {
    if (factor[d] > 1) limits[d] = whole.output.dimension(static_cast<int64_t>(d));
  }
  if (limits != merged) result = build.Slice(result, Dims(rank, 0), limits, Dims(rank, 1));
  if (!has_gaps) return result;
  return build.Pad(result, build.ScalarConstant(whole.output.element_type(), 0.0), padding);
}

}  // namespace

// Where the features come last whole runs of them lie side by side, and one transpose brings all to another order.
Instruction* InterleavedPhases(const ConvolutionParts& parts, hlo::Builder& build, std::vector<Instruction*>& phases) {
  const hlo::attr::ConvolutionDimensions labels = parts.attributes.dimensions;
  ConvolutionParts last = parts;
  Dims sizes;
  for (const int64_t d : Order(labels.output_batch, labels.output_spatial, labels.output_feature))
    sizes.push_back(parts.output.dimension(d));
  last.output = hlo::Shape(parts.output.element_type(), sizes);
  hlo::attr::ConvolutionDimensions& form = last.attributes.dimensions;
  form.output_batch = 0;
  form.output_feature = parts.output.rank() - 1;
  std::iota(form.output_spatial.begin(), form.output_spatial.end(), 1);
  return Transposed(Interleaved(last, build, phases), ToOutputOrder(labels), build);
}

Instruction* PointwiseToDot(ConvolutionParts& parts, hlo::Builder& build) {
  const auto& dimensions = parts.attributes.dimensions;
  // Strides without a window: the elements that are read.
  const Dims& sizes = parts.input->shape().dimensions();
  Dims starts(sizes.size(), 0), limits = sizes, strides(sizes.size(), 1);
  for (size_t i = 0; i < parts.attributes.window.size(); ++i) {
    const auto d = static_cast<size_t>(dimensions.input_spatial[i]);
    strides[d] = parts.attributes.window[i].stride;
    const int64_t count = parts.OutputSpatial()[i];
    limits[d] = count == 0 ? 0 : (count - 1) * strides[d] + 1;
  }
  Instruction* input = parts.input;
  if (limits != sizes || strides != Dims(sizes.size(), 1)) input = build.Slice(input, starts, limits, strides);

  const int64_t in = dimensions.kernel_input_feature, out = dimensions.kernel_output_feature;
  const hlo::Shape& weights = parts.kernel->shape();
  const bool in_first = in < out;
  const Dims matrix = in_first ? Dims{weights.dimension(in), weights.dimension(out)}
                               : Dims{weights.dimension(out), weights.dimension(in)};
  hlo::attr::Dot dot = DotAttributes(parts);
  dot.lhs_contracting = {dimensions.input_feature};
  dot.rhs_contracting = {in_first ? 0 : 1};
  Instruction* product = build.Dot(input, build.Reshape(parts.kernel, matrix), dot, parts.output.element_type());

  // The product's dimensions: those of the input without its feature, then the output feature. Which output dimension
  // is each of them?
  std::vector<int64_t> role_of_output(static_cast<size_t>(parts.output.rank()));
  const auto position = [&](int64_t d) { return d < dimensions.input_feature ? d : d - 1; };
  role_of_output[static_cast<size_t>(dimensions.output_batch)] = position(dimensions.input_batch);
  role_of_output[static_cast<size_t>(dimensions.output_feature)] = parts.output.rank() - 1;
  for (size_t i = 0; i < dimensions.output_spatial.size(); ++i) {
    role_of_output[static_cast<size_t>(dimensions.output_spatial[i])] = position(dimensions.input_spatial[i]);
  }
  return Transposed(product, role_of_output, build);
}

Instruction* DotOverPatches(ConvolutionParts& parts, hlo::Builder& build) {
  const auto& labels = parts.attributes.dimensions;
  const Dims positions = parts.OutputSpatial();
  // What does not fill a window is not read.
  Dims limits = parts.input->shape().dimensions();
  for (size_t i = 0; i < positions.size(); ++i) {
    limits[static_cast<size_t>(labels.input_spatial[i])] = positions[i] * parts.attributes.window[i].size;
  }
  Instruction* input = parts.input;
  if (limits != input->shape().dimensions()) {
    input = build.Slice(input, Dims(limits.size(), 0), limits, Dims(limits.size(), 1));
  }
  // Each spatial dimension becomes [position, tap]; then [batch, positions..., taps..., feature].
  Dims split;
  std::vector<int64_t> start(limits.size());
  for (size_t d = 0; d < limits.size(); ++d) {
    start[d] = static_cast<int64_t>(split.size());
    const auto spatial = std::find(labels.input_spatial.begin(), labels.input_spatial.end(), static_cast<int64_t>(d));
    if (spatial == labels.input_spatial.end()) {
      split.push_back(limits[d]);
    } else {
      const auto i = static_cast<size_t>(spatial - labels.input_spatial.begin());
      split.insert(split.end(), {positions[i], parts.attributes.window[i].size});
    }
  }
  std::vector<int64_t> order = {start[static_cast<size_t>(labels.input_batch)]};
  for (int64_t d : labels.input_spatial) order.push_back(start[static_cast<size_t>(d)]);
  for (int64_t d : labels.input_spatial) order.push_back(start[static_cast<size_t>(d)] + 1);
  order.push_back(start[static_cast<size_t>(labels.input_feature)]);
  Instruction* patches = Transposed(build.Reshape(input, split), order, build);

  hlo::attr::Dot dot = DotAttributes(parts);
  for (int64_t i = 0; i <= parts.spatial_rank(); ++i) dot.lhs_contracting.push_back(parts.spatial_rank() + 1 + i);
  dot.rhs_contracting = labels.kernel_spatial;
  dot.rhs_contracting.push_back(labels.kernel_input_feature);
  Instruction* product = build.Dot(patches, parts.kernel, dot, parts.output.element_type());
  return Transposed(product, ToOutputOrder(labels), build);
}

Instruction* DotForEachPosition(ConvolutionParts& parts, hlo::Builder& build) {
  const auto& dimensions = parts.attributes.dimensions;
  const Dims positions = parts.OutputSpatial();
  const int64_t batch = parts.input->shape().dimension(dimensions.input_batch);
  const int64_t features = parts.output.dimension(dimensions.output_feature);
  const int64_t count = hlo::CheckedProduct(positions);
  // Few rows (three colours) make a poor product: several positions share one, their slices side by side.
  constexpr int64_t kFewestRows = 32;
  const int64_t together = std::clamp<int64_t>((kFewestRows + batch - 1) / std::max<int64_t>(batch, 1), 1, count);

  hlo::attr::Dot dot = DotAttributes(parts);
  dot.lhs_contracting = dimensions.input_spatial;
  dot.lhs_contracting.push_back(dimensions.input_feature);
  dot.rhs_contracting = dimensions.kernel_spatial;
  dot.rhs_contracting.push_back(dimensions.kernel_input_feature);

  std::vector<Instruction*> slices, products;
  Dims at(positions.size(), 0);
  for (int64_t done = 0; done < count; ++done) {
    Dims starts(static_cast<size_t>(parts.input->shape().rank()), 0);
    Dims limits = parts.input->shape().dimensions();
    Dims strides(starts.size(), 1);
    for (size_t i = 0; i < positions.size(); ++i) {
      const WindowDimension& window = parts.attributes.window[i];
      const auto d = static_cast<size_t>(dimensions.input_spatial[i]);
      starts[d] = at[i] * window.stride;
      limits[d] = starts[d] + (window.size - 1) * window.window_dilation + 1;
      strides[d] = window.window_dilation;
    }
    slices.push_back(build.Slice(parts.input, starts, limits, strides));
    if (static_cast<int64_t>(slices.size()) == together || done + 1 == count) {
      const auto rows = static_cast<int64_t>(slices.size());
      Instruction* lhs = rows == 1 ? slices[0] : build.Concatenate(slices, dimensions.input_batch);
      Instruction* product = build.Dot(lhs, parts.kernel, dot, parts.output.element_type());
      products.push_back(build.Reshape(product, {rows, batch, features}));
      slices.clear();
    }
    hlo::NextIndex(at, positions);
  }
  Instruction* all = products.size() == 1 ? products[0] : build.Concatenate(products, 0);
  Dims separate = positions;
  separate.push_back(batch);
  separate.push_back(features);
  all = build.Reshape(all, separate);

  // From [spatial..., batch, feature] to the output's labels.
  std::vector<int64_t> role_of_output(static_cast<size_t>(parts.output.rank()));
  role_of_output[static_cast<size_t>(dimensions.output_batch)] = parts.spatial_rank();
  role_of_output[static_cast<size_t>(dimensions.output_feature)] = parts.spatial_rank() + 1;
  for (size_t i = 0; i < positions.size(); ++i) {
    role_of_output[static_cast<size_t>(dimensions.output_spatial[i])] = static_cast<int64_t>(i);
  }
  return Transposed(all, role_of_output, build);
}

bool HasFewFeatures(const ConvolutionParts& parts) {
  constexpr int64_t kMostFeatures = 4, kFewestChannels = 16, kFewestPositions = 64;
  // Of fewer positions than these, this many channels are worth the sums (docs/performance.md).
  constexpr int64_t kManyPositions = 4096, kManyChannels = 64;
  const auto& labels = parts.attributes.dimensions;
  const auto& window = parts.attributes.window;
  const int64_t features = parts.output.dimension(labels.output_feature),
                channels = parts.input->shape().dimension(labels.input_feature);
  const bool is_plain = std::all_of(window.begin(), window.end(), [](const WindowDimension& w) {
    return w.stride == 1 && w.base_dilation == 1 && !w.window_reversal;
  });
  const int64_t taps = hlo::CheckedProduct(parts.WindowSizes()), positions = hlo::CheckedProduct(parts.OutputSpatial());
  const int64_t wanted = positions >= kManyPositions ? kFewestChannels : kManyChannels;
  return is_plain && taps > 1 && features > 0 && features <= kMostFeatures && channels >= wanted &&
         taps * features <= channels && positions >= kFewestPositions;
}

Instruction* SumOfTaps(ConvolutionParts& parts, hlo::Builder& build) {
  const hlo::attr::ConvolutionDimensions& labels = parts.attributes.dimensions;
  const int64_t spatial = parts.spatial_rank(), minor = spatial + 1;
  Instruction* input =
      Transposed(parts.input, Order(labels.input_batch, labels.input_spatial, labels.input_feature), build);
  Instruction* kernel = Transposed(
      parts.kernel, Order(labels.kernel_input_feature, labels.kernel_spatial, labels.kernel_output_feature), build);
  const Dims window = parts.WindowSizes();
  const int64_t channels = kernel->shape().dimension(0), features = kernel->shape().dimension(minor);
  const hlo::ElementType type = parts.output.element_type();
  // The sum over the taps is one of the contraction's: not rounded in between.
  const bool is_short = hlo::IsFloating(type) && hlo::BytesOf(type) < hlo::BytesOf(hlo::ElementType::kF32);
  hlo::attr::Dot dot;
  dot.lhs_contracting = {minor};
  dot.rhs_contracting = {0};
  Instruction* taps = build.Dot(input, build.Reshape(kernel, {channels, hlo::CheckedProduct(window) * features}), dot,
                                is_short ? hlo::ElementType::kF32 : type);
  Instruction* zero = build.ScalarConstant(taps->shape().element_type(), 0.0);
  Dims starts(static_cast<size_t>(minor + 1), 0), limits = taps->shape().dimensions();
  Instruction* sum = nullptr;
  Dims at(window.size(), 0);
  do {
    std::vector<hlo::PaddingDimension> padding(static_cast<size_t>(minor + 1));
    for (size_t d = 0; d < window.size(); ++d) {
      const WindowDimension& w = parts.attributes.window[d];
      const int64_t low = w.padding_low - at[d] * w.window_dilation;
      padding[d + 1] = {low, parts.OutputSpatial()[d] - taps->shape().dimension(static_cast<int64_t>(d) + 1) - low, 0};
    }
    limits.back() = starts.back() + features;
    Instruction* tap = build.Pad(build.Slice(taps, starts, limits, Dims(starts.size(), 1)), zero, std::move(padding));
    starts.back() = limits.back();
    sum = sum == nullptr ? tap : build.Binary(Opcode::kAdd, sum, tap);
  } while (hlo::NextIndex(at, window));
  if (is_short) sum = build.Convert(sum, type);
  return Transposed(sum, ToOutputOrder(labels), build);
}

Instruction* ConvolutionOverWindow(ConvolutionParts& parts, hlo::Builder& build) {
  const hlo::attr::ConvolutionDimensions labels = parts.attributes.dimensions;
  Instruction* input =
      Transposed(parts.input, Order(labels.input_feature, labels.input_spatial, labels.input_batch), build);
  Instruction* kernel = Transposed(
      parts.kernel, Order(labels.kernel_input_feature, labels.kernel_spatial, labels.kernel_output_feature), build);
  const int64_t rank = parts.spatial_rank() + 2;
  std::vector<int64_t> spatial(static_cast<size_t>(parts.spatial_rank())), taps(spatial.size());
  std::iota(spatial.begin(), spatial.end(), 1);
  std::iota(taps.begin(), taps.end(), 0);
  hlo::attr::Convolution form = parts.attributes;
  form.dimensions = {rank - 1, 0, spatial, 0, rank - 1, spatial, rank - 2, rank - 1, taps};
  Dims sizes = parts.OutputSpatial();
  sizes.push_back(parts.output.dimension(labels.output_batch));
  sizes.push_back(parts.output.dimension(labels.output_feature));
  Instruction* gradient =
      build.Make(Opcode::kConvolution, {input, kernel}, form, {}, hlo::Shape(parts.output.element_type(), sizes));

  // From [taps..., batch, feature] to the output's labels.
  std::vector<int64_t> source(static_cast<size_t>(rank));
  for (size_t i = 0; i < taps.size(); ++i)
    source[static_cast<size_t>(labels.output_spatial[i])] = static_cast<int64_t>(i);
  source[static_cast<size_t>(labels.output_batch)] = rank - 2;
  source[static_cast<size_t>(labels.output_feature)] = rank - 1;
  return Transposed(gradient, source, build);
}

bool HasPlanes(const ConvolutionParts& parts) {
  // The input is copied for each of them.
  constexpr int64_t kMostTaps = 16;
  if (parts.spatial_rank() <= 2 || parts.output.ElementCount() == 0) return false;
  const int64_t channels = parts.kernel->shape().dimension(parts.attributes.dimensions.kernel_input_feature);
  return parts.attributes.window[0].size <= kMostTaps && (parts.attributes.feature_group_count == 1 || channels > 1);
}

Instruction* ConvolutionOfPlanes(ConvolutionParts& parts, hlo::Builder& build, std::vector<Instruction*>& rest) {
  const hlo::attr::ConvolutionDimensions labels = parts.attributes.dimensions;
  Instruction* input = PlanesSideBySide(parts, build);
  std::vector<int64_t> order(labels.kernel_spatial.begin() + 1, labels.kernel_spatial.end());
  order.insert(order.end(), {labels.kernel_spatial[0], labels.kernel_input_feature, labels.kernel_output_feature});
  const Dims positions = parts.OutputSpatial();
  const int64_t features = parts.output.dimension(labels.output_feature);
  const int64_t last = parts.spatial_rank();
  Dims taps = parts.WindowSizes();
  taps.erase(taps.begin());
  taps.insert(taps.end(), {input->shape().dimension(last) / parts.attributes.feature_group_count, features});
  Instruction* kernel = build.Reshape(Transposed(parts.kernel, order, build), taps);

  std::vector<int64_t> spatial(positions.size() - 1), kernel_spatial(spatial.size());
  std::iota(spatial.begin(), spatial.end(), 1);
  std::iota(kernel_spatial.begin(), kernel_spatial.end(), 0);
  hlo::attr::Convolution form = parts.attributes;
  form.window.erase(form.window.begin());
  form.dimensions = {0, last, spatial, last - 1, last, kernel_spatial, 0, last, spatial};
  Dims sizes = {input->shape().dimension(0)};
  sizes.insert(sizes.end(), positions.begin() + 1, positions.end());
  sizes.push_back(features);
  rest.push_back(
      build.Make(Opcode::kConvolution, {input, kernel}, form, {}, hlo::Shape(parts.output.element_type(), sizes)));
  sizes[0] = parts.output.dimension(labels.output_batch);
  sizes.insert(sizes.begin() + 1, positions[0]);
  return Transposed(build.Reshape(rest.back(), sizes), ToOutputOrder(labels), build);
}

Instruction* TransposeIntoForm(ConvolutionParts& parts, hlo::Builder& build) {
  const hlo::attr::ConvolutionDimensions labels = parts.attributes.dimensions;
  Instruction* input =
      Transposed(parts.input, Order(labels.input_batch, labels.input_spatial, labels.input_feature), build);
  std::vector<int64_t> kernel_order = labels.kernel_spatial;
  kernel_order.push_back(labels.kernel_input_feature);
  kernel_order.push_back(labels.kernel_output_feature);
  Instruction* kernel = Transposed(parts.kernel, kernel_order, build);

  const int64_t rank = parts.spatial_rank() + 2;
  std::vector<int64_t> spatial(static_cast<size_t>(parts.spatial_rank()));
  std::iota(spatial.begin(), spatial.end(), 1);
  std::vector<int64_t> kernel_spatial(spatial.size());
  std::iota(kernel_spatial.begin(), kernel_spatial.end(), 0);
  hlo::attr::Convolution form = parts.attributes;
  form.dimensions = {0, rank - 1, spatial, rank - 2, rank - 1, kernel_spatial, 0, rank - 1, spatial};

  Dims sizes;
  for (int64_t d : Order(labels.output_batch, labels.output_spatial, labels.output_feature)) {
    sizes.push_back(parts.output.dimension(d));
  }
  const hlo::Shape declared(parts.output.element_type(), sizes);
  Instruction* result = build.Make(Opcode::kConvolution, {input, kernel}, form, {}, declared);
  return Transposed(result, ToOutputOrder(labels), build);
}

}  // namespace hlorun::passes
