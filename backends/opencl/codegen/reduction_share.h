// How the groups of a GPU share a reduction.
//
// A result's elements are dealt to `lanes`, in turn, each of which adds up what it is dealt in its order; a tree that
// halves the lanes joins them. Where one group for each few results would leave most of the device idle, the elements
// are cut into parts first, and a second launch reduces the parts in the same way. All of this follows from the shape,
// so that sums are the same on every device. Only how many work-items play the lanes does not: an item may play
// several, and the tree stays what it is.
#pragma once

#include <cstdint>

#include "hlo/device_spec.h"

namespace hlorun::opencl {

struct ReductionSize {
  int64_t results = 1, elements = 1;  // elements of each result
  bool is_rows = false;               // a result's elements lie side by side; else the results do
};

struct ReductionShare {
  int64_t parts = 1;
  int64_t part_elements = 1;  // of each result, in each part; of the last part maybe fewer
  int64_t lanes = 1;          // a power of two
  int64_t items = 1;          // work-items that play a result's lanes: divides `lanes`
  int64_t across = 1;         // results of a group: a power of two
  int64_t group() const { return items * across; }
};

// `may_split`: whether there may be more parts than one. `item_bytes` of local memory that each work-item needs.
ReductionShare ShareOf(const ReductionSize& size, bool may_split, int64_t item_bytes, const DeviceSpec& device);

}  // namespace hlorun::opencl
