#include "passes/expand/reduce_major_first.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/builder.h"
#include "passes/expand/reducer_identity.h"

namespace hlorun::passes {

using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

constexpr int64_t kShortMinor = 256;  // shorter runs than this far apart are no stream
constexpr int64_t kSmallestOperand = 1 << 14;
constexpr int64_t kDeepestProducers = 8;  // of elementwise ops that are rebuilt

// Each dimension of the merged shape is the product of a run [first, last) of dimensions.
struct Merging {
  struct Part {
    int64_t first, last;
  };
  std::vector<Part> parts;
  Dims dimensions;  // merged
};

// Runs of dimensions that are reduced by the first stage, and of those that it keeps.
Merging MergingOf(const Shape& shape, const std::vector<int64_t>& first_stage) {
  Merging merging;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool continues = d > 0 && Contains(first_stage, d) == Contains(first_stage, d - 1);
    if (continues) {
      merging.parts.back().last = d + 1;
      merging.dimensions.back() *= shape.dimension(d);
    } else {
      merging.parts.push_back({d, d + 1});
      merging.dimensions.push_back(shape.dimension(d));
    }
  }
  return merging;
}

// Rebuilds values over merged dimensions.
class Rebuilder {
 public:
  Rebuilder(hlo::Builder& build, const Merging& merging) : build_(build), merging_(merging) {}

  Instruction* Merged(Instruction* x, int64_t depth = 0) {
    Instruction*& merged = done_[x];
    if (merged != nullptr) return merged;
    Instruction* result = nullptr;
    if (x->Is(Opcode::kReshape)) {
      result = Reshaped(x->operand(0));
    } else if (x->Is(Opcode::kBroadcast)) {
      result = MergedBroadcast(x);
    } else if (x->Has(hlo::kElementwise) && depth < kDeepestProducers) {
      std::vector<Instruction*> operands;
      for (Instruction* operand : x->operands()) {
        const bool is_scalar = operand->shape().rank() == 0;  // a select's predicate
        operands.push_back(is_scalar ? operand : Merged(operand, depth + 1));
      }
      const Shape shape(x->shape().element_type(), merging_.dimensions);
      result = x->parent()->Add(x->CloneWithOperands(shape, std::move(operands)), build_.before);
      result->sharding.reset();
    } else {
      result = Reshaped(x);
    }
    return done_[x] = result;
  }

 private:
  Instruction* Reshaped(Instruction* x) {
    return x->shape().dimensions() == merging_.dimensions ? x : build_.Reshape(x, merging_.dimensions);
  }

  // First over the whole of each run that it touches, which is small, then over the rest.
  Instruction* MergedBroadcast(Instruction* x) {
    const std::vector<int64_t>& from = x->dimensions();
    if (!std::is_sorted(from.begin(), from.end())) return Reshaped(x);
    Dims touched, merged_sizes;
    std::vector<int64_t> inner, outer;
    for (size_t i = 0; i < merging_.parts.size(); ++i) {
      const auto [first, last] = merging_.parts[i];
      if (std::none_of(from.begin(), from.end(), [&](int64_t d) { return d >= first && d < last; })) continue;
      for (int64_t d = first; d < last; ++d) {
        if (Contains(from, d)) inner.push_back(static_cast<int64_t>(touched.size()));
        touched.push_back(x->shape().dimension(d));
      }
      outer.push_back(static_cast<int64_t>(i));
      merged_sizes.push_back(merging_.dimensions[i]);
    }
    if (outer.size() == merging_.parts.size()) return Reshaped(x);
    Instruction* small = x->operand(0);
    if (small->shape().dimensions() != touched) small = build_.Broadcast(small, touched, inner);
    if (touched != merged_sizes) small = build_.Reshape(small, merged_sizes);
    return build_.Broadcast(small, merging_.dimensions, outer);
  }

  hlo::Builder& build_;
  const Merging& merging_;
  std::unordered_map<Instruction*, Instruction*> done_;
};

// The short minor run of the reduced dimensions, from this one on; the rank when there is no such run, or nothing else
// is reduced.
int64_t ShortMinorStart(const Instruction& reduce) {
  const Shape& shape = reduce.operand(0)->shape();
  int64_t start = shape.rank(), size = 1;
  while (start > 0 && Contains(reduce.dimensions(), start - 1)) size *= shape.dimension(--start);
  const bool others = std::any_of(reduce.dimensions().begin(), reduce.dimensions().end(),
                                  [&](int64_t d) { return d < start && shape.dimension(d) > 1; });
  return others && start > 0 && size < kShortMinor ? start : shape.rank();
}

bool IsCandidate(const Instruction& instruction) {
  return instruction.Is(Opcode::kReduce) && instruction.operand_count() == 2 && instruction.shape().IsArray() &&
         instruction.operand(0)->shape().IsStatic() &&
         instruction.operand(0)->shape().ElementCount() >= kSmallestOperand &&
         hlo::ReducerOpcode(*instruction.called()).has_value() &&
         ShortMinorStart(instruction) < instruction.operand(0)->shape().rank();
}

void Split(Instruction* reduce) {
  Instruction* x = reduce->operand(0);
  const int64_t start = ShortMinorStart(*reduce);
  std::vector<int64_t> first_stage, second_stage;
  Dims kept;  // by the first stage
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d < start && Contains(reduce->dimensions(), d)) {
      first_stage.push_back(d);
      continue;
    }
    if (d >= start) second_stage.push_back(static_cast<int64_t>(kept.size()));
    kept.push_back(x->shape().dimension(d));
  }
  hlo::Builder build(reduce->parent(), reduce);
  build.before = reduce;
  const Merging merging = MergingOf(x->shape(), first_stage);
  std::vector<int64_t> merged_stage;
  for (size_t i = 0; i < merging.parts.size(); ++i) {
    if (Contains(first_stage, merging.parts[i].first)) merged_stage.push_back(static_cast<int64_t>(i));
  }
  const Opcode opcode = *hlo::ReducerOpcode(*reduce->called());
  Instruction* identity = build.Constant(ReducerIdentity(opcode, x->shape().element_type()));
  Instruction* merged = Rebuilder(build, merging).Merged(x);
  Instruction* partial = build.Reduce({merged}, {identity}, merged_stage, reduce->called());
  if (partial->shape().dimensions() != kept) partial = build.Reshape(partial, kept);
  Instruction* whole = build.Reduce({partial}, {reduce->operand(1)}, second_stage, reduce->called());
  reduce->parent()->Replace(reduce, whole);
}

}  // namespace

bool ReduceMajorFirst::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!IsCandidate(*instruction)) continue;
      Split(instruction);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
