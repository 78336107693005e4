// Where the positions of a window fall on its base, with strides, padding and dilations.
#pragma once

#include "hlo/attributes.h"

namespace hlorun::hlo {

// The base element under window position `window` of output position `output`, or -1 in padding or between the elements
// of a dilated base.
inline int64_t BasePosition(const WindowDimension& dimension, int64_t output, int64_t window, int64_t base_size) {
  const int64_t dilated = output * dimension.stride + window * dimension.window_dilation - dimension.padding_low;
  if (dilated < 0 || dilated % dimension.base_dilation != 0) return -1;
  const int64_t position = dilated / dimension.base_dilation;
  return position < base_size ? position : -1;
}

}  // namespace hlorun::hlo
