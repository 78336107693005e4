#include "passes/expand/split_reductions.h"

#include <algorithm>

#include "hlo/builder.h"
#include "passes/dynamic/extents.h"
#include "passes/expand/reducer_identity.h"

namespace hlorun::passes {

using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Below this the whole reduction costs less than another launch.
constexpr int64_t kSmallestOperand = 1 << 16;
// Independent pieces of work that keep any CPU busy, and the lanes of one vector, whatever the device's are.
constexpr int64_t kEnoughPieces = 64;
constexpr int64_t kLanes = 16;
constexpr int64_t kShortestPart = 64;

// A run of neighbouring reduced dimensions, [first, last].
struct Run {
  int64_t first = 0, last = -1, size = 1;
};

Run LargestReducedRun(const Instruction& reduce) {
  const hlo::Shape& shape = reduce.operand(0)->shape();
  Run largest, current;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!Contains(reduce.dimensions(), d)) {
      current = Run{d + 1, d, 1};
      continue;
    }
    current.last = d;
    current.size *= shape.dimension(d);
    if (current.size > largest.size) largest = current;
  }
  return largest;
}

// Results that are computed apart from each other: rows where the minor dimension is reduced, else vectors.
int64_t Pieces(const Instruction& reduce) {
  const int64_t results = reduce.shape().ElementCount();
  const bool rows = Contains(reduce.dimensions(), reduce.operand(0)->shape().rank() - 1);
  return rows ? results : (results + kLanes - 1) / kLanes;
}

// How many parts to cut `size` into: a divisor that gives enough pieces and parts that are not short; 0 for none.
int64_t PartCount(int64_t size, int64_t pieces) {
  int64_t best = 0;
  for (int64_t parts = 2; parts <= size / kShortestPart; ++parts) {
    if (size % parts != 0) continue;
    best = parts;
    if (parts * pieces >= kEnoughPieces) break;
  }
  return best;
}

// Reductions of dynamic size are cut by their kernels, into parts of what is there.
bool IsBounded(const Instruction& reduce) {
  return std::any_of(reduce.dimensions().begin(), reduce.dimensions().end(),
                     [&](int64_t d) { return NeutralFrom(reduce, d) != nullptr; });
}

bool IsCandidate(const Instruction& instruction) {
  return instruction.Is(Opcode::kReduce) && instruction.operand_count() == 2 && instruction.shape().IsArray() &&
         instruction.operand(0)->shape().IsStatic() &&
         instruction.operand(0)->shape().ElementCount() >= kSmallestOperand && instruction.shape().ElementCount() > 0 &&
         Pieces(instruction) < kEnoughPieces && hlo::ReducerOpcode(*instruction.called()).has_value() &&
         !IsBounded(instruction);
}

bool Split(Instruction* reduce) {
  const Run run = LargestReducedRun(*reduce);
  const int64_t parts = PartCount(run.size, Pieces(*reduce));
  if (parts == 0) return false;
  Instruction* x = reduce->operand(0);
  hlo::Builder build(reduce->parent(), reduce);
  build.before = reduce;

  // The run becomes [parts, size / parts]; the parts are kept by the first stage and reduced by the second.
  Dims cut;
  std::vector<int64_t> first_stage;
  int64_t kept = 0, parts_after_first = 0;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d == run.first) {
      parts_after_first = kept++;
      cut.insert(cut.end(), {parts, run.size / parts});
      first_stage.push_back(static_cast<int64_t>(cut.size()) - 1);
    }
    if (d >= run.first && d <= run.last) continue;
    cut.push_back(x->shape().dimension(d));
    if (Contains(reduce->dimensions(), d)) {
      first_stage.push_back(static_cast<int64_t>(cut.size()) - 1);
    } else {
      ++kept;
    }
  }
  const Opcode opcode = *hlo::ReducerOpcode(*reduce->called());
  Instruction* identity = build.Constant(ReducerIdentity(opcode, x->shape().element_type()));
  Instruction* partial = build.Reduce({build.Reshape(x, cut)}, {identity}, first_stage, reduce->called());
  Instruction* whole = build.Reduce({partial}, {reduce->operand(1)}, {parts_after_first}, reduce->called());
  reduce->parent()->Replace(reduce, whole);
  return true;
}

}  // namespace

bool SplitReductions::Run(hlo::Module& module, PassContext& context) {
  // Its kernels cut reductions themselves, with what is fused into them.
  if (context.device.device_class == DeviceClass::kGpu) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (IsCandidate(*instruction)) changed |= Split(instruction);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
