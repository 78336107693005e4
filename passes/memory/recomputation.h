// What is computed a second time, so that its first result need not live through the moment of most memory: found one
// at a time, the most bytes for the least time first, and done at once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/module.h"
#include "passes/control/time_model.h"
#include "passes/kernel_model.h"
#include "passes/memory/array_lives.h"

namespace hlorun::passes {

// One that was done.
struct Recomputed {
  std::string name;    // of the instruction
  std::string source;  // its line in the user's program
  int64_t bytes = 0;   // fewer at the moment of most memory
  int64_t kernels = 0;
  double microseconds = 0;  // added to a run, estimated
  bool is_moved = false;    // nobody read the first result before that moment: it is not computed there any more
};

// Changes the module that it is given. Whoever reads results that were computed again gets the same bits: the kernel is
// the same, on the same operands.
class Recomputation {
 public:
  // All references must outlive it; the module changes only through it.
  Recomputation(hlo::Module& module, const KernelModel& kernels, const TimeModel& times);

  // Until at most `target` bytes, arguments and constants not counted, live at any time, or nothing more can be done
  // about the moment of the most.
  std::vector<Recomputed> LowerTo(int64_t target);

 private:
  struct Choice {
    hlo::Instruction* maker = nullptr;
    hlo::Instruction* before = nullptr;    // the first reader afterwards
    int64_t time = 0;                      // of that reader
    int64_t since = 0;                     // up to when the results are needed now
    std::vector<ArrayId> saved;            // results that need not live in between
    std::vector<hlo::Instruction*> chain;  // what is computed again, operands first, `maker` last
    std::vector<ArrayId> extended;         // operands that must live longer
    int64_t bytes = 0;
    double microseconds = 0;
    bool is_move = false;
    double Score(int64_t excess) const;
  };
  using Changes = std::vector<std::pair<Range, int64_t>>;

  bool LowerAt(int64_t time, int64_t target);
  std::vector<hlo::Instruction*> MakersOver(int64_t time) const;
  std::optional<Choice> ChoiceFor(hlo::Instruction* maker, int64_t time) const;
  bool AddToChain(Choice& choice, hlo::Instruction* maker, int64_t time, int depth) const;
  bool IsThere(const LivingArray& array, const Choice& choice) const;
  bool IsRepeatable(const hlo::Instruction& instruction) const;
  bool TryDo(const Choice& choice, int64_t time, int64_t target);
  Changes ChangesOf(const Choice& choice, int64_t time) const;
  void Do(const Choice& choice, int64_t time);
  void MoveReads(const Choice& choice, int64_t time, hlo::InstructionMap& images);
  hlo::Instruction* Image(hlo::Instruction* operand, hlo::Instruction* before, hlo::InstructionMap& images);
  hlo::Instruction* FirstInFrontOf(hlo::Instruction* reader, const std::vector<hlo::Instruction*>& readers) const;
  bool StandsBefore(const hlo::Instruction* made, const hlo::Instruction* other) const;
  void CountTrips(const hlo::Module& module);
  void RemoveDead();

  hlo::Module& module_;
  const KernelModel& kernels_;
  const TimeModel& times_;
  ArrayLives lives_;
  std::unordered_map<const hlo::Computation*, double> trips_;
  // What was made in front of an instruction: the one just before it; and the instruction that all of them wait for.
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> previous_;
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> in_front_of_;
  std::vector<Recomputed> done_;
};

}  // namespace hlorun::passes
