// Places of a plan's own: behind all others of the arena, for what lasts longer than its instruction's scratch.
#pragma once

#include <vector>

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// The plan must outlive it.
class OwnPlaces {
 public:
  explicit OwnPlaces(Plan& plan);

  // A plan made by hand may be without an arena.
  bool CanGive() const { return arena_ >= 0; }
  // Whether `slice` may be scratch: it lies in the arena, or in a result, where there is room until that is written.
  bool IsTemporary(const Slice& slice) const { return slice.allocation == arena_ || IsInResult(slice); }
  bool IsInResult(const Slice& slice) const;
  // Whether it lies in a place that Give has made.
  bool IsOwn(const Slice& slice) const { return slice.allocation == arena_ && slice.offset >= first_byte_; }
  // Moves what is written to `written` to a place of its own, and its readers with it; each reads a part of it.
  void Give(Slice& written, const std::vector<Slice*>& readers);
  // Adds what was given to the plan's memory statistics: once, at the end.
  void Account();

 private:
  Plan& plan_;
  int32_t arena_ = -1;  // none: no slice lies in it
  int64_t first_byte_ = 0;
};

}  // namespace hlorun::opencl
