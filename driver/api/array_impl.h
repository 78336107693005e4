// What hlorun::Array holds; for the driver only.
#pragma once

#include <memory>

#include "driver/api/bounded_array.h"
#include "hlorun/hlorun.h"

namespace hlorun {

struct Array::Impl {
  // What a BoundedArray is made of.
  template <typename... Of>
  explicit Impl(Of&&... of) : array(std::forward<Of>(of)...) {}

  BoundedArray array;
  // Of a whole array in parts, whose `array` has a shape and no memory.
  std::vector<Array> shards;
  std::string sharding;
  std::shared_ptr<collectives::Job> job;
  // Of a whole array in parts whose dimensions are bounded: what is cut; empty where it is the shape itself.
  hlo::Dims bound;
  // Of one device's part of such an array, where a run made it: the dimensions of the whole.
  hlo::Dims whole;
};

template <typename... Of>
Array MakeArray(Of&&... of) {
  return Array(std::make_shared<Array::Impl>(std::forward<Of>(of)...));
}

}  // namespace hlorun
