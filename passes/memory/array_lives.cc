#include "passes/memory/array_lives.h"

#include <algorithm>
#include <set>

#include "passes/fusion/updated_part.h"
#include "passes/kernel_model.h"
#include "passes/memory/scratch_blocks.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

bool OnlyNames(const Instruction& instruction) {
  return instruction.Is(Opcode::kGetTupleElement) || instruction.Is(Opcode::kBitcast);
}

ArrayLives::ArrayLives(const hlo::Module& module, const KernelModel& kernels)
    : kernels_(kernels),
      dataflow_(module),
      live_(module, dataflow_),
      sets_(module, dataflow_, live_, kernels),
      profile_(live_.end() + 1) {
  JoinFlows(module, dataflow_, sets_);
  ShareInPlace(dataflow_, live_, kernels, sets_);
  AddArrays();
  for (const hlo::Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) AddInstruction(instruction.get());
    for (const ArrayId array : ArraysOf(computation->root())) {
      if (array != kNoValue) at(array).escapes = true;
    }
  }
  for (LivingArray& array : arrays_) {
    std::stable_sort(array.reads.begin(), array.reads.end(),
                     [](const Read& a, const Read& b) { return a.time < b.time; });
  }
  FillProfile();
}

const std::vector<ArrayId>& ArrayLives::ArraysOf(const Instruction* instruction) const {
  const auto made = made_.find(instruction);
  return made != made_.end() ? made->second : dataflow_.ValuesOf(instruction);
}

const Instruction& ArrayLives::InstructionAt(int64_t time) const {
  // Starts and ends of control flow are times, too, and nobody's.
  const auto& order = live_.order();
  const auto after = std::upper_bound(order.begin(), order.end(), time,
                                      [&](int64_t t, const Instruction* other) { return t < live_.TimeOf(other); });
  return **(after == order.begin() ? after : after - 1);
}

int64_t ArrayLives::WorkingBytes(const Instruction& instruction) const {
  std::set<ValueId> places;
  const auto add = [&](const Instruction* of) {
    for (const ValueId value : dataflow_.ValuesOf(of)) {
      if (value != kNoValue && !sets_.SetOf(value).home.IsReadOnly()) places.insert(sets_.Find(value));
    }
  };
  for (const Instruction* operand : instruction.operands()) add(operand);
  add(&instruction);
  int64_t bytes = kernels_.ScratchBytes(instruction);
  for (const ValueId place : places) bytes += sets_.SetOf(place).bytes;
  return bytes;
}

void ArrayLives::AddArrays() {
  for (size_t i = 0; i < dataflow_.values().size(); ++i) {
    const Value& value = dataflow_.values()[i];
    const auto id = static_cast<ValueId>(i);
    const Colocation::Set& set = sets_.SetOf(id);
    LivingArray array;
    // The dataflow only looks; the module is the caller's to change.
    if (value.kind == Value::Kind::kDefined) array.maker = const_cast<Instruction*>(value.instruction);
    array.bytes = value.bytes;
    array.life = live_.RangesOf(id).front();
    array.is_given = set.home.IsReadOnly();
    array.ends_shared = std::any_of(set.lives.begin(), set.lives.end(), [&](const Colocation::Life& life) {
      return life.value != id && life.range.begin == array.life.end;
    });
    for (const Colocation::Life& life : set.lives) {
      if (life.value == id) continue;
      (life.range.begin < array.life.begin ? array.is_preceded : array.is_followed) = true;
    }
    arrays_.push_back(std::move(array));
  }
}

void ArrayLives::AddInstruction(Instruction* instruction) {
  if (OnlyNames(*instruction)) return;
  const bool holds = MovesNoData(*instruction) || instruction->Has(hlo::kAsync);
  const Instruction* hero = instruction->Is(Opcode::kFusion) ? instruction->called()->root() : instruction;
  const bool updates = UpdatesPart(*hero);
  for (int64_t i = 0; i < instruction->operand_count(); ++i) {
    const auto& read = ArraysOf(instruction->operand(i));
    for (const ArrayId id : read) {
      if (id == kNoValue) continue;
      LivingArray& array = at(id);
      const bool is_own = array.maker != nullptr && array.maker->parent() == instruction->parent();
      if (holds || read.size() != 1 || !is_own) {
        array.escapes = true;
      } else {
        array.reads.push_back({live_.TimeOf(instruction), instruction, i});
        array.is_updated |= updates && kernels_.MayShareBuffer(*instruction, i, 0);
      }
    }
  }
}

void ArrayLives::FillProfile() {
  for (ValueId value = 0; value < static_cast<ValueId>(arrays_.size()); ++value) {
    const Colocation::Set& set = sets_.SetOf(value);
    if (sets_.Find(value) != value || set.home.IsReadOnly()) continue;
    for (const Range& range : set.Lives()) profile_.Add(range, set.bytes);
  }
  // Nothing that is made between two instructions overlaps their scratch.
  for (const ScratchBlock& scratch : OwnScratch(live_, kernels_)) {
    const int64_t time = scratch.block.lives[0].begin;
    profile_.Add({time, time}, scratch.block.bytes);
  }
}

void ArrayLives::Insert(Instruction* made, int64_t time) {
  std::vector<ArrayId> results;
  hlo::ForEachLeaf(made->shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    results.push_back(static_cast<ArrayId>(arrays_.size()));
    LivingArray array;
    array.maker = made;
    array.bytes = shape.ByteSize();
    array.life = {time - 1, time - 1};
    arrays_.push_back(std::move(array));
  });
  made_[made] = std::move(results);
  for (int64_t i = 0; i < made->operand_count(); ++i) AddRead(ArraysOf(made->operand(i))[0], {time, made, i});
}

void ArrayLives::AddRead(ArrayId id, Read read) {
  LivingArray& array = at(id);
  const auto after = std::upper_bound(array.reads.begin(), array.reads.end(), read.time,
                                      [](int64_t time, const Read& other) { return time < other.time; });
  array.reads.insert(after, read);
  if (array.is_given || read.time <= array.life.end) return;
  array.life.end = read.time;
  array.ends_shared = false;
}

}  // namespace hlorun::passes
