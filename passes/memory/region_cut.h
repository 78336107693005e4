// How the work of a region is shared: along a dimension that nothing in it mixes.
//
//   x: f32[1024,1024] changed row after row in a loop, by elementwise ops: each share runs the whole loop, on its own
//   columns. What has no such dimension, a counter and the loop's condition, each share computes for itself.
//
// A share meets no other one: what it reads of arrays that the region writes is its own part of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "passes/memory/region_layout.h"

namespace hlorun::passes {

class RegionCut {
 public:
  // `unit`: of elements, which a share's part of the dimension is made of; `wanted`: shares, of which there are no more
  // than are needed, for each runs all of what is not cut. nullopt: one has to do it all.
  static std::optional<RegionCut> Of(const hlo::Instruction& region, const RegionLayout& layout, int64_t unit,
                                     int64_t wanted);

  int64_t shares() const { return shares_; }
  // Of a share, along the dimension that is cut.
  int64_t part() const { return extent_ / shares_; }
  // Along which dimension leaf `leaf` of an instruction of the layout's module is cut; -1: each share has all of it.
  int64_t DimensionOf(const hlo::Instruction* instruction, int64_t leaf = 0) const;

 private:
  friend class RegionCutSearch;
  std::map<std::pair<const hlo::Instruction*, int64_t>, int64_t> dimensions_;
  int64_t extent_ = 0, shares_ = 1;
};

}  // namespace hlorun::passes
