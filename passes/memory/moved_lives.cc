#include "passes/memory/moved_lives.h"

#include <algorithm>

namespace hlorun::passes {
namespace {

using hlo::Instruction;

// Each once.
std::vector<ArrayId> ArraysOf(const ArrayLives& lives, const std::vector<Instruction*>& instructions) {
  std::vector<ArrayId> arrays;
  for (const Instruction* instruction : instructions) {
    for (const ArrayId array : lives.ArraysOf(instruction)) {
      if (array != kNoValue && std::find(arrays.begin(), arrays.end(), array) == arrays.end()) arrays.push_back(array);
    }
  }
  return arrays;
}

}  // namespace

int64_t MovedLives::EndOf(ArrayId array) const {
  const auto longer = ends_.find(array);
  return longer == ends_.end() ? lives_.at(array).life.end : longer->second;
}

bool MovedLives::Move(const Instruction& kernel, int64_t time) {
  const int64_t now = lives_.TimeOf(&kernel);
  const std::vector<ArrayId>& results = lives_.ArraysOf(&kernel);
  Moved move;
  for (const ArrayId array : results) {
    const LivingArray& result = lives_.at(array);
    if (time < now && result.is_preceded) return false;
    if (time < now) move.changes.push_back({{time, now - 1}, result.bytes});
    if (time > now && !result.is_preceded) move.changes.push_back({{now, time - 1}, -result.bytes});
  }
  for (const ArrayId array : ArraysOf(lives_, kernel.operands())) {
    const LivingArray& read = lives_.at(array);
    const int64_t end = EndOf(array);
    if (read.is_given) continue;
    // What the kernel itself overwrites it takes with it.
    if (read.is_followed && !(read.ends_shared && end == now) && time >= end) return false;
    if (read.is_followed || time <= end) continue;
    move.changes.push_back({{end + 1, time}, read.bytes});
    move.ends.emplace_back(array, end);
  }
  for (const Change& change : move.changes) profile_.Add(change.range, change.bytes);
  for (const auto& [array, before] : move.ends) ends_[array] = time;
  moves_.push_back(std::move(move));
  const auto fits = [&](const Change& change) {
    return change.bytes <= 0 || profile_.MostIn(change.range) <= most_bytes_;
  };
  const std::vector<Change>& changes = moves_.back().changes;
  if (std::all_of(changes.begin(), changes.end(), fits)) return true;
  UndoTo(moves_.size() - 1);
  return false;
}

void MovedLives::UndoTo(size_t count) {
  for (; moves_.size() > count; moves_.pop_back()) {
    for (const Change& change : moves_.back().changes) profile_.Add(change.range, -change.bytes);
    for (const auto& [array, before] : moves_.back().ends) ends_[array] = before;
  }
}

}  // namespace hlorun::passes
