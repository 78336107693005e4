#include "passes/fusion/recompute.h"

#include <algorithm>
#include <array>

#include "hlo/stack.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// How often the elements of an index op may be computed anew; elementwise ops follow their chain's cost.
struct Limit {
  Opcode opcode;
  double factor;
};
constexpr double kUnlimited = 1e30;
constexpr std::array kLimits = {
    Limit{Opcode::kBroadcast, kUnlimited},
    Limit{Opcode::kReshape, kUnlimited},
    Limit{Opcode::kBitcast, kUnlimited},
    Limit{Opcode::kIota, kUnlimited},
    Limit{Opcode::kSlice, kUnlimited},
    Limit{Opcode::kDynamicSlice, 2},
    Limit{Opcode::kReverse, 2},
    Limit{Opcode::kPad, 2},
    Limit{Opcode::kConcatenate, 1},
    Limit{Opcode::kTranspose, 1},
    Limit{Opcode::kGather, 1},
};

const Limit* LimitOf(Opcode opcode) {
  const auto it = std::find_if(kLimits.begin(), kLimits.end(), [&](const Limit& l) { return l.opcode == opcode; });
  return it == kLimits.end() ? nullptr : &*it;
}

// Indices that gathers alone read, put together from one array a dimension: an element of the vector is then an element
// of the one or of the other, as each gather knows beforehand.
bool IsIndexVector(const Instruction& instruction) {
  if (!instruction.Is(Opcode::kConcatenate)) return false;
  const int64_t along = instruction.dimensions()[0];
  const auto& users = instruction.users();
  return std::all_of(users.begin(), users.end(),
                     [&](const Instruction* user) {
                       return user->Is(Opcode::kGather) && user->operand(0) != &instruction &&
                              user->As<hlo::attr::Gather>().index_vector_dim == along;
                     }) &&
         hlo::IsStack(instruction, along);
}

// Columns put side by side as short rows, [4096,3] of three [4096,1]: in a loop over such rows vectors would have to
// run across them, with a question for each column. A kernel of their own asks nothing, nor does a loop that writes the
// shortest of such rows out, as one over the same places does. Of two columns the question is cheap, unless they are
// merged with what is around them: then it is one for each lane, and so is the place of what is loaded.
bool JoinsColumns(const Instruction& instruction) {
  constexpr int64_t kWrittenOut = 4, kShortRow = 8, kLongStack = 64, kManyRows = 64;
  if (!instruction.Is(Opcode::kConcatenate)) return false;
  const int64_t minor = instruction.shape().rank() - 1, row = instruction.shape().dimension(minor);
  if (instruction.dimensions()[0] != minor) return false;
  const auto are_elementwise = [](const Instruction& of) {
    return std::all_of(of.users().begin(), of.users().end(),
                       [](const Instruction* user) { return user->Has(hlo::kElementwise); });
  };
  const bool keeps_places =
      are_elementwise(instruction) && std::all_of(instruction.users().begin(), instruction.users().end(),
                                                  [&](const Instruction* user) { return are_elementwise(*user); });
  if (row <= kWrittenOut && keeps_places) return false;
  const bool is_merged =
      std::any_of(instruction.users().begin(), instruction.users().end(), [&](const Instruction* user) {
        return user->Is(Opcode::kReshape) && user->shape().rank() > 0 && user->shape().dimensions().back() != row;
      });
  // Of one element each, a question for every array: as many as a window has pixels.
  const int64_t longest = hlo::IsStack(instruction, minor) ? kLongStack : kShortRow;
  return row >= (is_merged ? 2 : 3) && row < longest && instruction.shape().ElementCount() >= row * kManyRows;
}

// From here on what is computed once is free.
constexpr double kManyUses = 16;

}  // namespace

bool SpreadsShortRuns(const Instruction& instruction) {
  constexpr int64_t kLongRun = 32, kWholeRun = 16, kLongMergedRun = 256;
  if (!instruction.Is(Opcode::kBroadcast) || instruction.operand(0)->shape().ElementCount() == 1) return false;
  const std::vector<int64_t>& kept = instruction.dimensions();
  const int64_t minor = instruction.shape().rank() - 1, run = instruction.shape().dimension(minor);
  if (kept.empty() || kept.back() != minor - 1 || instruction.shape().dimension(minor - 1) == 1 || run == 1)
    return false;
  // Where runs are merged with what is around them, an element is found by a division.
  const bool is_merged = std::any_of(instruction.users().begin(), instruction.users().end(),
                                     [](const Instruction* user) { return IsReinterpretation(*user); });
  return is_merged ? run < kLongMergedRun : run < kLongRun && run % kWholeRun != 0;
}

