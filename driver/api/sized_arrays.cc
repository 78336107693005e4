#include "driver/api/sized_arrays.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>

#include "hlo/error.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun {
namespace {

using opencl::DeviceArray;

hlo::Dims StridesOf(const hlo::Dims& dimensions) { return hlo::Shape(hlo::ElementType::kU8, dimensions).Strides(); }

// Whether elements at these indices lie one after another in an array of the bound's size.
bool IsPrefix(const hlo::Dims& dimensions, const hlo::Dims& bound) {
  bool whole = true;  // all faster dimensions are as large as their bounds
  for (size_t d = dimensions.size(); d-- > 0;) {
    if (!whole && dimensions[d] > 1) return false;
    whole &= dimensions[d] == bound[d];
  }
  return true;
}

void FillPadding(std::byte* memory, int64_t bytes) {
  const char* asked = std::getenv("HLORUN_PADDING");
  if (asked == nullptr) return;
  const std::string_view with = asked;
  if (with == "nan") {
    std::memset(memory, 0xFF, static_cast<size_t>(bytes));
  } else if (with == "random") {
    std::mt19937_64 random(static_cast<uint64_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(random());
  } else {
    Invalid("HLORUN_PADDING={}: expected nan or random", with);
  }
}

}  // namespace

// A copy: `array` lies as if its dimensions were `from_bound`, the copy as if they were `to_bound`.
DeviceArray SizedArrays::Resized(const DeviceArray& array, const hlo::Shape& shape, const hlo::Dims& from_bound,
                                 const hlo::Dims& to_bound) const {
  const int64_t element = hlo::BytesOf(shape.element_type());
  const int64_t bytes = hlo::CheckedProduct(to_bound) * element;
  DeviceArray copy{shape, opencl::PoolOf(context_)->Allocate(bytes, shape.ToString(false)), nullptr};
  if (bytes == 0) return copy;
  std::vector<std::byte> staged_from, staged_to;
  const std::byte* from = array.memory.host();
  std::byte* to = copy.memory.host();
  if (from == nullptr) {
    staged_from.resize(static_cast<size_t>(array.memory.bytes()));
    if (!staged_from.empty()) opencl::CopyToHost(context_, array.memory, staged_from.data(), array.memory.bytes());
    from = staged_from.data();
  }
  if (to == nullptr) {
    staged_to.resize(static_cast<size_t>(bytes));
    to = staged_to.data();
  }
  FillPadding(to, bytes);
  hlo::CopyStrided(from, {0, StridesOf(from_bound)}, to, {0, StridesOf(to_bound)}, shape.dimensions(), element);
  if (!staged_to.empty()) opencl::CopyToDevice(context_, staged_to.data(), copy.memory, bytes);
  return copy;
}

void SizedArrays::CheckEqualSizes(const std::vector<hlo::Dims>& dimensions) const {
  for (const auto& [a, b] : plan_.sizes.equal) {
    const passes::DimensionOfLeaf& x = plan_.sizes.parameters[static_cast<size_t>(a)];
    const passes::DimensionOfLeaf& y = plan_.sizes.parameters[static_cast<size_t>(b)];
    const auto size = [&](const passes::DimensionOfLeaf& d) {
      return dimensions[static_cast<size_t>(d.leaf)][static_cast<size_t>(d.dimension)];
    };
    if (size(x) == size(y)) continue;
    const auto name = [&](const passes::DimensionOfLeaf& d) {
      return plan_.parameters[static_cast<size_t>(d.leaf)].name;
    };
    Invalid(
        "argument {} (%{}): dimension {} has size {}, but dimension {} of argument {} (%{}), which meets it in the program, has {}",
        y.leaf, name(y), y.dimension, size(y), x.dimension, x.leaf, name(x), size(x));
  }
}

void SizedArrays::Bind(std::vector<opencl::RunArgument>& arguments, const std::vector<PaddedCopy*>& copies,
                       const std::vector<hlo::Dims>& whole) const {
  if (plan_.sizes.parameters.empty()) return;
  std::vector<hlo::Dims> dimensions = whole;
  if (whole.empty()) {
    for (const opencl::RunArgument& argument : arguments) dimensions.push_back(argument.array.shape.dimensions());
  }
  CheckEqualSizes(dimensions);
  const size_t count = arguments.size();
  for (const passes::DimensionOfLeaf& d : plan_.sizes.parameters) {
    const auto size = static_cast<int32_t>(dimensions[static_cast<size_t>(d.leaf)][static_cast<size_t>(d.dimension)]);
    DeviceArray scalar{hlo::Shape::Scalar(hlo::ElementType::kS32),
                       opencl::PoolOf(context_)->Allocate(sizeof(size), "a size"), nullptr};
    opencl::CopyToDevice(context_, &size, scalar.memory, sizeof(size));
    arguments.push_back({std::move(scalar), false});
  }
  for (size_t i = 0; i < count; ++i) {
    DeviceArray& array = arguments[i].array;
    const hlo::Dims& bound = plan_.parameters[i].shape.dimensions();
    if (array.shape.dimensions() == bound) continue;
    if (array.ready != nullptr) array.ready->Wait();
    if (arguments[i].donate) {
      array = Resized(array, array.shape, array.shape.dimensions(), bound);
      continue;
    }
    PaddedCopy& copy = *copies[i];
    const std::lock_guard lock(copy.mutex);
    if (copy.bound != bound) {
      copy.array = Resized(array, array.shape, array.shape.dimensions(), bound);
      copy.bound = bound;
    }
    array = copy.array;
  }
}

int64_t SizedArrays::ReadSize(const DeviceArray& scalar) const {
  int32_t size = 0;
  opencl::CopyToHost(context_, scalar.memory, &size, sizeof(size));
  return size;
}

SizedArrays::Compacted SizedArrays::Compact(std::vector<DeviceArray> results) const {
  const auto& sized = plan_.sizes.results;
  if (sized.empty()) return {std::move(results), {}};
  const size_t count = results.size() - sized.size() - plan_.sizes.whole_results.size();
  for (const DeviceArray& result : results) {
    if (result.ready != nullptr) result.ready->Wait();
  }
  std::vector<hlo::Dims> dimensions;
  for (size_t i = 0; i < count; ++i) dimensions.push_back(results[i].shape.dimensions());
  for (size_t i = 0; i < sized.size(); ++i) {
    int64_t& dimension = dimensions[static_cast<size_t>(sized[i].leaf)][static_cast<size_t>(sized[i].dimension)];
    dimension = std::clamp<int64_t>(ReadSize(results[count + i]), 0, dimension);
  }
  std::vector<int64_t> whole_sizes;
  for (size_t i = count + sized.size(); i < results.size(); ++i) whole_sizes.push_back(ReadSize(results[i]));
  results.resize(count);
  for (size_t i = 0; i < count; ++i) {
    DeviceArray& result = results[i];
    const hlo::Dims bound = result.shape.dimensions();
    const hlo::Shape actual(result.shape.element_type(), dimensions[i]);
    if (IsPrefix(dimensions[i], bound)) {
      result = {actual, result.memory.Sub(0, actual.ByteSize()), result.ready};
    } else {
      result = Resized(result, actual, bound, dimensions[i]);
    }
  }
  return {std::move(results), std::move(whole_sizes)};
}

}  // namespace hlorun
