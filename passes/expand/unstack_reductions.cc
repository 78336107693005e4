#include "passes/expand/unstack_reductions.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/stack.h"
#include "passes/dynamic/signature.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// Each part repeats what lies between the arrays and the reduction.
constexpr int64_t kMostParts = 64;
constexpr size_t kMostBetween = 16;

int64_t SizeBefore(const Shape& shape, int64_t dimension) {
  int64_t size = 1;
  for (int64_t d = 0; d < dimension; ++d) size *= shape.dimension(d);
  return size;
}

// The dimension of the operand that `dimension` of a reshape, transpose or broadcast is; -1 where it is none.
int64_t OperandDimension(const Instruction& x, int64_t dimension) {
  const Shape& from = x.operand(0)->shape();
  if (x.Is(Opcode::kTranspose)) return x.dimensions()[static_cast<size_t>(dimension)];
  if (x.Is(Opcode::kBroadcast)) {
    const auto it = std::find(x.dimensions().begin(), x.dimensions().end(), dimension);
    return it == x.dimensions().end() ? -1 : it - x.dimensions().begin();
  }
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dimension(d) == x.shape().dimension(dimension) && SizeBefore(from, d) == SizeBefore(x.shape(), dimension))
      return d;
  }
  return -1;
}

bool Moves(const Instruction& x) {
  return x.Is(Opcode::kReshape) || x.Is(Opcode::kTranspose) || x.Is(Opcode::kBroadcast);
}

class Unstacking {
 public:
  Unstacking(Instruction* reduce, Opcode opcode) : reduce_(reduce), opcode_(opcode), build_(reduce->parent(), reduce) {
    build_.before = reduce;
  }

  bool Run() {
    const int64_t dimension = reduce_->dimensions()[0], parts = reduce_->operand(0)->shape().dimension(dimension);
    if (parts < 2 || parts > kMostParts || !Finds(*reduce_->operand(0), dimension)) return false;
    Dims one = reduce_->operand(0)->shape().dimensions();
    one[static_cast<size_t>(dimension)] = 1;
    Instruction* result = build_.Broadcast(reduce_->operand(1), one, {});
    for (int64_t part = 0; part < parts; ++part) {
      made_.clear();
      result = build_.Binary(opcode_, result, Part(reduce_->operand(0), dimension, part));
    }
    reduce_->parent()->Replace(reduce_, build_.Reshape(result, reduce_->shape().dimensions()));
    return true;
  }

 private:
  // Whether arrays side by side along `dimension` are behind `x`, and nothing else reads what is between them.
  bool Finds(const Instruction& x, int64_t dimension) {
    if (hlo::IsStack(x, dimension)) return true;
    if (const auto known = finds_.find(&x); known != finds_.end()) return known->second;
    if (x.users().size() != 1 || finds_.size() == kMostBetween) return false;
    bool& finds = finds_[&x];
    bool found = false;
    if (Moves(x)) {
      const int64_t from = OperandDimension(x, dimension);
      found = from >= 0 && Finds(*x.operand(0), from);
    } else if (x.Has(hlo::kElementwise)) {
      for (const Instruction* operand : x.operands())
        found |= operand->shape().rank() > 0 && Finds(*operand, dimension);
    }
    return finds = found;
  }

  // What `x` has at a place of `dimension`, which stays and is one.
  Instruction* Part(Instruction* x, int64_t dimension, int64_t place) {
    if (hlo::IsStack(*x, dimension)) return x->operand(place);
    Dims dims = x->shape().dimensions();
    dims[static_cast<size_t>(dimension)] = 1;
    if (x->Is(Opcode::kBroadcast)) {
      const int64_t from = OperandDimension(*x, dimension);
      Instruction* part = from >= 0 ? Part(x->operand(0), from, place) : x->operand(0);
      return build_.Broadcast(part, dims, x->dimensions());
    }
    if (const auto known = finds_.find(x); known == finds_.end() || !known->second) {
      Dims starts(dims.size(), 0), limits = x->shape().dimensions();
      starts[static_cast<size_t>(dimension)] = place;
      limits[static_cast<size_t>(dimension)] = place + 1;
      return build_.Slice(x, starts, limits, Dims(dims.size(), 1));
    }
    Instruction*& part = made_[x];
    if (part == nullptr) part = Between(*x, dimension, place, dims);
    return part;
  }

  Instruction* Between(const Instruction& x, int64_t dimension, int64_t place, const Dims& dims) {
    if (Moves(x)) {
      Instruction* from = Part(x.operand(0), OperandDimension(x, dimension), place);
      return x.Is(Opcode::kReshape) ? build_.Reshape(from, dims) : build_.Transpose(from, x.dimensions());
    }
    std::vector<Instruction*> operands;
    for (Instruction* operand : x.operands())
      operands.push_back(operand->shape().rank() == 0 ? operand : Part(operand, dimension, place));
    const Shape shape(x.shape().element_type(), dims);
    Instruction* clone = reduce_->parent()->Add(x.CloneWithOperands(shape, std::move(operands)), reduce_);
    clone->sharding.reset();
    return clone;
  }

  Instruction* reduce_;
  Opcode opcode_;
  hlo::Builder build_;
  std::unordered_map<const Instruction*, bool> finds_;         // of what one other reads
  std::unordered_map<const Instruction*, Instruction*> made_;  // of those between, at the place
};

}  // namespace

bool UnstackReductions::Run(hlo::Module& module, PassContext&) {
  // Reductions of what varies end at its sizes.
  if (!SignatureOf(module).empty()) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      const bool is_candidate = instruction->Is(Opcode::kReduce) && instruction->operand_count() == 2 &&
                                instruction->dimensions().size() == 1;
      if (!is_candidate) continue;
      if (const std::optional<Opcode> opcode = hlo::ReducerOpcode(*instruction->called()))
        changed |= Unstacking(instruction, *opcode).Run();
    }
  }
  return changed;
}

}  // namespace hlorun::passes