bool IsLoopOp(const Instruction& instruction) {
  if (!instruction.shape().IsArray() || instruction.HasSideEffect()) return false;
  return instruction.Has(hlo::kElementwise) || LimitOf(instruction.opcode()) != nullptr ||
         instruction.Is(Opcode::kClamp) || instruction.Is(Opcode::kBitcastConvert);
}

bool IsReinterpretation(const Instruction& instruction) {
  if (instruction.Is(Opcode::kReshape) || instruction.Is(Opcode::kBitcast)) return true;
  const auto fits = [&](const std::vector<int64_t>& map, const hlo::Shape& mapped) {
    // Dimensions of more than one element keep their order.
    int64_t last = -1;
    for (size_t i = 0; i < map.size(); ++i) {
      if (mapped.dimension(static_cast<int64_t>(i)) == 1) continue;
      if (map[i] < last) return false;
      last = map[i];
    }
    return true;
  };
  if (instruction.Is(Opcode::kTranspose)) return fits(instruction.dimensions(), instruction.shape());
  return instruction.Is(Opcode::kBroadcast) &&
         instruction.shape().ElementCount() == instruction.operand(0)->shape().ElementCount() &&
         fits(instruction.dimensions(), instruction.operand(0)->shape());
}

RecomputeCost::RecomputeCost(const hlo::Computation& computation) {
  constexpr int kMany = 1000;
  for (const Instruction* instruction : computation.PostOrder()) {
    Chain& chain = chains_[instruction];
    if (!IsLoopOp(*instruction)) {
      if (!instruction->IsConstant() || instruction->shape().ElementCount() > 1) chain.reads = {instruction};
      continue;
    }
    const bool computes = !LimitOf(instruction->opcode());
    chain.operations = computes ? 1 : 0;
    chain.expensive = instruction->Has(hlo::kExpensive) ? 1 : 0;
    for (const Instruction* operand : instruction->operands()) {
      // What is small beside the result is stored, or costs nothing.
      if (operand->shape().IsArray() && operand->shape().ElementCount() * 4 <= instruction->shape().ElementCount()) {
        continue;
      }
      const Chain& below = chains_.at(operand);
      chain.operations = std::min(kMany, chain.operations + below.operations);
      chain.expensive = std::min(kMany, chain.expensive + below.expensive);
      for (const Instruction* read : below.reads) {
        if (!read->shape().IsArray() || chain.reads.size() >= kManyReads) continue;
        if (std::find(chain.reads.begin(), chain.reads.end(), read) == chain.reads.end()) chain.reads.push_back(read);
      }
    }
  }
}

bool RecomputeCost::MayInline(const Instruction& instruction, double evaluations, size_t kernels) const {
  const auto elements = static_cast<double>(std::max<int64_t>(instruction.shape().ElementCount(), 1));
  const double factor = evaluations / elements;
  constexpr double kSlack = 1.01;
  if (JoinsColumns(instruction) && !IsIndexVector(instruction)) return false;
  if (factor <= kSlack && kernels <= 1) return true;
  if (SpreadsShortRuns(instruction) && factor >= kManyUses) return false;
  if (const Limit* limit = LimitOf(instruction.opcode())) {
    return IsReinterpretation(instruction) || IsIndexVector(instruction) || factor <= limit->factor * kSlack;
  }
  const Chain& chain = chains_.at(&instruction);
  // Scalars: the device's compiler computes them once a work-group.
  if (elements == 1) return chain.expensive == 0 && chain.operations <= 4;
  // Nothing large is read: masks and the like.
  if (chain.reads.empty()) return chain.expensive == 0 && chain.operations <= 8 && factor <= 16;
  // Storing costs a write and a read of the array; computing twice costs its reads once more. exp and its like run at
  // the memory's speed when vectorised (measured), so one of them may be computed twice.
  if (chain.reads.size() > 2 || chain.operations > 12) return false;
  return chain.expensive == 0 ? factor <= 3 * kSlack : chain.expensive == 1 && factor <= 2 * kSlack;
}

}  // namespace hlorun::passes
