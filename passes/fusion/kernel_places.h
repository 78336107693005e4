// Where the instructions of a scheduled computation run, and where else its kernels might.
//
// The n-th instruction of the order has place kStep * n, so that there is room in front of it. Tuples and their
// elements, bitcasts and whatever else moves no data have no place of their own: readers are seen through them.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

// Whether an instruction moves no data and stands where it is needed.
bool IsView(const hlo::Instruction& instruction);

class KernelPlaces {
 public:
  explicit KernelPlaces(hlo::Computation& computation);

  static constexpr int64_t kStep = 16;

  const std::vector<hlo::Instruction*>& order() const { return order_; }  // as it was
  int64_t end() const { return kStep * static_cast<int64_t>(order_.size()); }

  // A kernel may be at any place between the two: after what makes its operands and before its first reader, and on its
  // side of collectives, host steps and whatever else has effects.
  struct Span {
    int64_t after = -1, before = 0;
    bool Holds(int64_t place) const { return after < place && place < before; }
  };
  Span SpanOf(const hlo::Instruction& kernel) const;

  int64_t PlaceOf(const hlo::Instruction* instruction) const { return places_.at(instruction); }
  void Put(const hlo::Instruction* instruction, int64_t place) { places_[instruction] = place; }
  // Puts the computation's list, which may have gained and lost instructions, into the order of the places.
  void Reorder();

 private:
  hlo::Computation& computation_;
  std::vector<hlo::Instruction*> order_;
  std::unordered_map<const hlo::Instruction*, int64_t> places_;
  std::vector<int64_t> fences_;  // places of what nothing is moved across
};

}  // namespace hlorun::passes
