// Sorts along another dimension than the last become transposes and a sort along the last: blocked copies and rows that
// lie together cost less than one cache line an element.
//
//   before: sort(f32[1000,64] x), dimensions={0}
//   after:  transpose(sort(f32[64,1000] transpose(x)), dimensions={1})
//
// Sorts whose other dimensions inside are all 1 stay, and small ones, which fit a cache either way.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SortAlongMinor : public Pass {
 public:
  std::string_view name() const override { return "sort-along-minor"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
