// Those of many numbered things that a GPU's work-group has to do with: all of its items look for them, then each walks
// what was found, in the order of the numbers.
//
// A block of numbers has a bit each in local memory, and a bit more for each word of bits that has any. Which item sets
// a bit, and when, does not show.
#pragma once

#include <functional>

#include "backends/opencl/codegen/emission.h"

namespace hlorun::opencl {

class MarkedUpdates {
 public:
  // `items` of a group, number `item` is this one.
  MarkedUpdates(Emission& e, int64_t count, int64_t items, const Index& item);

  // `is_mine`: adds what finds out whether a number, which `mask` says is one, is to be marked. `visit`: adds what is
  // done with a marked one; all items of the group come by, so that it may have barriers.
  void ForEach(const std::function<ir::Expr(const Index& number, const ir::Expr& mask)>& is_mine,
               const std::function<void(const Index& number)>& visit);

 private:
  void Clear();
  void Mark(const Index& block, const std::function<ir::Expr(const Index&, const ir::Expr&)>& is_mine);
  void Walk(const Index& block, const std::function<void(const Index&)>& visit);
  // Each bit that is set in this element, as its number from the highest one on.
  void ForEachBit(const ir::BufferRef& buffer, const Index& at, const std::function<void(const ir::Expr&)>& visit);
  Index Named(const std::string& name, const ir::Expr& value, int64_t extent);

  Emission& e_;
  int64_t count_, items_;
  int64_t rounds_;  // of a block: each item looks at one number in each
  int64_t block_, words_;
  Index item_;
  ir::BufferRef marks_, marked_words_;
};

}  // namespace hlorun::opencl
