// What running kernels of a scheduled module at other times does to the memory that it needs. Times are those of
// array_lives.h.
#pragma once

#include <unordered_map>
#include <vector>

#include "passes/memory/array_lives.h"

namespace hlorun::passes {

class MovedLives {
 public:
  // No move may bring more than `most_bytes` to life at once. All references must outlive it.
  MovedLives(const ArrayLives& lives, LiveProfile& profile, int64_t most_bytes)
      : lives_(lives), profile_(profile), most_bytes_(most_bytes) {}

  // Has `kernel`, which makes arrays, run at `time`. False, and nothing happens, where too much would live then; or
  // where something that lies in one place with an array of its would have to move: what it reads is overwritten
  // before, what it overwrites may be read behind.
  bool Move(const hlo::Instruction& kernel, int64_t time);

  // Of the moves so far, those behind the first `count` never were.
  size_t moves() const { return moves_.size(); }
  void UndoTo(size_t count);

 private:
  struct Change {
    Range range;
    int64_t bytes;
  };
  struct Moved {
    std::vector<Change> changes;
    std::vector<std::pair<ArrayId, int64_t>> ends;  // before the move
  };

  int64_t EndOf(ArrayId array) const;

  const ArrayLives& lives_;
  LiveProfile& profile_;
  const int64_t most_bytes_;
  std::unordered_map<ArrayId, int64_t> ends_;  // of lives that have become longer
  std::vector<Moved> moves_;
};

}  // namespace hlorun::passes
