#include "driver/api/sized_arrays.h"

#include <algorithm>

#include "hlo/error.h"

namespace hlorun {

using opencl::DeviceArray;

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

std::pmr::vector<opencl::RunArgument> SizedArrays::Bind(const std::vector<Array>& arrays,
                                                        const std::vector<bool>& donate,
                                                        const std::vector<hlo::Dims>& whole,
                                                        std::pmr::memory_resource* room) const {
  std::vector<hlo::Dims> dimensions;
  if (!plan_.sizes.parameters.empty()) {
    dimensions = whole;
    if (whole.empty()) {
      for (const Array& array : arrays) dimensions.push_back(array.shape().dimensions());
    }
    CheckEqualSizes(dimensions);
  }
  std::pmr::vector<opencl::RunArgument> arguments(room);
  arguments.reserve(arrays.size() + plan_.sizes.parameters.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const hlo::Dims& bound = plan_.parameters[i].shape.dimensions();
    const bool is_donated = i < donate.size() && donate[i];
    BoundedArray& array = arrays[i].impl()->array;
    arguments.push_back({is_donated ? array.ToDonate(bound) : array.AtBound(bound), is_donated});
  }
  for (const passes::DimensionOfLeaf& d : plan_.sizes.parameters) {
    const auto size = static_cast<int32_t>(dimensions[static_cast<size_t>(d.leaf)][static_cast<size_t>(d.dimension)]);
    opencl::DeviceMemory scalar = opencl::PoolOf(context_)->Allocate(sizeof(size), "a size");
    opencl::CopyToDevice(context_, &size, scalar, sizeof(size));
    arguments.push_back({{std::move(scalar), nullptr}, false});
  }
  return arguments;
}

int64_t SizedArrays::ReadSize(const DeviceArray& scalar) const {
  int32_t size = 0;
  opencl::CopyToHost(context_, scalar.memory, &size, sizeof(size));
  return size;
}

SizedArrays::Results SizedArrays::Measure(std::span<DeviceArray> results) const {
  const auto& sized = plan_.sizes.results;
  Results measured;
  if (sized.empty()) {
    measured.arrays.reserve(results.size());
    for (DeviceArray& result : results) measured.arrays.push_back(MakeArray(std::move(result), context_));
    return measured;
  }
  const size_t count = results.size() - sized.size() - plan_.sizes.whole_results.size();
  for (const DeviceArray& result : results) {
    if (result.ready != nullptr) result.ready->Wait();
  }
  std::vector<hlo::Dims> dimensions;
  for (size_t i = 0; i < count; ++i) dimensions.push_back(results[i].shape->dimensions());
  for (size_t i = 0; i < sized.size(); ++i) {
    int64_t& dimension = dimensions[static_cast<size_t>(sized[i].leaf)][static_cast<size_t>(sized[i].dimension)];
    dimension = std::clamp<int64_t>(ReadSize(results[count + i]), 0, dimension);
  }
  for (size_t i = count + sized.size(); i < results.size(); ++i) measured.whole_sizes.push_back(ReadSize(results[i]));
  for (size_t i = 0; i < count; ++i) {
    measured.arrays.push_back(MakeArray(std::move(results[i]), dimensions[i], context_));
  }
  return measured;
}

}  // namespace hlorun
