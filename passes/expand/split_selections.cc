#include "passes/expand/split_selections.h"

#include <cstdlib>
#include <vector>

#include "hlo/builder.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/selecting_reducer.h"

namespace hlorun::passes {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kLongestRow = 256;
constexpr int64_t kGroup = 128, kShortestGroup = 64;
constexpr int64_t kSquare = 16;  // whose multiples are read without a rest

bool IsCandidate(const Instruction& instruction) {
  if (!instruction.Is(Opcode::kReduce) || !instruction.shape().IsTuple()) return false;
  const hlo::Shape& shape = instruction.operand(0)->shape();
  const int64_t minor = shape.rank() - 1;
  return instruction.dimensions() == std::vector<int64_t>{minor} && shape.dimension(minor) > kLongestRow &&
         shape.ElementCount() > 0 && SelectsByOrder(*instruction.called());
}

// The number of neighbours in a group of a row: one that fits, if there is any, near kGroup.
int64_t GroupOf(int64_t row) {
  int64_t best = kGroup;
  bool fits = false;
  const auto is_better = [&](int64_t group) {
    if (!fits) return true;
    if ((group % kSquare == 0) != (best % kSquare == 0)) return group % kSquare == 0;
    return std::abs(group - kGroup) < std::abs(best - kGroup);
  };
  for (int64_t group = kShortestGroup; group <= kLongestRow; ++group) {
    if (row % group != 0 || !is_better(group)) continue;
    best = group;
    fits = true;
  }
  return best;
}

class Splitter {
 public:
  explicit Splitter(Instruction* reduce)
      : reduce_(reduce),
        build_(reduce->parent(), reduce),
        outer_(reduce->operand(0)->shape().dimensions()),
        row_(outer_.back()),
        group_(GroupOf(row_)) {
    build_.before = reduce;
    outer_.pop_back();
    const auto count = reduce->operand_count() / 2;
    values_.assign(reduce->operands().begin(), reduce->operands().begin() + count);
    starts_.assign(reduce->operands().begin() + count, reduce->operands().end());
  }

  // The reduction of what groups give, in the other's place.
  Instruction* Run() {
    const int64_t groups = row_ / group_, along = static_cast<int64_t>(outer_.size());
    std::vector<Instruction*> values;
    for (Instruction* value : values_)
      values.push_back(build_.Reshape(PartOf(value, 0, groups * group_), With({groups, group_})));
    std::vector<Instruction*> of_groups = Reduced(values, along + 1);
    if (groups * group_ < row_) {
      for (size_t i = 0; i < values_.size(); ++i) values[i] = PartOf(values_[i], row_ - group_, row_);
      const std::vector<Instruction*> of_last = Reduced(values, along);
      for (size_t i = 0; i < values_.size(); ++i)
        of_groups[i] = build_.Concatenate({of_groups[i], build_.Reshape(of_last[i], With({1}))}, along);
    }
    Instruction* whole = Reduce(of_groups, along);
    reduce_->parent()->Replace(reduce_, whole);
    return whole;
  }

 private:
  Dims With(const Dims& inner) const {
    Dims dims = outer_;
    dims.insert(dims.end(), inner.begin(), inner.end());
    return dims;
  }

  Instruction* PartOf(Instruction* value, int64_t begin, int64_t end) {
    if (begin == 0 && end == row_) return value;
    Dims starts(outer_.size(), 0), limits = With({end});
    starts.push_back(begin);
    return build_.Slice(value, starts, limits, Dims(limits.size(), 1));
  }

  Instruction* Reduce(std::vector<Instruction*> values, int64_t along) {
    return build_.Reduce(std::move(values), starts_, {along}, reduce_->called());
  }

  std::vector<Instruction*> Reduced(std::vector<Instruction*> values, int64_t along) {
    Instruction* reduced = Reduce(std::move(values), along);
    std::vector<Instruction*> results;
    for (size_t i = 0; i < starts_.size(); ++i)
      results.push_back(build_.GetTupleElement(reduced, static_cast<int64_t>(i)));
    return results;
  }

  Instruction* reduce_;
  hlo::Builder build_;
  Dims outer_;
  int64_t row_, group_;
  std::vector<Instruction*> values_, starts_;
};

}  // namespace

bool SplitSelections::Run(hlo::Module& module, PassContext& context) {
  // Kernels of arrays whose sizes vary end at the sizes.
  if (context.device.device_class != DeviceClass::kCpu || !SignatureOf(module).empty()) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      for (; IsCandidate(*instruction); changed = true) instruction = Splitter(instruction).Run();
    }
  }
  return changed;
}

}  // namespace hlorun::passes
