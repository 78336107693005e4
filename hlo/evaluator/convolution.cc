// convolution, as a matrix product: each output position's patch of the input against the kernel.
#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/product.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/evaluator/window.h"

namespace hlorun::hlo {
namespace {

constexpr int64_t kPatchRows = 256;  // output positions multiplied at a time, to bound the memory for patches

// The array with its dimensions in the order first, second, spatial...
Literal Arranged(const Literal& array, int64_t first, int64_t second, const std::vector<int64_t>& spatial,
                 bool second_last, ElementType type) {
  std::vector<int64_t> order{first};
  if (!second_last) order.push_back(second);
  order.insert(order.end(), spatial.begin(), spatial.end());
  if (second_last) order.push_back(second);
  const Dims strides = array.shape().Strides();
  Dims dimensions;
  StridedView from;
  for (const int64_t d : order) {
    dimensions.push_back(array.shape().dimension(d));
    from.strides.push_back(strides[static_cast<size_t>(d)]);
  }
  Literal result(Shape(array.element_type(), dimensions));
  CopyStrided(array.data(), from, result.mutable_data(), {0, result.shape().Strides()}, dimensions,
              BytesOf(array.element_type()));
  return ConvertedTo(result, type);
}

// A convolution on arrays in the order input [batch, spatial, feature], kernel [spatial, input feature, output
// feature], output [batch, spatial, output feature].
struct Problem {
  const Window* window;
  ElementType type;
  Dims input_spatial, kernel_spatial, output_spatial;
  int64_t input_features = 0;   // of the whole input
  int64_t kernel_features = 0;  // input features that one output feature sees
  int64_t output_features = 0;
  int64_t groups = 1;  // output features fall into as many; so do input features, or batches
  int64_t bytes = 0;
  int64_t PatchSize() const { return CheckedProduct(kernel_spatial) * kernel_features; }
};

// Fills one patch: for each kernel position, the input features [feature, feature + kernel_features) under it.
void FillPatch(const Problem& p, const std::byte* image, const Dims& output_index, int64_t feature, std::byte* patch) {
  Dims k(p.kernel_spatial.size(), 0);
  const auto span = static_cast<size_t>(p.kernel_features * p.bytes);
  if (CheckedProduct(p.kernel_spatial) == 0) return;
  do {
    int64_t position = 0;
    for (size_t d = 0; d < k.size() && position >= 0; ++d) {
      const WindowDimension& w = (*p.window)[d];
      const int64_t tap = w.window_reversal ? w.size - 1 - k[d] : k[d];
      const int64_t base = BasePosition(w, output_index[d], tap, p.input_spatial[d]);
      position = base < 0 ? -1 : position * p.input_spatial[d] + base;
    }
    if (position < 0) {
      std::memset(patch, 0, span);
    } else {
      std::memcpy(patch, image + (position * p.input_features + feature) * p.bytes, span);
    }
    patch += span;
  } while (NextIndex(k, p.kernel_spatial));
}

// One image and one group: output positions in blocks of rows; `out` is [positions, features of the group].
void ConvolveImage(const Problem& p, const std::byte* image, int64_t feature, const std::byte* kernel, std::byte* out) {
  const int64_t positions = CheckedProduct(p.output_spatial);
  const int64_t group_features = p.output_features / p.groups;
  const int64_t patch_bytes = p.PatchSize() * p.bytes;
  std::vector<std::byte> patches(static_cast<size_t>(std::min(positions, kPatchRows) * patch_bytes));
  Dims index(p.output_spatial.size(), 0);
  for (int64_t begin = 0; begin < positions; begin += kPatchRows) {
    const int64_t rows = std::min(kPatchRows, positions - begin);
    for (int64_t r = 0; r < rows; ++r) {
      FillPatch(p, image, index, feature, patches.data() + r * patch_bytes);
      NextIndex(index, p.output_spatial);
    }
    MatrixProduct(p.type, patches.data(), kernel, out + begin * group_features * p.bytes, rows, group_features,
                  p.PatchSize());
  }
}

// Columns [begin, begin + count) of a [rows, columns] matrix.
Literal Columns(const Literal& matrix, int64_t rows, int64_t columns, int64_t begin, int64_t count) {
  Literal result(Shape(matrix.element_type(), {rows, count}));
  CopyStrided(matrix.data(), {begin, {columns, 1}}, result.mutable_data(), {0, {count, 1}}, Dims{rows, count},
              BytesOf(matrix.element_type()));
  return result;
}

Dims SizesOf(const Shape& shape, const std::vector<int64_t>& dimensions) {
  Dims sizes;
  for (const int64_t d : dimensions) sizes.push_back(shape.dimension(d));
  return sizes;
}

// [batch, spatial..., feature] into the declared order of dimensions.
Literal Rearranged(const Literal& value, const attr::ConvolutionDimensions& dims, const Shape& shape) {
  std::vector<int64_t> order{dims.output_batch};
  order.insert(order.end(), dims.output_spatial.begin(), dims.output_spatial.end());
  order.push_back(dims.output_feature);
  const Dims strides = shape.Strides();
  StridedView to;
  for (const int64_t d : order) to.strides.push_back(strides[static_cast<size_t>(d)]);
  Literal result(shape);
  CopyStrided(value.data(), {0, value.shape().Strides()}, result.mutable_data(), to, value.shape().dimensions(),
              BytesOf(shape.element_type()));
  return result;
}

}  // namespace

Literal EvaluateConvolution(OpCall& call) {
  const auto& convolution = call.As<attr::Convolution>();
  const attr::ConvolutionDimensions& dims = convolution.dimensions;
  Problem p;
  p.window = &convolution.window;
  p.type = ProductType(call.shape.element_type());
  p.bytes = BytesOf(p.type);
  const Literal input =
      Arranged(call.operand(0), dims.input_batch, dims.input_feature, dims.input_spatial, true, p.type);
  // [output feature, spatial..., input feature], then turned: columns are output features.
  const Literal by_output = Arranged(call.operand(1), dims.kernel_output_feature, dims.kernel_input_feature,
                                     dims.kernel_spatial, true, p.type);
  p.input_spatial = SizesOf(call.operand(0).shape(), dims.input_spatial);
  p.kernel_spatial = SizesOf(call.operand(1).shape(), dims.kernel_spatial);
  p.output_spatial = SizesOf(call.shape, dims.output_spatial);
  p.input_features = call.operand(0).shape().dimension(dims.input_feature);
  p.kernel_features = call.operand(1).shape().dimension(dims.kernel_input_feature);
  p.output_features = call.operand(1).shape().dimension(dims.kernel_output_feature);
  p.groups = std::max(convolution.feature_group_count, convolution.batch_group_count);
  call.evaluation.Charge(call.shape.ElementCount() * p.PatchSize());

  const int64_t patch = p.PatchSize();
  Literal kernel(Shape(p.type, {patch, p.output_features}));
  CopyStrided(by_output.data(), {0, {1, patch}}, kernel.mutable_data(), {0, {p.output_features, 1}},
              Dims{patch, p.output_features}, BytesOf(p.type));

  const int64_t batches = call.shape.dimension(dims.output_batch);
  const int64_t positions = CheckedProduct(p.output_spatial);
  const int64_t group_features = p.output_features / p.groups;
  const int64_t image_bytes = CheckedProduct(p.input_spatial) * p.input_features * p.bytes;
  Dims dimensions{batches};
  dimensions.insert(dimensions.end(), p.output_spatial.begin(), p.output_spatial.end());
  dimensions.push_back(p.output_features);
  Literal output(Shape(p.type, dimensions));
  std::vector<std::byte> group_output(static_cast<size_t>(positions * group_features * p.bytes));
  for (int64_t g = 0; g < p.groups; ++g) {
    const Literal group_kernel = Columns(kernel, patch, p.output_features, g * group_features, group_features);
    for (int64_t b = 0; b < batches; ++b) {
      // Groups divide the input's features, or its batches.
      const bool by_batch = convolution.batch_group_count > 1;
      const int64_t image = by_batch ? g * batches + b : b;
      const int64_t feature = by_batch ? 0 : g * p.kernel_features;
      ConvolveImage(p, input.data() + image * image_bytes, feature, group_kernel.data(), group_output.data());
      CopyStrided(group_output.data(), {0, {group_features, 1}}, output.mutable_data(),
                  {b * positions * p.output_features + g * group_features, {p.output_features, 1}},
                  Dims{positions, group_features}, BytesOf(p.type));
    }
  }
  return Rearranged(ConvertedTo(output, call.shape.element_type()), dims, call.shape);
}

}  // namespace hlorun::hlo
